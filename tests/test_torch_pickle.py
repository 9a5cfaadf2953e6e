"""The pickle of a torch file: what it may build, and that it can do nothing else."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from nightingale.torch_pickle import MAX_OPCODES, Storage, load_pickle

from .torch_writers import PickleWriter

ORDERED_DICT = ("collections", "OrderedDict")


def error_in(pickle: PickleWriter | bytes) -> str:
    """The message of the ValueError that refuses a pickle, "" where none does."""
    try:
        load_pickle(pickle if isinstance(pickle, bytes) else pickle.finish())
    except ValueError as error:
        return str(error)
    return ""


def refusal_of(name: str) -> str:
    return f"refuses to load '{name}': only tensors and plain containers are allowed"


def test_a_pickle_builds_plain_values() -> None:
    writer = PickleWriter().raw(b"(N\x88\x89").integer(-5).raw(b"J\xfe\xff\xff\xff")
    writer.raw(b"K\xffM\xff\xff\x8a\x00\x8a\x01\x80").text("né").raw(b"](K\x01K\x02eK\x03\x85t")
    values = load_pickle(writer.finish())
    assert values == (None, True, False, -5, -2, 255, 65535, 0, -128, "né", [1, 2], (3,))
    assert type(values[1]) is bool


def test_a_memo_entry_used_twice_is_one_object() -> None:
    assert "left over" in error_in(PickleWriter().raw(b"]q\x01h\x01K\x07ah\x01\x86"))
    first, second = load_pickle(PickleWriter().raw(b"(]q\x01h\x01K\x07at").finish())
    assert first is second
    assert first == [7]


def test_the_metadata_of_a_state_dict_is_dropped() -> None:
    writer = PickleWriter().name(*ORDERED_DICT).raw(b")R}").text("_metadata").raw(b"}sb")
    found = load_pickle(writer.finish())
    assert found == {}
    assert not hasattr(found, "_metadata")


def test_a_pickle_cannot_import_or_call_code() -> None:
    system = PickleWriter().name("os", "system").text("true").raw(b"\x85R")
    assert error_in(system) == f"pickle byte 2: {refusal_of('os.system')}"

    evaluated = PickleWriter().text("builtins").text("eval").raw(b"\x93").text("1").raw(b"\x85R")
    assert refusal_of("builtins.eval") in error_in(evaluated)

    instance = PickleWriter().raw(b"(").text("true").raw(b"ios\nsystem\n")
    assert refusal_of("os.system") in error_in(instance)

    popen = PickleWriter().raw(b"(").name("subprocess", "Popen").text("true").raw(b"o")
    assert refusal_of("subprocess.Popen") in error_in(popen)


@pytest.mark.parametrize(
    ("body", "opcode"), [(b")\x81", 129), (b")}\x92", 146), (b"Pmodule\n", 80), (b"0", 48)]
)
def test_opcodes_that_make_objects_are_refused_even_of_allowed_names(
    body: bytes, opcode: int
) -> None:
    writer = PickleWriter().name(*ORDERED_DICT).raw(body)
    assert refusal_of(f"pickle opcode {opcode}") in error_in(writer)


def test_the_object_opcode_is_refused() -> None:
    writer = PickleWriter().raw(b"(ccollections\nOrderedDict\no")
    assert refusal_of("pickle opcode 111") in error_in(writer)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch", "load"),
        ("torch", "_utils._rebuild_tensor"),
        ("torch._utils", "_rebuild_tensor_v2.__globals__"),
        ("collections", "OrderedDict.fromkeys"),
        ("collections", "defaultdict"),
        ("", "collections.OrderedDict"),
        ("torch.storage", "_load_from_bytes"),
        ("torch", "QInt8Storage"),
    ],
)
def test_near_misses_of_the_allowed_names_are_refused_too(module: str, name: str) -> None:
    assert refusal_of(f"{module}.{name}") in error_in(PickleWriter().name(module, name))
    writer = PickleWriter().text(module).text(name).raw(b"\x93")
    assert refusal_of(f"{module}.{name}") in error_in(writer)


def test_a_refused_name_is_shown_in_plain_characters() -> None:
    writer = PickleWriter().text("a\x01b").text("é\n").raw(b"\x93")
    assert refusal_of("a?b.??") in error_in(writer)


def test_an_escaped_name_does_not_pass() -> None:
    # pickletools reads the escape, the unpickler does not.
    writer = PickleWriter().raw(b"ccollections\nOrdered\\x44ict\n)R")
    assert "refuses to load" in error_in(writer)


@pytest.mark.parametrize("body", [b"\x82\x05", b"\x83\x05\x00", b"\x84\x05\x00\x00\x00"])
def test_extension_codes_are_refused(body: bytes) -> None:
    assert refusal_of("extension 5") in error_in(PickleWriter().raw(body))


def test_state_is_set_on_nothing_but_an_ordered_dict() -> None:
    refusal = refusal_of("attributes of an object other than OrderedDict")
    assert refusal in error_in(PickleWriter().raw(b"]}b"))
    assert refusal in error_in(PickleWriter().raw(b"}}b"))
    assert refusal in error_in(PickleWriter().name(*ORDERED_DICT).raw(b"}b"))
    tensor = PickleWriter().tensor("FloatStorage", "0", 1, 0, [1], [1])
    assert refusal in error_in(tensor.raw(b"}").text("__setstate__").raw(b"Nsb"))
    state = PickleWriter().name(*ORDERED_DICT).raw(b")R]b")
    assert "expected the attributes of an OrderedDict" in error_in(state)


def test_calls_take_exactly_what_torch_passes() -> None:
    def call(module: str, name: str, body: bytes = b")R") -> str:
        return error_in(PickleWriter().name(module, name).raw(body))

    assert "takes 1 positional argument but 2 were given" in call(*ORDERED_DICT, b"]\x85R")
    assert "missing 6 required positional arguments" in call("torch._utils", "_rebuild_tensor_v2")
    assert "expected a function" in call("torch", "FloatStorage")
    assert "expected a function" in call("torch.storage", "UntypedStorage")
    assert "expected arguments" in call(*ORDERED_DICT, b"]R")
    assert "expected a function" in error_in(PickleWriter().raw(b"K\x01)R"))
    assert "expected a tensor" in call("torch._utils", "_rebuild_parameter", b"NNN\x87R")
    assert "expected a shape" in call("torch", "Size", b"N\x85R")


def test_a_persistent_id_names_a_storage_by_number_and_nothing_else() -> None:
    def storage(key: str, size: int) -> str:
        return error_in(PickleWriter().storage("FloatStorage", key, size))

    assert storage("12", 3) == ""
    for key in ("../data.pkl", "/etc/passwd", "0/../1", "", "-1", " 1", "²", "9" * 21):
        assert "a storage key is not a number" in storage(key, 3)
    assert "a storage has -1 elements" in storage("0", -1)
    assert "expected a storage's tuple" in error_in(PickleWriter().text("module").raw(b"Q"))
    five = PickleWriter().raw(b"(").text("module").raw(b"NNNNtQ")
    assert "not a storage of five fields" in error_in(five)
    untyped = PickleWriter().raw(b"(").text("storage").name("torch.storage", "UntypedStorage")
    untyped.text("0").text("cpu").integer(4).raw(b"tQ")
    assert load_pickle(untyped.finish()) == Storage(None, "0", 4)


def test_tensors_of_both_kinds_and_parameters() -> None:
    tensor = load_pickle(PickleWriter().tensor("HalfStorage", "3", 9, 1, [2, 2], [4, 1]).finish())
    assert tensor == (Storage("float16", "3", 9), "float16", 1, (2, 2), (4, 1))
    writer = PickleWriter().name("torch._utils", "_rebuild_parameter").raw(b"(")
    writer.name("torch._utils", "_rebuild_tensor_v3").raw(b"((").text("storage")
    writer.name("torch.storage", "UntypedStorage").text("0").text("cpu").integer(8).raw(b"tQK\x00")
    writer.name("torch", "Size").integers([4]).raw(b"\x85R").integers([1]).raw(b"\x89N")
    writer.name("torch", "uint16").raw(b"tR\x89NtR")
    assert load_pickle(writer.finish()) == (Storage(None, "0", 8), "uint16", 0, (4,), (1,))


def test_tensors_that_torch_would_not_write() -> None:
    many = PickleWriter().tensor("FloatStorage", "0", 1, 0, [1] * 9, [1])
    assert "a tensor has 9 dimensions, expected at most 8" in error_in(many)
    uneven = PickleWriter().tensor("FloatStorage", "0", 1, 0, [1, 1], [1])
    assert "shape and strides differ in length" in error_in(uneven)


def test_lengths_past_the_end_of_the_pickle_are_errors() -> None:
    assert "expected 4294967295 bytes in a unicodestring4, but only 1 remain" in error_in(
        PickleWriter().raw(b"X\xff\xff\xff\xff")
    )
    assert "byte count > sys.maxsize: 18446744073709551615" in error_in(
        PickleWriter().raw(b"\x8d" + b"\xff" * 8)
    )
    assert "a frame passes the end" in error_in(PickleWriter().raw(b"\x95" + b"\x7f" * 8))
    long = PickleWriter().raw(b"\x8a\xff" + b"\x7f" * 255)
    assert "an integer does not fit into 8 bytes" in error_in(long)
    longer = PickleWriter().raw(b"\x8b\x04\x00\x00\x00" + b"\x7f" * 4)
    assert refusal_of("pickle opcode 139") in error_in(longer)
    assert "no newline found" in error_in(PickleWriter().raw(b"cos"))


def test_strings_are_utf8() -> None:
    assert "can't decode byte 0xff" in error_in(PickleWriter().text(b"\xff"))
    assert "surrogates not allowed" in error_in(PickleWriter().text(b"\xed\xa0\x80"))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"t", b"u", b"e", b"a", b"s", b"R", b"b", b"Q", b"q\x01", b"(", b"K\x01K\x02", b"\x85",
        b"\x93", b"(K\x01q\x01", b"(q\x01", b"K\x01K\x02s", b"K\x01K\x02a", b"](K\x01u",
        b"}(K\x01u", b"h\x07", b"X\x01", b"K\x01K\x02\x93", b"]K\x01K\x02s", b"}K\x01a",
    ],
)  # fmt: skip
def test_a_pickle_that_misuses_its_stack_is_an_error(body: bytes) -> None:
    assert "pickle byte" in error_in(PickleWriter().raw(body))


def test_protocols_and_ends() -> None:
    assert "protocol 2 to 5" in error_in(b"N.")
    assert "protocol 9, expected 2 to 5" in error_in(b"\x80\x09N.")
    assert "protocol 2 to 5" in error_in(b"\x80\x02N\x80\x02.")
    assert "protocol 2 to 5" in error_in(b"\x80\x01N.")
    assert "pickle exhausted before seeing STOP" in error_in(b"\x80\x02N")
    assert "left over" in error_in(b"\x80\x02N.N")
    assert "pickle exhausted" in error_in(b"")


def test_opcodes_are_bounded() -> None:
    writer = PickleWriter().raw(b"(" * (MAX_OPCODES + 1))
    assert f"more than {MAX_OPCODES} opcodes" in error_in(writer)


def test_a_memo_index_costs_no_memory() -> None:
    # The unpickler alone makes room for 2 * 8,000,000 pointers.
    pickle = b"\x80\x02Nr\x00\x12\x7a\x00."
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "memo 8000000 is larger than the number of values" in error_in(pickle)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000


def test_keys_are_strings() -> None:
    for key in (b"K\x01", b")", b"N", b"\x88"):
        assert "is not a string" in error_in(PickleWriter().raw(b"}" + key + b"K\x02s"))


def test_a_deeply_nested_key_is_not_hashed() -> None:
    # Hashing it would overflow the stack, so another process looks.
    script = """
from nightingale.torch_pickle import load_pickle
storage = b"(X\\x07\\x00\\x00\\x00storagectorch\\nFloatStorage\\nX\\x01\\x00\\x00\\x000NK\\x01tQ"
for deep in (b")" + bytes([0x85]) * 500_000, b")" + b"q\\x01h\\x01\\x86" * 200):
    for body in (
        b"}" + deep + b"Ns",
        b"ctorch._utils\\n_rebuild_tensor_v3\\n(" + storage + b"K\\x00))NN" + deep + b"tR",
        b"(X\\x07\\x00\\x00\\x00storage" + deep + b"NNNtQ",
    ):
        try:
            load_pickle(b"\\x80\\x02" + body + b".")
        except ValueError as error:
            print(str(error).split(": ")[-1])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == 2 * [
        "a key of a dictionary is not a string",
        "expected an element type",
        "expected a storage type",
    ]
