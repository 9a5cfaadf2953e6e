"""Shell completion: the scripts, run by the shells that are there."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from nightingale import cli
from nightingale.cli.completion import script

BASH = """
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_nightingale
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(shell: str, *words: str) -> list[str]:
    """What bash or fish offers for the last of some words."""
    command = script(shell, cli._parser())
    if shell == "fish":
        command += f"complete -C {shlex.quote(' '.join(words))}"
    else:
        command += BASH.format(words=" ".join(shlex.quote(word) for word in words))
    done = subprocess.run([shell, "-c", command], capture_output=True, text=True, check=True)
    return [line.split("\t")[0] for line in done.stdout.split("\n") if line]


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_commands_options_and_values_are_completed(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    assert completed(shell, "nightingale", "st") == ["stream"]
    assert completed(shell, "nightingale", "say", "--voi") == ["--voice"]
    assert completed(shell, "nightingale", "say", "Hello.", "--device", "c") == ["cpu"]
    assert set(completed(shell, "nightingale", "voices", "--p")) >= {"--play"}
    assert completed(shell, "nightingale", "completion", "fi") == ["fish"]
    assert "--folder" in completed(shell, "nightingale", "voices", "remove", "--fo")
    assert completed(shell, "nightingale", "voices", "mi") == ["mix"]
    assert "--name" in completed(shell, "nightingale", "voices", "mix", "--na")


def test_zsh_reads_its_script_without_errors() -> None:
    if shutil.which("zsh") is None:
        pytest.skip("there is no zsh")
    lines = f"autoload -U compinit && compinit -u -D\n{script('zsh', cli._parser())}"
    shown = "typeset -f _nightingale >/dev/null && echo known"
    done = subprocess.run(["zsh", "-fc", lines + shown], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("known\n", "")


def test_the_command_prints_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert cli.main(["completion", shell]) == 0
        assert capsys.readouterr().out == script(shell, cli._parser())
