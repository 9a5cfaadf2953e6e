"""What `nightingale.ray:app` takes; Ray itself is not needed for it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")

from nightingale.option import names_of
from nightingale.options import LoadOptions, ServerOptions
from nightingale.ray import Arguments, server_settings


def test_every_option_of_loading_reaches_the_replicas() -> None:
    given = {"bits": "4", "dtype": "float16", "kv_bits": "8", "kv_budget": "0.5", "draft": "ngram"}
    given |= {"device": "cpu", "threads": "3", "offline": "true"}
    given |= {"variant": "v3", "preset": "upstream", "cache": "1000"}
    assert given.keys() == {*names_of(LoadOptions)} - {"progress"}
    assert server_settings(Arguments(**given)).load == LoadOptions(
        variant="v3",
        preset="upstream",
        cache=1000,
        bits=4,
        dtype="float16",
        kv_bits=8,
        kv_budget=0.5,
        draft="ngram",
        device="cpu",
        threads=3,
        offline=True,
        progress=False,
    )


def test_a_value_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="bits must be 8, 4 or None, not 3"):
        server_settings(Arguments(bits=3))


def test_there_is_an_argument_for_each_option() -> None:
    own = {"model", "replicas", "key_file", "allow_unauthenticated"}
    options = {*names_of(LoadOptions, "ray"), *names_of(ServerOptions, "ray")}
    assert set(Arguments.model_fields) == own | options
    assert {"bits", "draft", "max_queue"} < options
    assert "stall_timeout" not in options  # the connections are Ray's


def test_only_a_key_or_plain_words_let_other_names_in(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a long secret\n")
    closed = server_settings(Arguments(max_queue="7", device="cpu", threads="3"))
    assert closed.hosts == ("127.0.0.1", "localhost", "[::1]")
    assert (closed.key, closed.max_queue) == (None, 7)
    assert closed.load == LoadOptions(device="cpu", threads=3, offline=False, progress=False)
    with_key = server_settings(Arguments(key_file=tmp_path / "key"))
    assert (with_key.key, with_key.hosts) == ("a long secret", None)
    anyone = server_settings(Arguments(allow_unauthenticated="true"))
    assert (anyone.key, anyone.hosts) == (None, None)


def test_paths_hold_wherever_a_replica_runs(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkpoint.parent)
    settings = server_settings(Arguments(model=checkpoint.name, voices="mine"))
    assert settings.model == str(checkpoint)
    assert settings.voices == checkpoint.parent / "mine"
    settings = server_settings(Arguments(model="owner/name"))
    assert settings.model == "owner/name"
