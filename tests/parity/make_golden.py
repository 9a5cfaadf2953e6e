"""Regenerates golden/*.npz from the PyTorch reference on the small synthetic checkpoints.

    NIGHTINGALE_REFERENCE_PYTHON=... python -m tests.parity.make_golden

Arrays are named "case/output"; tables over many cases are concatenated, with `lengths` to split.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from nightingale.checkpoint import CANGJIE_TABLE
from nightingale.family import MULTILINGUAL_TOKENIZER
from tools.reference.client import run_reference
from tools.synthetic import write_checkpoint

from . import cases, conversion_cases, text_cases, turbo_runs, voice_cases

GOLDEN = Path(__file__).with_name("golden")
ANALYSER_CASES = 60
SAMPLER_CASES = 60
TURBO_SAMPLER_CASES = 24
DECODE_CASES = 2
FULL_LOGITS = (0, 1, 5)  # logits cases of which the last position is kept whole

Arrays = dict[str, np.ndarray]


def conditioning(folder: str) -> Arrays:
    jobs = [
        {"name": "prompt", "kind": "conditioning", "folder": folder},
        {"name": "no_prompt", "kind": "conditioning", "folder": folder, "prompt": False},
        {"name": "emotion", "kind": "conditioning", "folder": folder, "emotion": 1.5},
    ]
    return run_reference(jobs)


def logits(folder: str) -> Arrays:
    jobs = [
        {"name": str(i), "kind": "logits", "folder": folder, **cases.logits_case(i)}
        for i in range(len(cases.LOGITS_CORNERS))
    ]
    results = run_reference(jobs)
    golden: Arrays = {}
    for i in range(len(jobs)):
        case = results[f"{i}/logits"]
        golden |= {f"{i}/{key}": value for key, value in cases.logits_digest(case).items()}
        if i in FULL_LOGITS:
            golden[f"{i}/last"] = case[:, -1]
    return golden


def decode(folder: str) -> Arrays:
    jobs = [
        {"name": str(i), "kind": "decode", "folder": folder, **cases.decode_case(i)}
        for i in range(DECODE_CASES)
    ]
    analysed = {"name": "analysed", "kind": "decode", "folder": folder}
    return run_reference([*jobs, analysed | cases.analysed_decode_case()])


def members(folders: dict[str, str]) -> Arrays:
    golden: Arrays = {}
    for model, vocabulary in cases.MEMBERS.items():
        forced, decoded = cases.member_cases(vocabulary)
        job = {"folder": folders[model]}
        results = run_reference(
            [
                {"name": "logits", "kind": "logits", **job, **forced},
                {"name": "decode", "kind": "decode", **job, **decoded},
            ]
        )
        digest = cases.logits_digest(results["logits/logits"])
        golden |= {f"{model}/{key}": value for key, value in digest.items()}
        golden |= {f"{model}/{key}": results[f"decode/{key}"] for key in ("tokens", "gaps")}
    return golden


def v1_text(folder: str) -> Arrays:
    """As chatterbox-tts 0.1.4 reads, whose only checkpoint v1 is."""
    kept = [text_cases.text_case(i) for i in text_cases.GOLDEN]
    job = {
        "name": "v1",
        "kind": "text_ids",
        "tokenizer": f"{folder}/mtl_tokenizer.json",
        "cangjie": f"{folder}/{CANGJIE_TABLE}",
        "texts": [case.text for case in kept],
        "languages": [case.language for case in kept],
        "as_written": True,
    }
    return run_reference([job])


def analyser() -> Arrays:
    scripts = [cases.analyser_case(i) for i in range(ANALYSER_CASES)]
    jobs = [
        {"name": str(i), "kind": "analyse", "heads": script.heads, "tokens": script.tokens}
        for i, script in enumerate(scripts)
    ]
    golden = concatenate(run_reference(jobs), len(jobs))
    return {**golden, "lengths": np.array([len(script.tokens) for script in scripts], np.int32)}


def sampler() -> Arrays:
    jobs = [
        {"name": str(i), "kind": "sample", **cases.sampler_case(i)} for i in range(SAMPLER_CASES)
    ]
    results = run_reference(jobs)
    probabilities = np.stack([results[f"{i}/probabilities"] for i in range(len(jobs))])
    most_likely = np.argsort(-probabilities, axis=1, kind="stable")[:, :8]
    return {
        "kept": np.packbits(probabilities > 0, axis=1),
        "ids": most_likely.astype(np.int32),
        "probabilities": np.take_along_axis(probabilities, most_likely, axis=1),
    }


def turbo(folder: str) -> Arrays:
    """T3 of Turbo and Nano: logits, greedy tokens; and Turbo's sampling."""
    golden: Arrays = {}
    for model in turbo_runs.MODELS:
        common = {"checkpoint": turbo_runs.write_t3(Path(folder), model)}
        jobs: list[dict[str, Any]] = [
            {"name": f"{model}/{i}", "kind": "turbo_logits", **common, **turbo_runs.logits_case(i)}
            for i in range(len(turbo_runs.LOGITS_CORNERS))
        ]
        decode = {"name": f"{model}/greedy", "kind": "turbo_decode", **common}
        results = run_reference([*jobs, decode | turbo_runs.decode_case(0)])
        for i in range(len(jobs)):
            digest = turbo_runs.digest(results[f"{model}/{i}/logits"])
            golden |= {f"{model}/{i}/{key}": value for key, value in digest.items()}
        golden |= {f"{model}/{key}": results[f"{model}/greedy/{key}"] for key in ("tokens", "gaps")}
    return golden | turbo_sampler()


def turbo_sampler() -> Arrays:
    jobs = [
        {"name": str(i), "kind": "turbo_sample", **turbo_runs.sampler_case(i)}
        for i in range(TURBO_SAMPLER_CASES)
    ]
    results = run_reference(jobs)
    golden: Arrays = {}
    for step in ("first", "later"):
        probabilities = np.stack([results[f"{i}/{step}"] for i in range(len(jobs))])
        most_likely = np.argsort(-probabilities, axis=1, kind="stable")[:, :8]
        golden |= {
            f"{step}/kept": np.packbits(probabilities > 0, axis=1),
            f"{step}/ids": most_likely.astype(np.int32),
            f"{step}/probabilities": np.take_along_axis(probabilities, most_likely, axis=1),
        }
    return golden


def tokenizer(multilingual: str, english: str) -> Arrays:
    languages, texts = zip(*cases.TOKENIZER_TEXTS, strict=True)
    english_texts = [text for language, text in cases.TOKENIZER_TEXTS if language == "en"]
    jobs: list[dict[str, Any]] = [
        {
            "name": "multilingual",
            "kind": "tokenize",
            "folder": multilingual,
            "texts": texts,
            "languages": languages,
        },
        {
            "name": "english",
            "kind": "tokenize",
            "folder": english,
            "texts": english_texts,
            "languages": [None] * len(english_texts),
        },
    ]
    return run_reference(jobs)


def text(multilingual: str, english: str) -> Arrays:
    kept = [text_cases.text_case(i) for i in text_cases.GOLDEN]
    jobs: list[dict[str, Any]] = [
        {
            "name": "multilingual",
            "kind": "text_ids",
            "tokenizer": f"{multilingual}/{MULTILINGUAL_TOKENIZER}",
            "cangjie": f"{multilingual}/{CANGJIE_TABLE}",
            "texts": [case.text for case in kept],
            "languages": [case.language for case in kept],
        },
        {
            "name": "english",
            "kind": "text_ids",
            "tokenizer": f"{english}/tokenizer.json",
            "texts": [text_cases.text_case(i).text for i in text_cases.ENGLISH_GOLDEN],
        },
    ]
    return run_reference(jobs)


def mel(multilingual: str, meanflow: str) -> Arrays:
    jobs = [
        {"name": str(i), "kind": "mel", "folder": multilingual, **cases.mel_case(run, i)}
        for i, run in enumerate(cases.MEL_CORNERS)
    ]
    jobs += [
        {"name": f"meanflow{i}", "kind": "mel", "folder": meanflow, **cases.mel_case(run, i)}
        for i, run in enumerate(cases.MEANFLOW_RUNS)
    ]
    return run_reference(jobs)


def vocoder(folder: str) -> Arrays:
    jobs = [
        {"name": str(frames), "kind": "vocode", "folder": folder, **cases.vocoder_case(frames)}
        for frames in cases.VOCODER_FRAMES
    ]
    results = run_reference(jobs)
    return {key: value for key, value in results.items() if not key.endswith("/source")}


def voice(folder: str) -> Arrays:
    with tempfile.TemporaryDirectory() as recordings:
        jobs = [
            {
                "name": recording.name,
                "kind": "bake",
                "folder": folder,
                "recording": recording.write(Path(recordings)),
            }
            for recording in voice_cases.KEPT
        ]
        results = run_reference(jobs)
    for name in results:
        if name.endswith("/prompt_feat"):
            results[name] = voice_cases.kept_frames(results[name])
    return results


def conversion(folder: str) -> Arrays:
    with tempfile.TemporaryDirectory() as place:
        short = {case.name: case.write(Path(place)) for case in conversion_cases.SHORT}
        long = conversion_cases.LONG
        jobs = conversion_cases.jobs(folder, short, mels=True)
        jobs += conversion_cases.jobs(folder, {long.name: long.write(Path(place))}, mels=False)
        results = run_reference(jobs)
    kept = {name: value for name, value in results.items() if not name.endswith("/code")}
    for name in kept:
        if name.endswith("/mel"):
            kept[name] = voice_cases.kept_frames(kept[name].T).T
        else:
            kept[name] = kept[name].astype(np.int32)
    return kept


def concatenate(results: Arrays, count: int) -> Arrays:
    """Joins "0/x", "1/x", … end to end as "x"."""
    names = sorted({key.split("/")[1] for key in results})
    return {name: np.concatenate([results[f"{i}/{name}"] for i in range(count)]) for name in names}


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        multilingual, english = f"{folder}/multilingual", f"{folder}/english"
        meanflow = f"{folder}/meanflow"
        write_checkpoint(multilingual)
        write_checkpoint(english, model="english")
        write_checkpoint(v1 := f"{folder}/v1", model="multilingual-v1")
        write_checkpoint(meanflow, meanflow=True)
        golden = {
            "conditioning": conditioning(multilingual),
            "logits": logits(multilingual),
            "decode": decode(multilingual),
            "members": members({"english": english, "multilingual-v1": v1}) | v1_text(v1),
            "analyser": analyser(),
            "sampler": sampler(),
            "tokenizer": tokenizer(multilingual, english),
            "text": text(multilingual, english),
            "mel": mel(multilingual, meanflow),
            "vocoder": vocoder(multilingual),
            "voice": voice(multilingual),
            "turbo": turbo(folder),
            "conversion": conversion(multilingual),
        }
    for name, arrays in golden.items():
        np.savez_compressed(GOLDEN / f"{name}.npz", **arrays)


if __name__ == "__main__":
    main()
