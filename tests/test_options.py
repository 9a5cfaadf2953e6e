"""Options are declared once: what is derived from the declarations, and that all of it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import nightingale
from nightingale import LoadOptions, SpeechOptions, _overrides, cli
from nightingale.batch_requests import Requests
from nightingale.checkpoint import find_checkpoint
from nightingale.manifest import Line
from nightingale.option import Options, names_of, options_of
from nightingale.options import ServerOptions

ROOT = Path(__file__).parents[1]
CLASSES = (LoadOptions, SpeechOptions, ServerOptions)
TEXT = "Hello there."
SHORT = {"max_tokens": 4, "steps": 1}


@pytest.mark.parametrize("kind", CLASSES)
def test_every_option_says_what_it_is(kind: type[Options]) -> None:
    for option in options_of(kind):
        assert option.help, option.name
        assert "\n" not in option.help
        assert bool(option.unset) == option.optional, option.name
        assert option.checked(option.default) == option.default
    assert names_of(kind) == tuple(field.name for field in fields(kind))


def test_the_typed_overrides_are_the_fields() -> None:
    for kind, typed in (
        (LoadOptions, _overrides.LoadOverrides),
        (SpeechOptions, _overrides.SpeechOverrides),
    ):
        assert tuple(typed.__annotations__) == names_of(kind)


def test_an_unknown_keyword_names_the_function_and_the_nearest_option(
    tts: nightingale.TTS, checkpoint: Path
) -> None:
    for name in ("generate", "stream", "stepwise", "speech_tokens", "iter_speech_tokens"):
        with pytest.raises(TypeError) as caught:
            getattr(tts, name)(TEXT, temprature=1.0)
        expected = f"{name}() has no option 'temprature'; did you mean 'temperature'?"
        assert str(caught.value) == expected
    with pytest.raises(TypeError) as caught:
        nightingale.load(checkpoint, kvbits=8)
    assert str(caught.value) == "load() has no option 'kvbits'; did you mean 'kv_bits'?"


def test_options_of_another_class_are_refused(tts: nightingale.TTS, checkpoint: Path) -> None:
    with pytest.raises(
        TypeError, match=r"generate\(\) takes options of type SpeechOptions, not dict"
    ):
        tts.generate(TEXT, {"seed": 1})
    with pytest.raises(TypeError, match=r"load\(\) takes options of type LoadOptions, not Speech"):
        nightingale.load(checkpoint, SpeechOptions())


def test_keywords_win_over_options(tts: nightingale.TTS) -> None:
    options = SpeechOptions(seed=3, max_tokens=6)
    expected = tts.speech_tokens(TEXT, seed=5, max_tokens=6).tolist()
    assert tts.speech_tokens(TEXT, options, seed=5).tolist() == expected
    assert tts.speech_tokens(TEXT, replace(options, seed=5)).tolist() == expected
    assert tts.speech_tokens(TEXT, options).tolist() != expected


def test_what_is_not_given_is_the_model_s_own(tts: nightingale.TTS) -> None:
    defaults = tts.info["defaults"]
    assert defaults == {
        "cfg_weight": 0.5,
        "repetition_penalty": 2.0,
        "min_p": 0.05,
        "top_p": 1.0,
        "top_k": 0,
        "steps": 10,
    }
    names = {option.name for option in options_of(SpeechOptions) if option.fallback is not None}
    assert names == {*defaults, "exaggeration"}
    plain = tts.generate(TEXT, max_tokens=4)
    given = tts.generate(TEXT, max_tokens=4, exaggeration=0.5, **defaults)
    assert given.samples.tobytes() == plain.samples.tobytes()


def test_generate_takes_the_options_of_stream_and_does_not_divide(tts: nightingale.TTS) -> None:
    whole = tts.generate(TEXT, **SHORT)
    assert tts.generate(TEXT, first_chunk=9, **SHORT).samples.tobytes() == whole.samples.tobytes()


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    return " ".join(capsys.readouterr().out.split())


def test_the_help_tells_how_the_kv_cache_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    expected = "(default: 8 with quantized weights, else the type of the weights)"
    assert f"bits of T3's quantized KV cache {expected}" in help_of("say", capsys)


# Stages of options that a command does not have, where they are not those of dividing a stream.
LEFT_OUT = {"stream": (), "bench": ("chunks", "text"), "validate": ("chunks", "text")}


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("say", (LoadOptions, SpeechOptions)),
        ("stream", (LoadOptions, SpeechOptions)),
        ("batch", (LoadOptions, SpeechOptions)),
        ("bench", (LoadOptions, SpeechOptions)),
        ("validate", (LoadOptions, SpeechOptions)),
        ("serve", (LoadOptions, ServerOptions)),
        ("bake", (LoadOptions,)),
    ],
)
def test_commands_take_every_option(
    command: str, kinds: tuple[type[Options], ...], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = help_of(command, capsys)
    options = [option for kind in kinds for option in options_of(kind, "cli")]
    for option in options:
        left_out = LEFT_OUT.get(command, ("chunks",))
        assert (f" {option.flag}" in shown) is (option.stage not in left_out), option.flag
        assert option.stage in left_out or option.help in shown, option.flag


def digest(checkpoint: Path, given: dict[str, Any], **loading: Any) -> str:
    requests = Requests(find_checkpoint(checkpoint), LoadOptions(**loading), {})
    requests.check(given)
    return requests.request(Line(1, TEXT, "1.wav", given)).digest


CHANGES_AUDIO = ({"bits": 8}, {"bits": 4}, {"dtype": "float16"}, {"kv_bits": 8})
CHANGES_AUDIO += ({"kv_bits": 4}, {"kv_budget": 0.5}, {"device": "cpu"}, {"preset": "upstream"})
CHANGES_NOTHING = ({"threads": 1}, {"draft": "ngram"}, {"offline": True}, {"progress": False})
CHANGES_NOTHING += ({"variant": "v2"}, {"cache": 1000})


def test_a_batch_is_made_again_with_other_options_of_loading(checkpoint: Path) -> None:
    plain = digest(checkpoint, {})
    others = [digest(checkpoint, {}, **loading) for loading in CHANGES_AUDIO]
    assert len({plain, *others}) == 1 + len(CHANGES_AUDIO)
    assert {digest(checkpoint, {}, **loading) for loading in CHANGES_NOTHING} == {plain}
    tried = {name for loading in (*CHANGES_AUDIO, *CHANGES_NOTHING) for name in loading}
    assert tried == set(names_of(LoadOptions))


def test_a_batch_is_made_again_with_other_options_of_speech(checkpoint: Path) -> None:
    given = {"language": "fr", "seed": 1, "speed": 1.5, "temperature": 0.5, "cfg_weight": 0.3}
    given |= {"exaggeration": 0.7, "repetition_penalty": 1.5, "min_p": 0.1, "top_p": 0.9}
    given |= {"top_k": 50, "max_tokens": 20, "steps": 4}
    given |= {"ssml": True, "markdown": True, "html": True}
    assert {"voice", "lexicon", *given} == set(names_of(SpeechOptions, "manifest"))
    digests = {digest(checkpoint, {name: value}) for name, value in given.items()}
    plain = digest(checkpoint, {})
    assert len({plain, *digests}) == 1 + len(given)
    defaults = {option.name: option.default for option in options_of(SpeechOptions, "manifest")}
    assert digest(checkpoint, {name: defaults[name] for name in given}) == plain


@pytest.mark.parametrize("name", ["s3gen.pt", "nightingale.json", "conds.pt"])
def test_a_batch_is_made_again_with_another_file_of_the_model(
    name: str, checkpoint: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(checkpoint, folder, copy_function=os.link)
    plain = digest(folder, {})
    assert digest(folder, {}) == plain
    content = (folder / name).read_bytes()
    (folder / name).unlink()  # it is a link
    changed = content.replace(b"{", b"{ ", 1) if name.endswith("json") else content + b"\0"
    (folder / name).write_bytes(changed)
    assert digest(folder, {}) != plain


def test_a_batch_of_ssml_is_made_again_with_another_voice_of_the_model(
    checkpoint: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(checkpoint, folder, copy_function=os.link)
    (folder / "voices").mkdir()
    voice = nightingale.Voice.load(folder / "conds.pt")

    def digests() -> list[str]:
        requests = Requests(find_checkpoint(folder), LoadOptions(), {})
        texts = ("<speak>Hi.</speak>", TEXT)
        return [requests.request(Line(1, text, "1.wav", {})).digest for text in texts]

    found = []
    for exaggeration in (0.5, 1.0):
        voice.with_exaggeration(exaggeration).save(folder / "voices" / "Anna.safetensors")
        found.append(digests())
    assert found[0][0] != found[1][0]
    assert found[0][1] == found[1][1]


def test_no_path_comes_over_http() -> None:
    offered = options_of(SpeechOptions, "http")
    assert [option.name for option in offered if "Path" in option.types] == ["voice"]
    assert all(option.by_name for option in offered if "Path" in option.types)
    for kind in (LoadOptions, ServerOptions):
        assert options_of(kind, "http") == ()


ADDED = {
    LoadOptions: '    cores: str | None = option(None, "cores to run on", unset="any")\n',
    SpeechOptions: '    pitch: float = option(0.0, "semitones up", range=(-12, 12))\n',
}
REPORT = """
import contextlib, io, json, sys
from pathlib import Path
from nightingale import _overrides, cli
from nightingale.manifest import read_manifest
from nightingale.options import SpeechOptions
from nightingale.ray import Arguments
from nightingale.server.live import Begin
from nightingale.server.speech import SpeechRequest

shown = io.StringIO()
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(shown):
    cli.main(["say", "--help"])
(line,) = read_manifest(Path(sys.argv[1]), lambda options: None)
print(json.dumps({
    "help": shown.getvalue(),
    "http": SpeechRequest.model_json_schema()["properties"]["pitch"],
    "websocket": "pitch" in Begin.model_json_schema()["properties"],
    "manifest": line.options,
    "ray": str(Arguments.model_fields["cores"].annotation),
    "typed": [
        *_overrides.LoadOverrides.__annotations__, *_overrides.SpeechOverrides.__annotations__
    ],
    "made": SpeechOptions(pitch=3).pitch,
}))
"""


def test_a_new_option_is_one_field(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")
    installed = Path(nightingale.__file__).parent
    package = tmp_path / "python" / "nightingale"
    shutil.copytree(installed, package, copy_function=os.link)
    for library in ("mlx", "scipy_openblas32"):  # which the extension looks for beside the package
        if (installed.parent / library).exists():
            (tmp_path / "python" / library).symlink_to(installed.parent / library)
    for folder in ("docs", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    text = (package / "options.py").read_text("utf-8")
    for kind, line in ADDED.items():
        head, body = text.split(f"class {kind.__name__}(Options):")
        place = body.index(")\n", body.index("INTERFACES")) + 2
        text = f"{head}class {kind.__name__}(Options):{body[:place]}\n{line}{body[place:]}"
    for path in (package / "options.py", package / "_overrides.py"):
        path.unlink()  # a link to the installed one
    (package / "options.py").write_text(text, "utf-8")

    generator = [sys.executable, str(tmp_path / "tools" / "generate_options.py")]
    assert subprocess.run([*generator, "--check"], capture_output=True).returncode == 1
    assert subprocess.run(generator, capture_output=True).returncode == 0
    assert subprocess.run([*generator, "--check"], capture_output=True).returncode == 0

    manifest = tmp_path / "manifest.jsonl"
    manifest.write_text('{"text": "Hello.", "pitch": 2}')
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "python")}
    command = [sys.executable, "-P", "-c", REPORT, str(manifest)]
    if sys.version_info < (3, 11):
        command.remove("-P")
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "--pitch PITCH" in found["help"]
    assert "semitones up; between -12 and 12 (default: 0)" in " ".join(found["help"].split())
    assert "--cores CORES" in found["help"]
    assert found["http"]["anyOf"][0]["minimum"] == -12
    assert found["http"]["anyOf"][0]["maximum"] == 12
    assert found["http"]["description"] == "Semitones up."
    assert found["websocket"] is True
    assert found["manifest"] == {"pitch": 2.0}
    assert found["ray"] == "str | None"
    assert {"cores", "pitch"} < set(found["typed"])
    assert found["made"] == 3.0
    row = "| `pitch` | `0` | between -12 and 12 | semitones up |"
    for name in ("reference/python.md", "reference/http.md", "reference/manifest.md"):
        assert row in (tmp_path / "docs" / name).read_text("utf-8"), name
    for name, cell in (
        ("reference/command-line.md", "| `--cores` | any |"),
        ("reference/ray.md", "| `cores` | any |"),
    ):
        assert cell in (tmp_path / "docs" / name).read_text("utf-8"), name
    header = (tmp_path / "csrc" / "include" / "nightingale" / "options.h").read_text("utf-8")
    assert "  float pitch = 0.0f;\n" in header
    assert "  std::optional<std::string> cores;\n" in header
