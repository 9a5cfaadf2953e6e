"""The attacker itself: it finds each fault of a fake server, and none in the real one."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from . import acts, attacker
from .attacker import ANSWERED, Report, Scene, attack, expected_sounds, scenes
from .fake_server import LATE_SECONDS, SOUND

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="Linux tells of a process"),
]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a server that hangs is found soon, and a leak by few requests."""
    monkeypatch.setattr(attacker, "QUIET_SECONDS", 3.0)
    monkeypatch.setattr(attacker, "PATIENCE", 3.0)
    monkeypatch.setattr(acts, "PATIENCE", 3.0)
    monkeypatch.setattr(attacker, "SETTLE_SECONDS", 1.0)
    monkeypatch.setattr(attacker, "REST_SECONDS", 0.0)
    monkeypatch.setattr(attacker, "ACTS", (acts.looks_around, acts.uses_a_voice))


def attack_fake(fault: str, attack_seconds: float = 1.0) -> Report:
    scene = Scene("fake", [sys.executable, "-m", "tests.attack.fake_server", fault])
    controls = {"Hi.": hashlib.sha256(SOUND).hexdigest()}
    return attack(scene, Path(), controls, "1", 3, attack_seconds=attack_seconds)


def test_a_server_without_faults_passes(hasty: None) -> None:
    report = attack_fake("none")
    assert report.faults == []
    assert report.controls >= 5
    assert report.acts.total() > 20
    assert report.after is not None


def test_a_server_is_measured_at_rest(hasty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attacker, "REST_SECONDS", 3 * LATE_SECONDS)
    report = attack_fake("late", attack_seconds=0.2)
    assert report.faults == []
    assert report.before is not None
    assert report.after is not None
    assert report.after.memory < report.before.memory + 10_000_000
    assert report.after.files == report.before.files


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("start", "the server does not start: ['injected"),
        ("leak", "memory grew from"),
        ("files", "files grew from"),
        ("threads", "threads grew from"),
        ("crash", "the server ended with status 3"),
        ("hang", "Timeout"),
        ("wrong", "has 2 wrong bytes"),
        ("error", "status 500"),
        ("traceback", "log: Traceback"),
    ],
)
def test_every_fault_is_found(hasty: None, fault: str, found: str) -> None:
    report = attack_fake(fault)
    assert [each for each in report.faults if found in each], report.faults


def test_the_access_log_does_not_count_as_a_flood() -> None:
    answered = "nightingale: 127.0.0.1 POST /v1/audio/speech 200 1.586 s 58560 bytes"
    for line in (answered, f"{answered}, broken off\n", "nightingale: - GET / - 0.001 s 0 bytes\n"):
        assert ANSWERED.match(line)
    for line in ("nightingale: the engine has failed", f"  {answered}", f"{answered} Traceback"):
        assert not ANSWERED.match(line)


def test_the_server_holds_for_a_while(quick_checkpoint: Path) -> None:
    report = attack(scenes()[0], quick_checkpoint, expected_sounds(quick_checkpoint), "1", 15)
    assert report.faults == []
    assert report.controls >= 6
    assert report.acts.total() > 10
    json.dumps(report.as_dict())
