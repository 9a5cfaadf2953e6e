"""`completion`: what a shell completes of the `nightingale` command, as a script for it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .options import Arguments

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Command:
    """A command, or an action of one, and what can follow it."""

    words: tuple[str, ...]  # after `nightingale`
    help: str
    options: dict[str, tuple[str, ...]]  # flags with the values that they can have
    helps: dict[str, str]  # of the flags
    commands: tuple[str, ...]  # below it


def add_commands(commands: Any) -> None:
    completion = commands.add_parser("completion", help="print a script that completes commands")
    completion.add_argument("shell", choices=SHELLS)
    completion.set_defaults(run=_completion)


def _completion(args: Arguments) -> None:
    from . import _parser

    print(script(args.shell, _parser()), end="")


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The completion of a parser's commands for a shell."""
    found = list(_commands(parser, (), ""))
    if shell == "fish":
        return _fish(found)
    # zsh reads bash's completions.
    head = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return head + _bash(found)


def _commands(
    parser: argparse.ArgumentParser, words: tuple[str, ...], help: str
) -> Iterator[Command]:
    options: dict[str, tuple[str, ...]] = {}
    helps: dict[str, str] = {}
    below: dict[str, tuple[argparse.ArgumentParser, str]] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            told = {each.dest: each.help or "" for each in action._choices_actions}
            below = {name: (each, told.get(name, "")) for name, each in action.choices.items()}
        for flag in action.option_strings:
            options[flag] = tuple(map(str, action.choices or ()))
            helps[flag] = (action.help or "").partition(" (default")[0].replace("%%", "%")
        if not action.option_strings and action.choices and not below:
            options[""] = tuple(map(str, action.choices))
    yield Command(words, help, options, helps, tuple(below))
    for name, (each, told_help) in below.items():
        yield from _commands(each, (*words, name), told_help)


def _bash(commands: list[Command]) -> str:
    cases = []
    for command in commands:
        path = shlex.quote(" ".join(command.words))
        words = " ".join([*command.commands, *filter(None, command.options)])
        words = " ".join([words, *command.options.get("", ())])
        values = "".join(
            f"        {shlex.quote(flag)}) words={shlex.quote(' '.join(choices))} ;;\n"
            for flag, choices in command.options.items()
            if flag and choices
        )
        before = f'      case "$before" in\n{values}      esac\n' if values else ""
        cases.append(f"    {path})\n      words={shlex.quote(words)}\n{before}      ;;\n")
    paths = " ".join(shlex.quote(" ".join(each.words)) for each in commands if each.words)
    return f"""\
_nightingale() {{
  local word path= words= before="${{COMP_WORDS[COMP_CWORD-1]}}" known
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    for known in {paths}; do
      if [ "${{path:+$path }}$word" = "$known" ]; then path=$known; break; fi
    done
  done
  case "$path" in
{"".join(cases)}  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _nightingale nightingale
"""


def _fish(commands: list[Command]) -> str:
    lines = []
    for command in commands:
        condition = _fish_condition(command)
        for name in command.commands:
            below = next(each for each in commands if each.words == (*command.words, name))
            lines.append(f"{condition} -f -a {name} -d {_fish_quoted(below.help)}")
        for flag, choices in command.options.items():
            if not flag:
                lines.append(f"{condition} -f -a {_fish_quoted(' '.join(choices))}")
                continue
            kind = "-l" if flag.startswith("--") else "-s"
            values = f" -x -a {_fish_quoted(' '.join(choices))}" if choices else ""
            told = _fish_quoted(command.helps[flag])
            lines.append(f"{condition} {kind} {flag.lstrip('-')}{values} -d {told}")
    return "".join(f"complete -c nightingale {line}\n" for line in lines)


def _fish_condition(command: Command) -> str:
    seen = [f"__fish_seen_subcommand_from {word}" for word in command.words]
    if not seen:
        return "-n __fish_use_subcommand"
    return f"-n {_fish_quoted('; and '.join(seen))}"


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
