"""Torch archives: which tensors are found in them, and that damage does not pass unnoticed."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale import _core
from nightingale.torch_file import open_tensors, read_directory, read_entry

from .torch_writers import PickleWriter, ZipWriter, torch_archive

TWELVE = np.arange(12, dtype="<f4")


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "model.pt"
        path.write_bytes(data)
        return path

    return write


Write = Callable[[bytes], Path]


def open_error(path: Path) -> str:
    """The message of the Error that refuses a file."""
    with pytest.raises(nightingale.Error) as caught:
        open_tensors(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def one_tensor(offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> bytes:
    """{"w": tensor} over a storage of the floats 0..11."""
    pickle = PickleWriter().raw(b"}").text("w")
    pickle.tensor("FloatStorage", "0", 12, offset, shape, strides).raw(b"s")
    return torch_archive(pickle.finish(), {"0": TWELVE.tobytes()})


@pytest.mark.parametrize(
    ("offset", "shape", "strides", "expected"),
    [
        (0, (3, 4), (4, 1), range(12)),
        (0, (4, 3), (1, 4), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]),
        (5, (2, 2), (4, 2), [5, 7, 9, 11]),
        (4, (4,), (1,), [4, 5, 6, 7]),
        (3, (2, 2), (0, 0), [3, 3, 3, 3]),
        (7, (), (), [7]),
        (0, (0, 4), (4, 1), []),
        (8, (1, 4), (999, 1), [8, 9, 10, 11]),  # torch does not use the stride of one
    ],
)
def test_a_tensor_is_read_by_offset_and_strides(
    write: Write,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    expected: list[int],
) -> None:
    found = open_tensors(write(one_tensor(offset, shape, strides))).read("w")
    assert found.shape == shape
    assert found.reshape(-1).tolist() == list(expected)


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [
        (1, (3, 4), (4, 1)),
        (-1, (2,), (1,)),
        (0, (2,), (-1,)),
        (12, (1,), (1,)),
        (2**63 - 1, (1,), (1,)),
        (0, (2,), (2**63 - 1,)),
        (0, (2, 2), (2**63 - 1, 2**63 - 1)),
        (0, (3,), (2**62,)),
    ],
)
def test_a_tensor_may_not_reach_outside_its_storage(
    write: Write, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    message = open_error(write(one_tensor(offset, shape, strides)))
    assert "tensor 'w'" in message
    assert "reaches outside its storage of 12 elements" in message


def test_sizes_that_no_tensor_has(write: Write) -> None:
    repeated = open_error(write(one_tensor(0, (1 << 30, 1 << 10), (0, 0))))
    assert "tensor 'w' of shape [1073741824, 1024] repeats a few stored elements" in repeated
    assert "dimension of -1" in open_error(write(one_tensor(0, (-1,), (1,))))


def test_tensors_can_share_a_storage_and_differ_in_type(write: Write) -> None:
    pickle = PickleWriter().raw(b"}(")
    pickle.text("a").tensor("FloatStorage", "0", 12, 0, [12], [1])
    pickle.text("b").tensor("FloatStorage", "0", 12, 6, [2], [1])
    pickle.text("ids").tensor("LongStorage", "1", 2, 0, [2], [1])
    pickle.text("flags").tensor("BoolStorage", "2", 3, 0, [3], [1])
    pickle.text("bf").tensor("BFloat16Storage", "3", 1, 0, [1], [1]).raw(b"u")
    storages = {
        "0": TWELVE.tobytes(),
        "1": struct.pack("<2q", -7, 6561),
        "2": b"\x01\x00\x01",
        "3": b"\xc0\x3f",
    }
    file = open_tensors(write(torch_archive(pickle.finish(), storages)))
    assert file.read("a").tolist() == list(range(12))
    for _ in range(2):  # the second time, the sum is known
        assert file.read("b").tolist() == [6, 7]
    assert file.read("bf").tolist() == [1.5]
    assert file.read("ids").tolist() == [-7, 6561]
    assert file.stored_bytes("flags").tolist() == [1, 0, 1]
    assert [file.dtype(name) for name in file.names()] == [
        "float32", "float32", "bfloat16", "bool", "int64"
    ]  # fmt: skip


def test_nested_dictionaries_become_dotted_names_and_numbers_scalars(write: Write) -> None:
    pickle = PickleWriter().raw(b"}(").text("t3").raw(b"}(").text("speaker_emb")
    pickle.tensor("FloatStorage", "0", 12, 0, [1, 12], [12, 1])
    pickle.text("clap_emb").raw(b"Nu").text("gen").raw(b"}(")
    pickle.text("prompt_token_len").integer(150)
    pickle.text("prompt_feat_len").raw(b"N").text("note").text("hello")
    pickle.text("loud").raw(b"\x88").text("list").raw(b"]K\x05a")
    pickle.text("gain").raw(b"G\x3f\xe0\x00\x00\x00\x00\x00\x00uu")
    file = open_tensors(write(torch_archive(pickle.finish(), {"0": TWELVE.tobytes()})))
    assert file.names() == ["t3.speaker_emb"]
    assert file.shape("t3.speaker_emb") == (1, 12)
    assert file.scalar("gen.prompt_token_len") == 150
    assert file.scalar("gen.gain") == 0.5
    assert file.scalar("gen.loud") == 1
    assert file.scalar("gen.list.0") == 5
    assert file.scalar("gen.prompt_feat_len") is None


@pytest.mark.parametrize(("before", "after"), [(b"", b""), (b"]", b"a")])
@pytest.mark.parametrize("key", ["model", "state_dict"])
def test_a_wrapper_around_the_state_dict_is_taken_off(
    write: Write, key: str, before: bytes, after: bytes
) -> None:
    pickle = PickleWriter().raw(b"}").text(key).raw(before + b"}").text("w")
    pickle.tensor("FloatStorage", "0", 12, 0, [12], [1]).raw(b"s" + after + b"s")
    path = write(torch_archive(pickle.finish(), {"0": TWELVE.tobytes()}))
    assert open_tensors(path).names() == ["w"]


def test_two_tensors_may_not_flatten_to_one_name(write: Write) -> None:
    pickle = PickleWriter().raw(b"}(").text("a.b")
    pickle.tensor("FloatStorage", "0", 12, 0, [12], [1]).text("a").raw(b"}")
    pickle.text("b").tensor("FloatStorage", "0", 12, 0, [12], [1]).raw(b"su")
    path = write(torch_archive(pickle.finish(), {"0": TWELVE.tobytes()}))
    assert "the name 'a.b' appears twice" in open_error(path)


def test_an_archive_must_be_whole(write: Write) -> None:
    pickle = PickleWriter().raw(b"}").text("w")
    data = pickle.tensor("FloatStorage", "0", 12, 0, [12], [1]).raw(b"s").finish()
    missing = "tensor 'w' needs zip entry 'archive/data/0', which is missing"
    assert missing in open_error(write(torch_archive(data)))
    short = "needs a storage of 12 elements, zip entry 'archive/data/0' has 44 bytes"
    assert short in open_error(write(torch_archive(data, {"0": TWELVE.tobytes()[4:]})))
    readme = ZipWriter().add("archive/readme", b"hi").finish()
    assert "found no <name>/data.pkl" in open_error(write(readme))
    two = ZipWriter().add("a/data.pkl", data).add("b/data.pkl", data).finish()
    assert "more than one <name>/data.pkl" in open_error(write(two))
    big = ZipWriter().add("a/data.pkl", data).add("a/byteorder", b"big").finish()
    assert "the byte order is 'big', expected 'little'" in open_error(write(big))
    assert "before torch 1.6; to convert it" in open_error(write(b"\x80\x02\x8a\x0arest"))
    refused = torch_archive(PickleWriter().name("os", "system").finish())
    assert "archive/data.pkl: pickle byte 2: refuses" in open_error(write(refused))


def test_the_core_alone_says_how_to_convert(write: Write) -> None:
    with pytest.raises(nightingale.Error, match="nightingale pull --convert"):
        _core.TensorFile.open(str(write(one_tensor(0, (12,), (1,)))))


# Containers that would be walked for ever.


def archive_error(write: Write, pickle: PickleWriter) -> str:
    return open_error(write(torch_archive(pickle.finish())))


def test_a_memo_bomb_ends_in_an_error_not_in_2_64_visits(write: Write) -> None:
    nested = PickleWriter().raw(b"}").text("a").raw(b"]")
    for level in range(1, 60):  # each tuple holds the one before it twice
        nested.raw(b"q%ch%c\x86" % (level, level))
    assert "repeat without end" in archive_error(write, nested.raw(b"s"))


def test_containers_nested_too_deep_or_in_themselves_are_errors(write: Write) -> None:
    deep = PickleWriter().raw(b"}").text("a").raw(b"N" + b"\x85" * 100_000 + b"s")
    assert "nest deeper than 64 levels" in archive_error(write, deep)
    itself = PickleWriter().raw(b"}q\x01").text("a").raw(b"h\x01s")
    assert "contain themselves" in archive_error(write, itself)
    lists = PickleWriter().raw(b"}").text("a").raw(b"]q\x01h\x01as")
    assert "contain themselves" in archive_error(write, lists)


def test_names_are_bounded_strings(write: Write) -> None:
    long = PickleWriter().raw(b"}").text("k" * 2000).raw(b"K\x01s")
    assert "name is 2000 bytes long, expected at most 1024" in archive_error(write, long)
    nested = PickleWriter().raw(b"}").text("k" * 600).raw(b"}").text("é" * 300).raw(b"}ss")
    assert "name is 1201 bytes long" in archive_error(write, nested)
    assert "is not a string" in archive_error(write, PickleWriter().raw(b"}K\x01K\x02s"))
    assert "expected a dictionary of tensors" in archive_error(write, PickleWriter().raw(b"]"))


# The zip around them.


def small_zip(descriptors: bool) -> bytes:
    archive = ZipWriter(descriptors).add("a/one", b"first").add("a/two", b"x" * 300)
    return archive.add("a/none", b"").finish()


def read_zip(path: Path, most: int = 1_000_000) -> dict[str, bytes]:
    with open(path, "rb") as file:
        entries = read_directory(file)
        return {name: read_entry(file, entry, most) for name, entry in entries.items()}


def zip_error(path: Path) -> str:
    try:
        read_zip(path)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("descriptors", [True, False])
def test_zip_entries_read_back(write: Write, descriptors: bool) -> None:
    expected = {"a/one": b"first", "a/two": b"x" * 300, "a/none": b""}
    assert read_zip(write(small_zip(descriptors))) == expected


@pytest.mark.parametrize("descriptors", [True, False])
def test_damage_to_a_sum_or_a_length_in_a_zip_is_always_an_error(
    write: Write, descriptors: bool
) -> None:
    good = small_zip(descriptors)
    # Signature, sums, sizes, lengths and places of each kind of record.
    fields = [
        (b"PK\x03\x04", 0, 4),
        (b"PK\x03\x04", 14, 16),
        (b"PK\x01\x02", 0, 4),
        (b"PK\x01\x02", 16, 18),
        (b"PK\x01\x02", 42, 4),
        (b"PK\x07\x08", 0, 16),
        (b"PK\x06\x06", 0, 12),
        (b"PK\x06\x06", 24, 32),
        (b"PK\x06\x07", 0, 20),
        (b"PK\x05\x06", 0, 22),
    ]
    tried, accepted = 0, []
    for signature, offset, size in fields:
        record = good.find(signature)
        while record >= 0:
            for bit in range(8 * size):
                bad = bytearray(good)
                bad[record + offset + bit // 8] ^= 1 << bit % 8
                tried += 1
                if not zip_error(write(bytes(bad))):
                    accepted.append((signature, offset + bit // 8, bit % 8))
            record = good.find(signature, record + 1)
    assert accepted == []
    assert tried > 1700


def test_damage_to_the_bytes_of_a_zip_entry_is_found_when_it_is_read(write: Write) -> None:
    damaged = small_zip(True).replace(b"first", b"First")
    assert "the checksum of zip entry 'a/one' is" in zip_error(write(damaged))


def test_no_flipped_bit_in_a_zip_changes_what_is_read_without_an_error(write: Write) -> None:
    good = small_zip(True)
    expected = read_zip(write(good))
    refused = 0
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 1 << at % 8
        path = write(bytes(bad))
        if zip_error(path):
            refused += 1
        else:
            assert read_zip(path) == expected, at
    assert refused > len(good) / 2


def test_a_zip_cut_off_anywhere_is_an_error(write: Write) -> None:
    good = small_zip(True)
    assert all(zip_error(write(good[:size])) for size in range(len(good)))


def test_zip_entries_may_be_neither_compressed_nor_repeated_nor_hidden(write: Write) -> None:
    compressed = zip_error(write(ZipWriter().add("a", b"x", 8).finish()))
    assert "zip entry 'a' is compressed (method 8), expected stored bytes" in compressed
    twice = zip_error(write(ZipWriter().add("a", b"x").add("a", b"y").finish()))
    assert "zip entry 'a' appears twice" in twice
    assert "zip directory" in zip_error(write(b"junk before" + small_zip(True)))
    assert "not valid UTF-8" in zip_error(write(ZipWriter().add(b"\xff", b"x").finish()))


def test_an_entry_larger_than_asked_for_is_not_read(write: Write) -> None:
    path = write(small_zip(True))
    with pytest.raises(ValueError, match="'a/two' has 300 bytes, expected at most 299"):
        read_zip(path, 299)


def test_a_large_zip64_entry_has_its_sizes_in_the_extra_field(write: Write) -> None:
    good = small_zip(False)
    at = good.index(b"PK\x03\x04", 1)
    # The sizes of the second entry moved to a zip64 extra field of the same length and two more.
    head, name, tail = good[:at], b"a/two", good[at + 30 + 5 + 9 :]
    sums = good[at + 14 : at + 18] + b"\xff" * 8
    extra = struct.pack("<2H2Q", 1, 16, 300, 300)
    local = good[at : at + 14] + sums + struct.pack("<2H", 5, len(extra)) + name + extra
    wide = bytearray(head + local + tail)
    moved = len(extra) - 9
    start = struct.unpack_from("<Q", wide, len(wide) - 98 + 48)[0] + moved
    third = wide.rindex(b"PK\x01\x02")
    struct.pack_into("<L", wide, third + 42, struct.unpack_from("<L", wide, third + 42)[0] + moved)
    struct.pack_into("<Q", wide, len(wide) - 98 + 48, start)
    struct.pack_into("<Q", wide, len(wide) - 42 + 8, len(wide) - 98)
    struct.pack_into("<L", wide, len(wide) - 22 + 16, start)
    assert read_zip(write(bytes(wide)))["a/two"] == b"x" * 300
    wide[at + 30 + 5 + 4] ^= 1
    assert "zip entry 'a/two': its sizes" in zip_error(write(bytes(wide)))


# Whole files.


def good_pickle() -> bytes:
    pickle = PickleWriter().name("collections", "OrderedDict").raw(b")R(")
    pickle.text("t3").raw(b"}q\x01(")
    pickle.text("emb").tensor("FloatStorage", "0", 12, 0, [4, 3], [1, 4])
    pickle.text("none").raw(b"N").text("row").tensor("FloatStorage", "0", 12, 4, [4], [1])
    pickle.raw(b"u").text("gen").raw(b"}(")
    pickle.text("ids").tensor("LongStorage", "1", 2, 0, [2], [1])
    pickle.text("len").integer(150).raw(b"uu}").text("_metadata").raw(b"}sb")
    return pickle.finish()


def archive_of(pickle: bytes) -> bytes:
    storages = {"0": np.full(12, 2.5, "<f4").tobytes(), "1": struct.pack("<2q", 6561, -1)}
    return torch_archive(pickle, storages)


def load(path: Path) -> dict[str, tuple[tuple[int, ...], bytes]]:
    """Everything a file holds."""
    file = open_tensors(path)
    return {name: (file.shape(name), file.read(name).tobytes()) for name in file.names()}


def load_or_none(path: Path) -> dict[str, tuple[tuple[int, ...], bytes]] | None:
    try:
        return load(path)
    except nightingale.Error:
        return None


def mutate(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    at = chance.randrange(len(data))
    kind = chance.randrange(5)
    if kind == 0:
        changed[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        for _ in range(8):
            changed[chance.randrange(len(data))] = chance.randrange(256)
    elif kind == 2:
        del changed[at:]
    elif kind == 3:  # a stretch of the file copied over another
        to = chance.randrange(len(data))
        changed[to : to + chance.randrange(40)] = data[at : at + chance.randrange(40)]
    else:  # where a length may be, a tempting one
        length = struct.pack("<I", chance.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)))
        changed[at : at + chance.choice((1, 4))] = length
    return bytes(changed)


def test_400_damaged_archives_load_fully_or_are_refused(write: Write) -> None:
    chance = random.Random(20240601)
    assert len(load(write(archive_of(good_pickle())))) == 3
    found = []
    for _ in range(200):
        found.append(load_or_none(write(mutate(archive_of(good_pickle()), chance))))
        # With a correct sum:
        found.append(load_or_none(write(archive_of(mutate(good_pickle(), chance)))))
    refused = sum(contents is None for contents in found)
    assert len(found) == 400
    assert 400 - refused > 5  # harmless damage exists: names, padding
    assert refused > 300


def test_an_archive_cut_off_anywhere_is_refused(write: Write) -> None:
    good = archive_of(good_pickle())
    assert all(load_or_none(write(good[:size])) is None for size in range(len(good)))


def test_no_flipped_bit_in_an_archive_changes_what_is_read_unnoticed(write: Write) -> None:
    good = archive_of(good_pickle())
    expected = load(write(good))
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 1 << at % 8
        assert load_or_none(write(bytes(bad))) in (None, expected), at
