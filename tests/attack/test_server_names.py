"""By which names a server may be called, and whose word it takes for who the client is."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import Any

import httpx
import pytest

from nightingale import cli
from nightingale.server import Settings, create_app, serving
from nightingale.server.jobs import Job

from ..test_server_engine import started

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 is no address")


def settings_of(monkeypatch: pytest.MonkeyPatch, *options: str) -> Settings:
    """What the command line makes of its options."""
    given: list[Settings] = []

    def serve(settings: Settings, *rest: Any) -> int:
        given.append(settings)
        return 0

    monkeypatch.setattr(serving, "serve", serve)
    assert cli.main(["serve", "--port", "0", *options]) == 0
    return given[0]


def ask(
    settings: Settings, client: str = "127.0.0.1", path: str = "/v1/models", **headers: str
) -> httpx.Response:
    async def answer() -> httpx.Response:
        with started() as engine:
            transport = httpx.ASGITransport(create_app(settings, engine), client=(client, 5000))
            async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
                return await http.get(path, headers=headers)

    return asyncio.run(answer())


@linux
def test_the_address_it_listens_at_is_a_name_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(monkeypatch, "--host", "127.0.0.2")
    assert ask(settings, host="127.0.0.2:80").status_code == 200
    assert ask(settings, host="localhost").status_code == 200
    assert ask(settings, host="127.0.0.3").status_code == 421
    assert ask(settings, host="evil.example").status_code == 421


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("192.168.1.5:8765", 200),
        ("[2001:db8::1]:8765", 200),
        ("localhost:8765", 200),
        ("tts.example", 200),
        ("TTS.Example:443", 200),
        ("evil.example", 421),
        ("192.168.1.5.evil.example", 421),
        ("2130706433", 421),
        ("2001:db8::1", 421),
        ("[192.168.1.5]", 421),
        ("", 421),
    ],
)
def test_beyond_this_machine_only_addresses_and_given_names_are_its_own(
    monkeypatch: pytest.MonkeyPatch, host: str, status: int
) -> None:
    options = ("--host", "0.0.0.0", "--allow-unauthenticated", "--allow-host", "tts.example")
    answer = ask(settings_of(monkeypatch, *options), host=host)
    assert answer.status_code == status
    if status == 421:
        assert answer.json()["error"]["code"] == "unknown_host"


def clients_of(settings: Settings, peer: str, forwarded: str) -> Counter[str]:
    """Under which addresses the engine is asked."""
    seen: Counter[str] = Counter()

    async def answer() -> None:
        with started() as engine:

            def submit(job: Job) -> None:
                seen[job.client] += 1
                job.give(ValueError("enough"))

            engine.submit = submit
            transport = httpx.ASGITransport(create_app(settings, engine), client=(peer, 5000))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                body = {"model": "nightingale", "input": "Hello."}
                headers = {"X-Forwarded-For": forwarded}
                await http.post("/v1/audio/speech", json=body, headers=headers)

    asyncio.run(answer())
    return seen


def test_who_the_client_is_only_a_named_proxy_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = settings_of(monkeypatch)
    assert clients_of(alone, "127.0.0.1", "203.0.113.7") == {"127.0.0.1": 1}
    behind = settings_of(monkeypatch, "--trust-proxy", "127.0.0.1", "--trust-proxy", "10.0.0.0/8")
    assert clients_of(behind, "127.0.0.1", "203.0.113.7") == {"203.0.113.7": 1}
    assert clients_of(behind, "10.1.2.3", "203.0.113.7") == {"203.0.113.7": 1}
    assert clients_of(behind, "192.0.2.1", "203.0.113.7") == {"192.0.2.1": 1}


def test_uvicorn_itself_believes_no_proxy() -> None:
    config = serving._Config(lambda: None, Settings(), 1)  # type: ignore[arg-type, return-value]
    assert not config.proxy_headers


def test_a_proxy_that_is_no_address_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--port", "0", "--trust-proxy", "proxy.example"]) == 1
    assert (
        "'proxy.example' does not appear to be an IPv4 or IPv6 network" in capsys.readouterr().err
    )
