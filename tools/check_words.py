"""Checks names, comments and documents for words that the project has replaced by the field's own.

    python tools/check_words.py [FILE]...

Checks the given files, or all files of the repository. Prints what it finds and what to write
instead, and exits with 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Data, pictures and sound are not checked; neither are the files that list the words.
DATA = {".json", ".jsonl", ".npz", ".png", ".safetensors", ".svg", ".txt.xz", ".wav"}
LISTS = {"tools/check_words.py", "tests/test_check_words.py"}

CPP = ("csrc/*", "metal/*", "bench/ops/*")
OPS = (
    *("csrc/nightingale/ops/*", "csrc/nightingale/backends/*", "metal/*"),
    *("csrc/tests/ops/*", "csrc/tests/backends/*"),
)
DOCUMENTS = ("docs/*.md", "README.md")


@dataclass(frozen=True)
class Rule:
    """A word that is not used. `ending` is a pattern of what may follow it, such as "s?"."""

    word: str
    instead: str
    ending: str = ""
    where: tuple[str, ...] = ("*",)  # paths, as fnmatch has them: a star also stands for slashes
    why_there: str = ""  # why it is refused there alone


@dataclass(frozen=True)
class Allowed:
    """Where a word of the rules is right, and why."""

    word: str
    where: str  # a path, as in Rule
    reason: str


# Words are found in identifiers of any style: "twin" in `kTwin`, `twin_of` and `TWIN`. Words with a
# space are phrases, also across lines of a comment.
RULES = (
    Rule("twin", "reference implementation", "s?"),
    Rule("codes", "quantized weights"),
    Rule("code_linear", "quantized_linear"),
    Rule("piece", "ceil_div for a count; chunk, segment, frames or part", "s?"),
    Rule("fed", "StreamOutput", where=CPP, why_there="an English word elsewhere"),
    Rule(
        *("finish", "epilogue; end, complete", "(?:es|ed|ing)?", OPS + DOCUMENTS),
        "an ordinary word for what ends in other code: files, requests, playback",
    ),
    Rule(
        *("forms", "backend_ops; kinds, spellings", "", CPP + DOCUMENTS),
        "an English word, and HTML's, in other code",
    ),
    Rule("pace", "EvalThrottle for how far the host runs ahead; speed, seconds", "s?"),
    Rule(
        *("place_of", "cache_position; position_of, location_of", "", CPP),
        "part of `in_place_of_...` in the names of tests",
    ),
    Rule("takes_gemv", "can_use_gemv"),
    Rule("let_caches_forget", "disable_mlx_cache_thrash_check"),
    Rule("rehears", "fork_for_draft", "(?:al|als|e|es|ed|ing)"),
    Rule("skim", "forward_layers", "(?:s|med|ming)?"),
    Rule("ear", "phoneme_classifier; listener", "s?"),
    Rule("descent", "nan_guard", "s?"),
    Rule(
        *("recorded", "cuda_graph, captured", "", ("train/*", *DOCUMENTS)),
        "in other code steps and speech are recorded",
    ),
    Rule("abreast", "parallel_streams"),
    Rule("let_anyone_in", "allow_unauthenticated"),
    Rule("let-anyone-in", "--allow-unauthenticated"),
    Rule("grace", "shutdown_timeout"),
    Rule("times real time", "real-time factor, and whether it is faster or slower"),
    Rule("mishear", "word error rate (WER); recognition errors", "s?"),
    Rule("misheard", "word error rate (WER); recognition errors"),
    Rule("words in a hundred", "word error rate (WER) in percent"),
    Rule("likeliest", "most likely; min-p: relative to the most likely token"),
    Rule("in any company", "results are batch-invariant"),
)

ALLOWED = (
    Allowed("codes", "python/nightingale/checkpoint.py", "codes of languages and Cangjie codes"),
    Allowed("codes", "python/nightingale/model_settings.py", "codes of languages"),
    Allowed("codes", "python/nightingale/tts.py", "codes of languages"),
    Allowed("codes", "python/nightingale/text/*", "Cangjie codes"),
    Allowed("codes", "tests/test_text_front_ends.py", "Cangjie codes"),
    Allowed("codes", "tests/test_torch_pickle.py", "extension codes of the pickle format"),
    Allowed("codes", "tools/synthetic/*", "Cangjie codes; the codes of the speech tokenizer"),
    Allowed("codes", "train/*", "the codes of the speech tokenizer (FSQ)"),
    Allowed("codes", "tests/test_errors.py", "a message about codes of languages"),
    Allowed("codes", "tests/test_text_english.py", "codes in telephone numbers"),
    Allowed("codes", "tools/reference/*", "the term of the reference's speech tokenizer"),
    Allowed("recorded", "train/vocoder*.py", "recorded speech, as opposed to synthesized"),
    Allowed("recorded", "train/networks/discriminators.py", "recorded speech, as above"),
)


@dataclass(frozen=True)
class Finding:
    path: str
    line: int  # 0: the path itself
    rule: Rule

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else f"{self.path} (its name)"
        return f"{place}: {self.rule.word!r}; write: {self.rule.instead}"


def pattern(rule: Rule) -> re.Pattern[str]:
    """Matches the word on its own and as a part of an identifier."""
    if " " in rule.word:
        gap = r"[\s/#*-]+"
        return re.compile(rf"\b{gap.join(rule.word.split())}\b", re.IGNORECASE)
    first, rest = re.escape(rule.word[0]), re.escape(rule.word[1:])
    capital = first.upper()
    # Not `in_place_of` for place_of.
    begin = r"(?<![A-Za-z_])" if "_" in rule.word else r"(?<![A-Za-z])"
    return re.compile(
        rf"(?:{begin}[{first}{capital}]|(?<=[a-z0-9]){capital}){rest}{rule.ending}(?![a-z])"
        rf"|(?<![A-Za-z]){re.escape(rule.word.upper())}S?(?![A-Za-z])"
    )


def check(root: Path, paths: Iterable[str]) -> tuple[list[Finding], list[Allowed]]:
    """What the files have that is neither plain nor allowed, and the exceptions that nothing
    needs. paths: relative to the root."""
    found = [(finding, _allowing(finding)) for finding in _all(root, paths)]
    needed = [allowed for _, allowed in found]
    return (
        [finding for finding, allowed in found if allowed is None],
        [allowed for allowed in ALLOWED if allowed not in needed],
    )


def _all(root: Path, paths: Iterable[str]) -> Iterator[Finding]:
    patterns = [(rule, pattern(rule)) for rule in RULES]
    for path in paths:
        if path in LISTS or Path(path).suffix in DATA:
            continue
        text = (root / path).read_text("utf-8")
        lower = f"{path}\n{text}".lower()
        for rule, words in patterns:
            # Most files have none of the words, which this finds much faster than the pattern.
            if rule.word.split()[0] not in lower:
                continue
            if not any(fnmatchcase(path, where) for where in rule.where):
                continue
            if words.search(path):
                yield Finding(path, 0, rule)
            for found in words.finditer(text):
                yield Finding(path, text.count("\n", 0, found.start()) + 1, rule)


def _allowing(found: Finding) -> Allowed | None:
    for allowed in ALLOWED:
        if allowed.word == found.rule.word and fnmatchcase(found.path, allowed.where):
            return allowed
    return None


def repository_files() -> list[str]:
    """Files that git tracks or would, and that exist."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(path for path in set(listed.splitlines()) if (ROOT / path).is_file())


def main(arguments: list[str]) -> int:
    given = [Path(name).resolve().relative_to(ROOT).as_posix() for name in arguments]
    paths = given or repository_files()
    findings, unused = check(ROOT, paths)
    problems = [str(finding) for finding in findings]
    if not given:
        problems += [
            f"tools/check_words.py: nothing needs {allowed.word!r} in {allowed.where} any more"
            for allowed in unused
        ]
    print("\n".join(problems) or "no word of the list in names, comments and documents")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
