"""Checkpoints from the hub, against a stand-in server on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import nightingale
from nightingale import hub
from nightingale.checkpoint import find_checkpoint
from tools.synthetic.mlx_conversion import write_conversion

from .command import PATIENCE

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MULTILINGUAL = [
    "Cangjie5_TC.json",
    "conds.pt",
    "grapheme_mtl_merged_expanded_v1.json",
    "nightingale.json",
    "s3gen.safetensors",
    "t3_mtl23ls_v2.safetensors",
    "ve.safetensors",
]


class Hub(ThreadingHTTPServer):
    """The calls of the hub's API that a download makes; remembers which files were asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HubHandler)
        self.files: dict[str, dict[str, bytes]] = {}  # by repository
        self.gated: set[str] = set()
        self.broken: set[str] = set()
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class HubHandler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = unquote(urlsplit(self.path).path).strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            self.describe("/".join(parts[2:4]), tree=parts[4:5] == ["tree"])
        else:
            self.resolve("/".join(parts[:2]), "/".join(parts[4:]))

    def describe(self, repository: str, tree: bool) -> None:
        files = self.server.files.get(repository)
        if repository in self.server.broken:
            self.answer(501, b"not today")
        elif files is None:
            self.answer(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif tree:
            listing = [
                {"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
                for name, data in files.items()
            ]
            self.answer(200, json.dumps(listing).encode())
        else:
            names = [{"rfilename": name} for name in files]
            info = {"id": repository, "sha": COMMIT, "siblings": names}
            self.answer(200, json.dumps(info).encode())

    def resolve(self, repository: str, name: str) -> None:
        self.server.asked.append(name)
        if repository in self.server.gated:
            self.answer(403, b"", {"X-Error-Code": "GatedRepo"})
        else:
            self.answer(200, self.server.files[repository][name])

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        standard = {"Content-Length": str(len(body)), "ETag": etag, "X-Repo-Commit": COMMIT}
        for key, value in (standard | (headers or {})).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Hub]:
    with Hub() as hub_server:
        thread = threading.Thread(target=hub_server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield hub_server
        hub_server.shutdown()
        thread.join()


@pytest.fixture
def official(server: Hub, checkpoints: Path) -> Hub:
    """A repository like the official one: three models and S3Gen's files in one place."""
    files = {"README.md": b"read me"}
    for model in ("english", "multilingual-v3", "multilingual"):
        for path in (checkpoints / model).iterdir():
            files[path.name] = path.read_bytes()
    server.files["owner/model"] = files
    return server


@pytest.fixture(scope="module")
def cpu_tokens(checkpoint: Path) -> list[int]:
    tts = nightingale.load(checkpoint, device="cpu")
    return tts.speech_tokens("Hello.", max_tokens=6).tolist()


PROGRAM = """
import json, sys
import nightingale

try:
    modes = {"quiet": {"progress": False}, "offline": {"offline": True}}
    options = modes.get(sys.argv[2], {"variant": sys.argv[2][1:]} if sys.argv[2][0] == "=" else {})
    tts = nightingale.load(sys.argv[1], device="cpu", **options)
    result = {"info": tts.info, "tokens": tts.speech_tokens("Hello.", max_tokens=6).tolist()}
except nightingale.Error as error:
    result = {"error": str(error)}
print(json.dumps(result))
"""


def load(home: Path, endpoint: str, model: str, mode: str = "online", **environment: str) -> dict:
    """What loading gives in a process of its own, whose cache is in `home`."""
    settings = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, model, mode],
        env=clean | {"NO_PROXY": "*"} | settings | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) | {"bars": done.stderr.count("%|")}


def error_of(home: Path, endpoint: str, model: str, mode: str = "online") -> str:
    message = load(home, endpoint, model, mode)["error"]
    assert "\n" not in message
    return message


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.slow
def test_only_the_preferred_model_is_fetched_and_then_serves_offline(
    official: Hub, tmp_path: Path, cpu_tokens: list[int]
) -> None:
    first = load(tmp_path, official.address, "owner/model")
    assert first["info"]["family"] == "multilingual v2"
    assert first["tokens"] == cpu_tokens
    assert sorted(set(official.asked)) == MULTILINGUAL

    official.asked.clear()
    again = load(tmp_path, official.address, "owner/model")
    assert again["tokens"] == cpu_tokens
    assert official.asked == []

    for environment in ({}, {"HF_HUB_OFFLINE": "1"}):
        mode = "online" if environment else "offline"
        offline = load(tmp_path, closed_port(), "owner/model", mode, **environment)
        assert offline["tokens"] == cpu_tokens
        assert offline["info"]["model"] == first["info"]["model"]


def test_a_variant_of_a_repository_is_fetched(official: Hub, tmp_path: Path) -> None:
    found = load(tmp_path, official.address, "owner/model", "=english")
    assert found["info"]["family"] == "english"
    t3 = {name for name in official.asked if name.startswith("t3_")}
    assert (t3, "tokenizer.json" in official.asked) == ({"t3_cfg.safetensors"}, True)


def test_progress_false_hides_the_bars(official: Hub, tmp_path: Path) -> None:
    forced = {"TQDM_POSITION": "-1"}  # what makes the hub draw where there is no terminal
    shown = load(tmp_path / "shown", official.address, "owner/model", **forced)
    hidden = load(tmp_path / "hidden", official.address, "owner/model", "quiet", **forced)
    assert shown["bars"] > 0
    assert hidden["bars"] == 0
    assert hidden["tokens"] == shown["tokens"]


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["t3_cfg.pt", "t3_cfg.safetensors"], ["t3_cfg.safetensors", "tokenizer.json"]),
        (["t3_cfg.pt"], ["t3_cfg.pt", "tokenizer.json"]),
        (
            ["t3_cfg.safetensors", "t3_mtl23ls_v3.safetensors", "t3_mtl23ls_v2.pt"],
            ["t3_mtl23ls_v2.pt", "grapheme_mtl_merged_expanded_v1.json", "Cangjie5_TC.json"],
        ),
    ],
)
def test_the_first_family_in_its_best_format_is_wanted(names: list[str], wanted: list[str]) -> None:
    shared = ["nightingale.json", "conds.safetensors", "conds.pt"]
    assert hub._wanted("owner/model", names) == wanted + shared


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["s3gen.pt", "s3gen.safetensors", "ve.pt"], ["s3gen.safetensors", "ve.pt"]),
        (["ve.pt", "ve.safetensors", "s3gen.pt"], ["s3gen.pt", "ve.safetensors"]),
    ],
)
def test_s3gen_and_the_voice_encoder_are_wanted_in_their_best_format(
    names: list[str], wanted: list[str]
) -> None:
    found = hub._wanted("owner/model", ["t3_cfg.pt", *names])
    assert [name for name in found if name in names] == wanted


def test_an_interrupted_download_is_not_used_offline(official: Hub, tmp_path: Path) -> None:
    load(tmp_path, official.address, "owner/model")
    (voice,) = tmp_path.glob("hub/models--owner--model/snapshots/*/conds.pt")
    voice.unlink()
    message = error_of(tmp_path, closed_port(), "owner/model", "offline")
    assert "owner/model has not been downloaded, or not wholly" in message


def test_offline_with_nothing_downloaded(tmp_path: Path) -> None:
    message = error_of(tmp_path, closed_port(), "owner/model", "offline")
    assert "owner/model has not been downloaded" in message
    assert "load it once with a network" in message


def test_without_a_network_the_error_says_so(tmp_path: Path) -> None:
    message = error_of(tmp_path, closed_port(), "owner/model")
    assert message.startswith("cannot reach the hub to fetch owner/model; check the network")


def test_a_conversion_is_fetched_whole_and_another_kind_of_model_not_at_all(
    server: Hub, checkpoints: Path, tmp_path: Path
) -> None:
    write_conversion(checkpoints / "english", tmp_path / "mlx")
    files = {path.name: path.read_bytes() for path in (tmp_path / "mlx").iterdir()}
    server.files["owner/mlx"] = files | {"README.md": b"read me"}
    found = load(tmp_path / "home", server.address, "owner/mlx")
    assert found["info"]["family"] == "english"
    assert set(server.asked) == files.keys()

    server.asked.clear()
    server.files["owner/mlx"] = files | {"config.json": b'{"model_type": "kokoro"}'}
    message = error_of(tmp_path / "other", server.address, "owner/mlx")
    told = "config.json: model_type is 'kokoro', expected 'chatterbox' or 'chatterbox_turbo'"
    assert message.endswith(told)
    assert set(server.asked) == {"config.json"}


def test_an_unknown_repository_is_named(server: Hub, tmp_path: Path) -> None:
    message = error_of(tmp_path, server.address, "nobody/nothing")
    assert "the hub has no repository 'nobody/nothing' that you can read" in message


def test_a_gated_repository_asks_for_a_login(official: Hub, tmp_path: Path) -> None:
    official.gated.add("owner/model")
    message = error_of(tmp_path, official.address, "owner/model")
    assert message.startswith("owner/model asks for a login: run `hf auth login`")


def test_an_error_of_the_hub_itself_is_passed_on(official: Hub, tmp_path: Path) -> None:
    official.broken.add("owner/model")
    message = error_of(tmp_path, official.address, "owner/model")
    assert message.startswith("the hub cannot give owner/model: ")
    assert "501" in message


def test_a_repository_without_t3(server: Hub, tmp_path: Path) -> None:
    server.files["owner/other"] = {"model.safetensors": b"something else"}
    message = error_of(tmp_path, server.address, "owner/other")
    assert message.startswith("owner/other has no T3 checkpoint; expected one of t3_mtl23ls_v2.")
    assert server.asked == []


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        ("ResembleAI/chatterbox", True),
        ("a.b-c_d/e.f-g_h", True),
        ("chatterbox", False),
        ("a/b/c", False),
        ("/a/b", False),
        ("a/", False),
        ("a b/c", False),
        ("./model", False),
        ("../model", False),
        ("~/model", False),
        ("a/b\n", False),
        ("", False),
    ],
)
def test_a_hub_id_is_owner_and_name(text: str, is_id: bool) -> None:
    assert hub.is_hub_id(text) is is_id


def test_a_folder_that_exists_wins_over_a_hub_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "owner" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "download", lambda *args: pytest.fail("asked the hub"))
    assert hub.resolve("owner/model") == Path("owner/model")


def test_a_checkpoint_has_its_table_and_its_voice_encoder_in_the_best_format(
    checkpoints: Path, tmp_path: Path
) -> None:
    for file in (checkpoints / "multilingual").iterdir():
        (tmp_path / file.name).symlink_to(file)
    found = find_checkpoint(tmp_path)
    assert found.cangjie == tmp_path / "Cangjie5_TC.json"
    assert found.voice_encoder == tmp_path / "ve.pt"
    assert found.dicta is None

    (tmp_path / "ve.safetensors").write_bytes(b"")
    (tmp_path / "Cangjie5_TC.json").unlink()
    found = find_checkpoint(tmp_path)
    assert found.cangjie is None
    assert found.voice_encoder == tmp_path / "ve.safetensors"

    assert find_checkpoint(checkpoints / "english").cangjie is None
