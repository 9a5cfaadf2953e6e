"""What an option is: its declaration, its checks, and which interfaces offer it.

Only the standard library is imported here and in options.py, so that tools/generate_options.py
needs no built package.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, TypeVar

Kind = TypeVar("Kind", bound="Options")
LARGEST_FLOAT = 3.4e38  # the core computes in float32
MOST_SHOWN = 200  # characters of a value in an error message
KINDS: dict[str, type] = {"int": int, "float": float, "bool": bool, "Path": Path}


@dataclass(frozen=True)
class Control:
    """How the server's page shows an option: a slider where there is a step, else a number."""

    label: str
    least: float | None = None  # None: the option's own bound
    most: float | None = None
    step: float | None = None


@dataclass(frozen=True)
class Option:
    """What is known of one option. `name`, `types` and `default` come from the field itself."""

    help: str
    range: tuple[float | None, float | None] = (None, None)  # at least, at most
    above: bool = False  # the lower bound itself is refused
    choices: tuple[int | str, ...] = ()
    unset: str = ""  # what None means
    fallback: Any = None  # in place of None where neither the model nor the voice has a value
    expected: str = ""  # in error messages, where the type and range do not say it well
    interfaces: tuple[str, ...] | None = None  # None: those of the class
    http_range: tuple[float, float] | None = None  # narrower, of HTTP requests
    by_name: str = ""  # help over HTTP, where it is a name that the server looks up, never a path
    control: Control | None = None  # on the page
    stage: str = "speech"  # "sound" and "chunks": without effect on speech tokens; "text"
    max_length: int = 200  # of a string over HTTP
    several: bool = False  # a list of values is accepted too
    metavar: str = "FILE"  # of an option with several values, on the command line
    model_checks: bool = False  # which values there are depends on the loaded model
    changes_audio: bool = True
    core: bool = True  # part of the C++ struct
    name: str = ""
    types: tuple[str, ...] = ()
    default: Any = None

    @property
    def kind(self) -> str:
        return self.types[0]

    @property
    def optional(self) -> bool:
        return "None" in self.types

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def plain_type(self) -> type:
        """The type of a value that comes as a word or as JSON: a voice is its name."""
        return KINDS.get(self.kind, str)

    @property
    def default_text(self) -> str:
        """The default in words: what None means, or the value."""
        if self.default is None:
            return self.unset
        return f"{self.default:g}" if self.kind == "float" else str(self.default)

    @property
    def values_text(self) -> str:
        """Which values are allowed, in words; empty where any are."""
        least, most = self.range
        if self.choices:
            return ", ".join(map(str, self.choices))
        if least is None:
            return ""
        if self.above:
            return f"above {least}" if most is None else f"above {least} and at most {most}"
        return f"{least} or more" if most is None else f"between {least} and {most}"

    def typed(self, value: Any) -> Any:
        """The value in the field's type; ValueError for one of another type."""
        if value is None and self.optional:
            return None
        if self.several and isinstance(value, (list, tuple)):
            return [replace(self, several=False).typed(each) for each in value]
        if self.choices:
            return self._chosen(value)
        if self.kind == "float":
            return number(self.name, value)
        if self.kind == "int":
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise self._refusal(self.expected or "a whole number", value)
            return int(value)
        if self.kind == "bool":
            if not isinstance(value, bool):
                raise self._refusal("True or False", value)
            return value
        accepted = (str, Path) if "Path" in self.types else str
        if not isinstance(value, accepted) or not str(value):
            raise self._refusal(self.expected or "a string", value)
        return value

    def checked(self, value: Any) -> Any:
        """The value in the field's type; ValueError for one that is not allowed."""
        if self.model_checks:
            return value
        value = self.typed(value)
        least, most = self.range
        if value is None or least is None:
            return value
        if most is None and self.kind == "float":
            most = LARGEST_FLOAT
        inside = value > least if self.above else value >= least
        if not inside or (most is not None and value > most):
            raise self._refusal(self.expected or self.values_text, value)
        return value

    def _chosen(self, value: Any) -> Any:
        comparable = isinstance(value, (str, Integral)) and not isinstance(value, bool)
        if not comparable or value not in self.choices:
            listed, numbers = self.values_text, self.kind == "int"
            raise self._refusal(f"{listed} or None" if numbers else f"one of {listed}", value)
        return self.choices[self.choices.index(value)]

    def _refusal(self, expected: str, value: Any) -> ValueError:
        return ValueError(f"{self.name} must be {expected}, not {shown(value)}")


def option(default: Any = MISSING, help: str = "", **details: Any) -> Any:
    """A field of an options class; `details` are those of Option."""
    return field(default=default, metadata={"option": Option(help, **details)})


def number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, not {shown(value)}")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{name} is a number of too many digits: {shown(value)}") from error


def shown(value: Any) -> str:
    """A value in an error message, cut where it is long."""
    try:
        text = repr(value)
    except Exception:  # of a whole number with thousands of digits, or the value's own
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def counted(count: int, noun: str) -> str:
    """A count and what is counted, for which an s makes the plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def whole(name: str, value: Any, least: int, most: int) -> int:
    return int(Option("", (least, most), name=name, types=("int",)).checked(value))


def options_of(kind: type[Options], interface: str | None = None) -> tuple[Option, ...]:
    """The options of a class in their order; of those only what an interface offers."""
    if kind not in _declared:
        _declared[kind] = tuple(
            replace(
                each.metadata["option"],
                name=each.name,
                types=tuple(str(each.type).split(" | ")),
                default=each.default,
            )
            for each in fields(kind)
            if "option" in each.metadata
        )
    declared = _declared[kind]
    return tuple(each for each in declared if interface is None or _offers(kind, each, interface))


_declared: dict[type, tuple[Option, ...]] = {}  # by class, once they have been asked for


def _offers(kind: type[Options], option: Option, interface: str) -> bool:
    if interface == "page":
        return option.control is not None
    if interface == "http" and "Path" in option.types and not option.by_name:
        return False
    return interface in (kind.INTERFACES if option.interfaces is None else option.interfaces)


def names_of(kind: type[Options], interface: str | None = None) -> tuple[str, ...]:
    return tuple(option.name for option in options_of(kind, interface))


@dataclass(frozen=True)
class Options:
    """What the classes of options share: values are checked when an object is made."""

    INTERFACES: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        for option in options_of(type(self)):
            object.__setattr__(self, option.name, option.checked(getattr(self, option.name)))

    @classmethod
    def merged(
        cls: type[Kind], function: str, options: Kind | None, overrides: Mapping[str, Any]
    ) -> Kind:
        """What a public function was given: an object, keywords, or keywords over an object."""
        if options is not None and not isinstance(options, cls):
            found = type(options).__name__
            raise TypeError(f"{function}() takes options of type {cls.__name__}, not {found}")
        known = names_of(cls)
        for name in overrides:
            if name not in known:
                nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
                raise TypeError(f"{function}() has no option {name!r}; did you mean {nearest!r}?")
        return replace(options or cls(), **overrides)
