"""Synthesizes the evaluation sentences and prints the judge's scores beside the teacher's.

    python -m train.evaluate MODEL OUT --data DATA --judge JUDGE [--teacher TEACHER]
                             [--sets en,es,fr,it,pt,short,long,clone] [--limit N]
    python -m train.evaluate texts DATA TEXTS.jsonl

MODEL is a checkpoint folder; DATA has the sentences (train.evaluation_sentences); TEACHER and JUDGE
are made by their set-ups, with speak.py and score.py. Files in OUT are not made again, so a run can
be stopped and continued. The teacher's clips can be made once for all models, on a faster machine,
from the output of the second command:

    python TEACHER/speak.py TEACHER TEXTS.jsonl OUT/teacher --durations
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import soundfile

from .evaluation_sentences import LANGUAGES, evaluation_sentences
from .metrics import error_rate, judge, markdown, summary
from .options import command_parser
from .phonemizer import Phonemizer
from .short_texts import sentences as split
from .state import write_json
from .synthesis import Student, Teacher
from .voice_similarity import cloning_rows, is_reference, similarities

SPEAKERS = {  # accent and voice, used in turn
    "en": ("en-us af_heart", "en-us am_michael", "en-gb bf_emma", "en-gb bm_george"),
    "es": ("es ef_dora", "es em_alex"),
    "fr": ("fr ff_siwis",),
    "it": ("it if_sara", "it im_nicola"),
    "pt": ("pt pf_dora", "pt pm_alex"),
}
SHORT = {  # 100: single words, letters, figures and answers
    "en": """Hi. Yes. 42. No. Hello! Why? Stop! Thanks. Seven. Bread. A. B. F. S. W. X. 17. 100.
        2025. Goodbye. Yesterday. Window. Mother. Thumb. Strength. Squirrel. Through. Judge. Blue.
        Not now. Come here. Of course. Excuse me. Good night. Thank you. Really? Where? Wow! Two
        cups. Turn left.""",
    "es": """Hola. Sí. 42. Gracias. Pan. A. R. 17. ¿Dónde? Ventana. Ayer. Muy bien. Ahora no. Buenas
        noches. Perro.""",
    "fr": """Oui. Non. 42. Merci. Pain. A. R. 17. Pourquoi? Fenêtre. Hier. Très bien. Pas encore.
        Bonne nuit. Chien.""",
    "it": """Ciao. Sì. 42. Grazie. Pane. A. R. 17. Dove? Finestra. Ieri. Molto bene. Non ora. Buona
        notte. Cane.""",
    "pt": """Oi. Sim. 42. Obrigado. Casa. A. R. 17. Onde? Janela. Ontem. Muito bem. Agora não. Boa
        noite. Cachorro.""",
}
LONG_WORDS = 600
LONG_PARAGRAPH = 6  # sentences
SETS = (*LANGUAGES, "short", "long", "clone")


def rows_to_speak(data: Path) -> list[dict]:
    """All rows for the teacher's speak.py, with set and language."""
    sentences = evaluation_sentences(data)
    rows = [row for name in LANGUAGES for row in _rows(name, name, sentences[name])]
    rows += [row for name, texts in SHORT.items() for row in _rows("short", name, split(texts))]
    rows += cloning_rows(sentences)
    read = Phonemizer()
    return [row | {"phonemes": read(row["text"], row["lang"])} for row in rows]


def _rows(name: str, language: str, texts: Sequence[str]) -> list[dict]:
    speakers = itertools.cycle(speaker.split() for speaker in SPEAKERS[language])
    return [
        {
            "id": f"{name}-{language}-{number:03d}",
            "set": name,
            "language": language,
            "lang": accent,
            "voice": voice,
            "speed": 1.0,
            "text": " ".join(text.split()),
        }
        for number, (text, (accent, voice)) in enumerate(zip(texts, speakers, strict=False))
    ]


def write_texts(data: Path, out: Path) -> None:
    """Writes all rows for the teacher's speak.py."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows_to_speak(data)]
    out.write_text("".join(lines), encoding="utf-8")


def long_row(rows: list[dict]) -> tuple[dict, list[dict]]:
    """A text of LONG_WORDS words in paragraphs of English sentences, and their rows."""
    used, words = [], 0
    for row in rows:
        if row["set"] != "en" or words >= LONG_WORDS:
            break
        used.append(row)
        words += len(row["text"].split())
    starts = range(0, len(used), LONG_PARAGRAPH)
    paragraphs = [" ".join(row["text"] for row in used[i : i + LONG_PARAGRAPH]) for i in starts]
    row = used[0] | {"id": "long-en-000", "set": "long", "text": "\n\n".join(paragraphs)}
    return row, used


def seconds(wav: Path) -> float:
    return soundfile.info(wav).duration


class Evaluation:
    """Scores of the student's and the teacher's clips."""

    def __init__(self, student: Student, teacher: Teacher, judge_folder: Path, out: Path) -> None:
        self._student, self._teacher = student, teacher
        self._judge, self._scores = judge_folder, out / "scores.jsonl"

    def sentences(self, rows: list[dict]) -> dict[str, dict]:
        """Summaries by set."""
        teacher = self._teacher.synthesize(rows)
        student = {row["id"]: self._student.synthesize(row) for row in rows}
        original = self._judged("teacher", rows, teacher)
        copy = self._judged("student", rows, student)
        ids = defaultdict(list)
        for row in rows:
            ids[row["set"]].append(row["id"])
        return {
            name: summary(
                [copy[id] for id in found],
                [original[id] for id in found],
                [seconds(student[id]) / seconds(teacher[id]) for id in found],
            )
            for name, found in ids.items()
        }

    def recognition_errors(self, rows: list[dict]) -> list[tuple[str, str]]:
        """The student's clips that Whisper recognized wrongly: text, transcript."""
        clips = {row["id"]: self._student.synthesize(row) for row in rows}
        pairs = [
            (row["text"], row["whisper"]) for row in self._judged("student", rows, clips).values()
        ]
        return [pair for pair in pairs if pair[0] != pair[1]]

    def long_text(self, rows: list[dict]) -> dict:
        """A long text: its errors, and its duration relative to the teacher's single sentences."""
        row, sentences = long_row(rows)
        wav = self._student.synthesize(row)
        scores = self._judged("student", [row], {row["id"]: wav})[row["id"]]
        alone = self._teacher.synthesize(sentences).values()
        return {
            "words": len(row["text"].split()),
            "wer_whisper": error_rate([scores], "whisper"),
            "mos": scores["mos"],
            "duration_ratio": round(seconds(wav) / sum(map(seconds, alone)), 3),
        }

    def cloning(self, rows: list[dict]) -> dict[str, dict[str, float]]:
        """Similarities of the held-out voices and their clones."""
        teacher = self._teacher.synthesize(rows)
        references = {row["voice"]: teacher[row["id"]] for row in rows if is_reference(row)}
        clones, originals = defaultdict(list), defaultdict(list)
        for row in rows:
            if not is_reference(row):
                clones[row["voice"]].append(self._student.synthesize(row, references[row["voice"]]))
                originals[row["voice"]].append(teacher[row["id"]])
        return similarities(references, clones, originals)

    def _judged(self, who: str, rows: list[dict], wavs: dict[str, Path]) -> dict[str, dict]:
        """The judge's rows by id."""
        clips = {
            f"{who}/{row['id']}": (wavs[row["id"]], row["language"], " ".join(row["text"].split()))
            for row in rows
        }
        found = judge(clips, self._judge, self._scores)
        return {name.partition("/")[2]: row for name, row in found.items()}


def evaluate(evaluation: Evaluation, rows: list[dict], sets: set[str], limit: int | None) -> dict:
    """The results of the sets, with the first `limit` sentences of each language."""

    def chosen(name: str) -> list[dict]:
        found = [row for row in rows if row["set"] == name]
        return found[:limit] if name in LANGUAGES else found

    spoken = [row for name in (*LANGUAGES, "short") if name in sets for row in chosen(name)]
    found = {"sentences": evaluation.sentences(spoken)}
    if "short" in sets:
        found["recognition_errors"] = evaluation.recognition_errors(chosen("short"))
    if "long" in sets:
        found["long"] = evaluation.long_text(rows)
    if "clone" in sets:
        found["clone"] = evaluation.cloning(chosen("clone"))
    return found


def to_markdown(found: dict) -> str:
    """The results of `evaluate` as tables."""
    parts = [markdown(found["sentences"])] if found["sentences"] else []
    if found.get("recognition_errors"):
        pairs = [
            f"- {said!r} was heard as {heard!r}" for said, heard in found["recognition_errors"]
        ]
        parts.append("Short texts:\n\n" + "\n".join(pairs) + "\n")
    if "long" in found:
        facts = [f"{name} {value}" for name, value in found["long"].items()]
        parts.append("Long text: " + ", ".join(facts) + "\n")
    if "clone" in found:
        voices = found["clone"]
        keys = ("clone", "others", "itself")
        mean = {key: round(statistics.mean(v[key] for v in voices.values()), 3) for key in keys}
        lines = ["| voice | to its clone | to other clones | to itself |", "|---|---|---|---|"]
        for voice, cosines in (voices | {"mean": mean}).items():
            lines.append(f"| {voice} | " + " | ".join(str(cosines[key]) for key in keys) + " |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["texts"]:
        parser = command_parser("evaluate texts", write_texts.__doc__, "data", "out")
        write_texts(**vars(parser.parse_args(arguments[1:])))
        return
    parser = command_parser("evaluate", __doc__, "model", "out")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--judge", type=Path, required=True)
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--limit", type=int, help="sentences of each language; default: all")
    options = parser.parse_args(arguments)
    sets = set(options.sets.split(","))
    if not sets <= set(SETS):
        parser.error(f"sets are {', '.join(SETS)}, not {options.sets}")
    options.out.mkdir(parents=True, exist_ok=True)
    student = Student(options.out, options.model)
    evaluation = Evaluation(
        student, Teacher(options.out, options.teacher), options.judge, options.out
    )
    found = evaluate(evaluation, rows_to_speak(options.data), sets, options.limit)
    write_json(options.out / "evaluation.json", found)
    (options.out / "evaluation.md").write_text(to_markdown(found), encoding="utf-8")
    print(to_markdown(found))


if __name__ == "__main__":
    main(sys.argv[1:])
