"""README and docs: examples run, links and paths lead somewhere, signatures match the code."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sysconfig
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
import soundfile

import nightingale
from nightingale import cli, options
from nightingale.option import options_of
from nightingale.voice_folder import VoiceFolder
from tools.check_paths import missing

from .command import PATIENCE
from .recordings import speech

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
DOCUMENTS = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
EXAMPLES = ("sh", "python")
NOT_EXAMPLES = ("", "text", "json", "mermaid")

# Commands that are shown but not run, by how they begin, and why. Of a line `a && b` each is judged
# by itself.
NOT_RUN = {
    r"pip ": "installs what is being tested, or needs a network",
    r"pytest\b": "is what runs this",
    r".*\b(ResembleAI|mlx-community)/": "needs a network and gigabytes",
    r"for wheel in |cmake |build/|python3 csrc/tests/|tools/comp": "needs a compiler, and minutes",
    r"python3 -m tools\.kernel_texts|tools/first_mac": "needs a build of the C++ tests",
    r"tools/reference/|python -m (bench\.|tools\.v)": "needs the reference, and minutes",
}


@dataclass(frozen=True)
class Fence:
    """A fenced block of a document."""

    language: str
    text: str
    line: int  # of its first line of text


def fences(document: Path) -> Iterator[Fence]:
    lines: list[str] = []
    language, begin = None, 0
    for number, line in enumerate(document.read_text("utf-8").splitlines(), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif language is None:
            language, begin, lines = line.removeprefix("```"), number + 1, []
        else:
            yield Fence(language, "\n".join(lines), begin)
            language = None
    assert language is None, f"{page_name(document)}: a fence is not closed"


def page_name(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def prose(document: Path) -> str:
    """The text outside of fences."""
    return re.sub(r"^```.*?^```", "", document.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def is_run(command: str) -> bool:
    return not any(re.match(rule, command) for rule in NOT_RUN)


def commands(script: str) -> Iterator[list[str]]:
    """Of each line, with what continues it, the commands that && joins."""
    for line in script.replace("\\\n", " ").splitlines():
        yield [command.strip() for command in line.split(" && ")]


def runnable(script: str) -> str:
    kept = ([command for command in line if is_run(command)] for line in commands(script))
    return "\n".join(" && ".join(line) for line in kept if line)


@pytest.fixture
def folder(quick_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a document's examples run: with a checkpoint, a recording and an empty home."""
    shutil.copytree(quick_checkpoint, tmp_path / "model", copy_function=os.link)
    soundfile.write(tmp_path / "reference.wav", speech(6, 24000), 24000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # for tools
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"), prepend=os.pathsep)
    return tmp_path


@pytest.fixture
def servers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Commands that examples left running."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def serve(script: str) -> subprocess.Popen[bytes]:
    """Starts a command that runs until it is told to end."""
    process = subprocess.Popen(["bash", "-c", f"exec {script}"], stderr=subprocess.PIPE)
    assert b"listening on" in process.stderr.readline(), script
    return process


# Documents whose examples take half a minute: what they show has tests of its own.
LONG = (
    "docs/guide/validate.md",
    "docs/guide/speed.md",
    "docs/guide/voices.md",
    "docs/reference/command-line.md",
)


def examples() -> Iterator[Any]:
    for document in DOCUMENTS:
        if any(fence.language in EXAMPLES for fence in fences(document)):
            name = page_name(document)
            marks = [pytest.mark.nightly] if name in LONG else []
            yield pytest.param(document, id=name, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("document", list(examples()))
def test_every_example_runs(
    document: Path, folder: Path, keep_threads: None, servers: list[subprocess.Popen[bytes]]
) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for fence in fences(document):
        place = f"{page_name(document)}, line {fence.line}"
        if fence.language == "python":
            code = "\n" * (fence.line - 1) + fence.text  # so that a traceback tells the line
            exec(compile(code, document, "exec"), names)
        elif fence.language == "sh" and fence.text.startswith("nightingale serve"):
            servers.append(serve(fence.text))
        elif fence.language == "sh" and (script := runnable(fence.text)):
            command = ["bash", "-euo", "pipefail", "-c", script]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            assert done.returncode == 0, f"{place}:\n{script}\n{done.stdout}{done.stderr}"


def test_every_fence_is_an_example_or_says_what_else_it_is() -> None:
    for document in DOCUMENTS:
        for fence in fences(document):
            known = fence.language in (*EXAMPLES, *NOT_EXAMPLES)
            assert known, f"{page_name(document)}, line {fence.line}"


def test_long_documents_are_documents() -> None:
    assert set(LONG) <= {case.id for case in examples()}


def test_what_is_not_run_is_shown_somewhere() -> None:
    scripts = [f.text for path in DOCUMENTS for f in fences(path) if f.language == "sh"]
    shown = [command for script in scripts for line in commands(script) for command in line]
    assert [rule for rule in NOT_RUN if not any(re.match(rule, c) for c in shown)] == []


def test_the_first_command_of_the_readme_is_run_but_for_pip() -> None:
    first = next(fence.text for fence in fences(ROOT / "README.md"))
    assert runnable(first) == first.removeprefix("pip install . && ")
    assert runnable(first).startswith("nightingale say ")


def anchors(document: Path) -> set[str]:
    """What the headings of a document can be linked by, as GitHub does it."""
    headings = re.findall(r"^#+ (.+)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(document: Path) -> Iterator[tuple[Path, str]]:
    """The files and anchors of this repository that a document links to."""
    for link in re.findall(r"\]\(([^()\s]+)\)", prose(document)):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            yield (document.parent / path).resolve() if path else document, anchor


@pytest.mark.parametrize("document", DOCUMENTS, ids=page_name)
def test_links_lead_somewhere(document: Path) -> None:
    for target, anchor in links(document):
        assert target.is_file(), target
        assert not anchor or anchor in anchors(target), f"{target}#{anchor}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        document = waiting.pop()
        if document.suffix == ".md" and document not in reached:
            reached.add(document)
            waiting += [target for target, _ in links(document)]
    assert set(DOCUMENTS) - reached == set()


def test_every_picture_is_shown() -> None:
    shown = {target for document in DOCUMENTS for target, _ in links(document)}
    pictures = {path for path in DOCS.rglob("*") if path.suffix in (".png", ".svg")}
    assert pictures - shown == set()


def test_paths_of_the_repository_exist() -> None:
    assert list(missing()) == []


def test_cells_of_tables_hold_no_paragraphs() -> None:
    for document in DOCUMENTS:
        for row in re.findall(r"^>? ?\|(.+)\|$", prose(document), re.MULTILINE):
            longest = max(row.split("|"), key=len)
            assert len(longest.split()) <= 30, f"{page_name(document)}: {longest}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=page_name)
def test_no_path_of_one_machine_is_told(document: Path) -> None:
    absolute = r"(?<![\w.~/}])/(?:Users|home|media|mnt|opt|root|srv|tmp|usr|var|work)\b"
    assert re.findall(rf"{absolute}.*", document.read_text("utf-8")) == []


def test_the_pictures_stand_by_themselves() -> None:
    pictures = sorted(DOCS.rglob("*.svg"))
    assert [path.name for path in pictures] == ["streaming.svg"]
    for picture in pictures:
        text = picture.read_text("utf-8")
        ElementTree.fromstring(text)
        assert re.findall(r"href|@import|@font-face|<script|url\((?!#)", text) == []


def help_of(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main([*command, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def commands_there_are(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return re.findall(r"^    (\w+)", help_of(capsys), re.MULTILINE)


def test_the_commands_of_the_documentation_are_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = next(fences(REFERENCE / "command-line.md")).text
    documented = first.removeprefix("nightingale ").split(" | ")
    assert sorted(documented) == sorted(commands_there_are(capsys))


def test_the_options_of_the_documentation_are_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    option = r"--[a-z][a-z0-9-]+"
    helps = [help_of(capsys, command) for command in commands_there_are(capsys)]
    known = {found for text in helps for found in re.findall(option, text)} - {"--help"}
    documented = set()
    for page in ("command-line.md", "validation.md", "http.md", "manifest.md"):
        found = set(re.findall(rf"`({option})", prose(REFERENCE / page)))
        assert found
        assert found - known == set(), page
        documented |= set(re.findall(option, (REFERENCE / page).read_text("utf-8")))
    assert known - documented == set()


def option_tables() -> Iterator[tuple[str, str, str, list[str]]]:
    """The generated tables: document, class, interface, and the names of their rows."""
    table = r"<!-- options: (\w+) (\w+)[ \w]* -->\n(.*?)<!-- /options -->"
    for document in DOCUMENTS:
        for kind, interface, rows in re.findall(table, document.read_text("utf-8"), re.DOTALL):
            yield (
                page_name(document),
                kind,
                interface,
                re.findall(r"^\| `([^`]+)`", rows, re.MULTILINE),
            )


def test_the_tables_of_options_have_all_options_and_no_other() -> None:
    documented: dict[tuple[str, str], list[str]] = {}
    for _, kind, interface, names in option_tables():
        documented.setdefault((kind, interface), []).extend(names)
    expected = {}
    for kind in (options.LoadOptions, options.SpeechOptions, options.ServerOptions):
        for interface in ("python", "cli", "http", "manifest", "ray"):
            offered = options_of(kind, None if interface == "python" else interface)
            names = [option.flag if interface == "cli" else option.name for option in offered]
            if names and (kind.__name__, interface) != ("ServerOptions", "python"):
                expected[kind.__name__, interface] = names
    assert {place: sorted(names) for place, names in documented.items()} == {
        place: sorted(names) for place, names in expected.items()
    }


# What the names before the dots of docs/reference/python.md's signatures stand for.
OWNERS: dict[str, Any] = {
    "nightingale": nightingale,
    "tts": nightingale.TTS,
    "audio": nightingale.Audio,
    "Voice": nightingale.Voice,
    "voice": nightingale.Voice,
    "folder": VoiceFolder,
    "Lexicon": nightingale.Lexicon,
    "lexicon": nightingale.Lexicon,
}
RESULTS = (nightingale.Audio, nightingale.Chunk, nightingale.Lexicon, nightingale.Voice)


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in found if p.name != "self"]


def parameters_of_text(arguments: str) -> list[tuple[str, Any, Any]]:
    names: dict[str, Any] = {}
    exec(f"def f({arguments}): ...", names)
    return parameters(names["f"])


def signatures(document: Path) -> Iterator[tuple[str, str]]:
    for fence in fences(document):
        if fence.language == "text":
            for line in fence.text.splitlines():
                found = re.fullmatch(r"([\w.]+)\((.*?)\)(?: -> .+)?", line)
                assert found, line
                yield found[1], found[2]


def test_the_signatures_of_the_api_are_those_there_are() -> None:
    documented = set()
    for name, arguments in signatures(REFERENCE / "python.md"):
        owner, method = name.split(".")
        function = getattr(OWNERS[owner], method)
        assert parameters_of_text(arguments) == parameters(function), name
        documented.add((OWNERS[owner], method))
    expected = {(nightingale, "load"), (nightingale, "normalize")}
    for owner in (*RESULTS, nightingale.TTS, VoiceFolder):
        expected |= {(owner, name) for name in public(owner) if callable(getattr(owner, name))}
    assert documented == expected


def public(owner: Any) -> list[str]:
    own = [each for each in owner.__mro__ if each.__module__.startswith("nightingale")]
    return [name for each in own for name in vars(each) if not name.startswith("_")]


def test_every_public_name_is_in_the_api() -> None:
    text = (REFERENCE / "python.md").read_text("utf-8")
    names = {"VoiceFolder", *nightingale.__all__, *public(nightingale.TTS)}
    for owner in RESULTS:
        names |= {*public(owner), *(field.name for field in fields(owner))}
    assert {name for name in names if not re.search(rf"[`.]{name}\b", text)} == set()
