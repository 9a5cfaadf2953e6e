"""Model files with 8-bit or 4-bit quantized matrices."""

from __future__ import annotations

import json
import math
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._core import Error, TensorFile
from .atomic_files import atomic_path
from .checkpoint import VOICES_FOLDER, Checkpoint
from .mlx_files import is_conversion
from .model_settings import SETTINGS_FILE
from .safetensors_writer import SAFETENSORS_DTYPES, safetensors_header
from .torch_file import open_tensors
from .voice import Voice

GROUP = 64  # columns that share a scale and a bias
VERSION = 1  # of what is noted in a file
NOTES = "nightingale"  # the key of the notes among a file's metadata
FEWEST_ROWS = 32

# What reads out or in and is small: the ends of S3Gen's networks.
S3GEN_FLOATS = re.compile(
    r"embedding|embed_affine|_proj\.weight$|conv_post|project_down|classifier|m_source|pos_bias"
)

PITCH = "f0_predictor"  # is summed up into phases, where its errors would grow

LEAST_TABLE = 1024  # numbers: what is smaller is not worth its scales

BitsOf = Callable[[TensorFile, str], int]
Progress = Callable[[int, int], None]
Layout = dict[str, tuple[str, tuple[int, ...]]]
QuantizedTensor = tuple[np.ndarray, np.ndarray, np.ndarray]  # packed uint32, float16 scales, biases


def t3_bits(bits: int) -> BitsOf:
    """Which bits T3 keeps a tensor in, 0 for floats."""
    return lambda _, name: _core.t3_bits(name, bits)


def s3gen_bits(file: TensorFile, name: str) -> int:
    """The same of S3Gen, the vocoder and the encoders: 8 for what products read."""
    shape = file.shape(name)
    fits = len(shape) > 1 and shape[0] >= FEWEST_ROWS and math.prod(shape[1:]) % GROUP == 0
    return 8 if fits and _may_be_quantized(file, name) and not S3GEN_FLOATS.search(name) else 0


def or_tables(bits_of: BitsOf) -> BitsOf:
    """And 8 for every other table, kernel and matrix that groups of 64 fill, but for the pitch."""

    def choose(file: TensorFile, name: str) -> int:
        shape = file.shape(name)
        size = math.prod(shape)
        fits = len(shape) > 1 and size >= LEAST_TABLE and size % GROUP == 0
        return bits_of(file, name) or (8 if fits and _may_be_quantized(file, name) else 0)

    return choose


def _may_be_quantized(file: TensorFile, name: str) -> bool:
    return "float" in file.dtype(name) and PITCH not in name


def write_quantized(
    source: Path,
    target: Path,
    bits_of: BitsOf,
    notes: dict[str, Any] | None = None,
    progress: Progress | None = None,
    made: Mapping[str, QuantizedTensor] | None = None,
) -> None:
    """Writes the model file `source` with the tensors that `bits_of` names quantized, the others as
    they are. The file appears whole, and on the disk, or not at all. made: quantized tensors for
    which there are better ones than the nearest."""
    if is_conversion(source):
        raise Error(
            f"{source} is a conversion for MLX: load it with bits, or quantize the official files"
        )
    file = open_tensors(source)
    if file.fewest_bits():
        raise Error(f"{source} is quantised already, in {file.fewest_bits()} bits")
    bits = {name: bits_of(file, name) for name in file.names()}
    layout: Layout = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for name in file.names():
        layout |= _parts(file, name, bits[name])
        if bits[name] and _code_rows(file.shape(name)) != file.shape(name):
            shapes[name] = file.shape(name)
    sums = dict.fromkeys(layout, "0" * 8)
    total, done = sum(math.prod(file.shape(name)) for name in file.names()), 0

    def header() -> bytes:
        noted = {"version": VERSION, "group": GROUP, **(notes or {})}
        text = json.dumps({**noted, "shapes": shapes, "crc32": sums}, separators=(",", ":"))
        return safetensors_header(layout, {"format": "mlx", NOTES: text})

    try:
        with atomic_path(target, durable=True) as unfinished, open(unfinished, "xb") as written:
            written.write(header())
            for name in file.names():
                for part, data in _stored(file, name, bits[name], (made or {}).get(name)):
                    sums[part] = _checksum(part, *layout[part], data)
                    written.write(data)
                done += math.prod(file.shape(name))
                if progress is not None:
                    progress(done, total)
            written.seek(0)
            written.write(header())  # now with the sums, which take the same room
    except OSError as error:
        raise Error(f"cannot write {target}: {error.strerror or error}") from error


def notes_of(path: Path) -> dict[str, Any] | None:
    """What `write_quantized` noted in a file, None where it wrote none."""
    text = TensorFile.open(str(path)).metadata(NOTES)
    notes: dict[str, Any] | None = None if text is None else json.loads(text)
    return notes


def convert_torch_files(checkpoint: Checkpoint) -> list[Path]:
    """Writes a .safetensors file, with the same elements, beside every torch file of a checkpoint;
    gives their paths. A voice becomes a voice file."""
    files = (checkpoint.t3, checkpoint.s3gen, checkpoint.voice_encoder, checkpoint.voice)
    written = []
    for path in files:
        if path is None or path.suffix != ".pt":
            continue
        target = path.with_suffix(".safetensors")
        if path == checkpoint.voice:
            Voice.load(path).save(target)
        else:
            write_quantized(path, target, lambda _file, _name: 0, {"source": {"name": path.name}})
        written.append(target)
    return written


def write_folder(
    checkpoint: Checkpoint,
    folder: Path,
    bits: int,
    s3gen: bool = False,
    tables: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    t3_bits_of: BitsOf | None = None,
    made: Mapping[str, QuantizedTensor] | None = None,
) -> None:
    """Makes `folder` a checkpoint of its own: T3 quantized to `bits`, with `s3gen` also S3Gen, the
    vocoder and the encoders in 8, with `tables` of all these files what else can be, and the other
    files copied. T3 comes last: a folder without it is not taken for a checkpoint. t3_bits_of:
    where not every matrix of T3 has `bits`; made: of T3, as `write_quantized` takes them"""
    if folder.resolve() == checkpoint.folder.resolve():
        raise Error(f"{folder} is the model's own folder; name another")
    coded = _coded_files(checkpoint, s3gen)
    copied = _copied_files(checkpoint, coded.values())
    targets = [folder / name for name in (*copied, *coded)]
    there = [target for target in targets if target.exists()]
    if there and not force:
        raise Error(f"{there[0]} exists; --force replaces it")
    sizes = {name: path.stat().st_size for name, path in (copied | coded).items()}
    done = size = 0

    def report(part: int, whole: int) -> None:
        if progress is not None:
            progress(done + size * part // whole, sum(sizes.values()))

    try:
        for name, path in copied.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(folder / name, durable=True) as unfinished:
                shutil.copyfile(path, unfinished)
            done += sizes[name]
            report(0, 1)
    except OSError as error:
        raise Error(f"cannot write {folder / name}: {error.strerror or error}") from error
    for name, path in coded.items():
        is_t3, size = path == checkpoint.t3, sizes[name]
        choice = (t3_bits_of or t3_bits(bits)) if is_t3 else s3gen_bits
        write_quantized(
            path,
            folder / name,
            or_tables(choice) if tables else choice,
            {"bits": bits if is_t3 else 8, "source": {"name": path.name, "size": size}},
            report,
            made if is_t3 else None,
        )
        done += size


def _coded_files(checkpoint: Checkpoint, s3gen: bool) -> dict[str, Path]:
    """Files to quantize by their names in the new folder, T3 last."""
    parts = [checkpoint.s3gen, checkpoint.voice_encoder] if s3gen else []
    files = [path for path in (*parts, checkpoint.t3) if path is not None]
    return {path.with_suffix(".safetensors").name: path for path in files}


def _copied_files(checkpoint: Checkpoint, coded: Iterable[Path]) -> dict[str, Path]:
    """The checkpoint's other files by their names in the new folder."""
    settings = checkpoint.folder / SETTINGS_FILE
    files = [
        *checkpoint.tokenizer_files,
        checkpoint.cangjie,
        checkpoint.dicta,
        checkpoint.s3gen,
        checkpoint.voice_encoder,
        checkpoint.voice,
        settings if settings.is_file() else None,
    ]
    written = set(coded)
    copied = {path.name: path for path in files if path is not None and path not in written}
    voices = {f"{VOICES_FOLDER}/{path.name}": path for path in checkpoint.voices.values()}
    return copied | voices


def _code_rows(shape: tuple[int, ...]) -> tuple[int, int]:
    """The rows and columns of a tensor when it is quantized."""
    rows, columns = shape[0], math.prod(shape[1:])
    return (rows, columns) if columns % GROUP == 0 else (rows * columns // GROUP, GROUP)


def _parts(file: TensorFile, name: str, bits: int) -> Layout:
    """What a tensor is stored as: itself, or quantized values with their scales and biases."""
    shape = file.shape(name)
    if bits == 0:
        return {name: (file.dtype(name), shape)}
    rows, columns = _code_rows(shape[::-1] if _core.t3_transposed(name) else shape)
    prefix = name.removesuffix(".weight")
    groups = ("float16", (rows, columns // GROUP))
    return {
        name: ("uint32", (rows, columns * bits // 32)),
        f"{prefix}.scales": groups,
        f"{prefix}.biases": groups,
    }


def _stored(
    file: TensorFile, name: str, bits: int, made: QuantizedTensor | None
) -> Iterable[tuple[str, memoryview]]:
    """The parts of a tensor and their bytes."""
    if bits == 0:
        return [(name, file.stored_bytes(name).data)]
    parts = _parts(file, name, bits)
    if made is None:
        arrays = file.quantize(name, bits, _core.t3_transposed(name))
        return zip(parts, (array.data for array in arrays), strict=True)
    for (part, expected), array in zip(parts.items(), made, strict=True):
        if (str(array.dtype), array.shape) != expected:
            raise ValueError(f"{part} is {expected}, not {array.dtype} {array.shape}")
    return zip(parts, (np.ascontiguousarray(array).data for array in made), strict=True)


def _checksum(name: str, dtype: str, shape: tuple[int, ...], data: memoryview) -> str:
    """As csrc/nightingale/io/safetensors.h says."""
    line = f"{name} {SAFETENSORS_DTYPES[dtype]} {list(shape)}"
    return f"{zlib.crc32(data, zlib.crc32(line.encode())):08x}"
