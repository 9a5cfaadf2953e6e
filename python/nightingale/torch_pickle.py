"""Reads the pickle of a torch file, which may hold tensors and plain containers and nothing else.

The bytes are scanned before anything is built: `pickle.Unpickler` alone allocates whatever a memo
index asks for, and hashing a deeply nested key overflows its stack.
"""

import io
import pickle
import pickletools
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeVar

# A checkpoint of three thousand tensors has about 10^5. Each makes at most one small object.
MAX_OPCODES = 2_000_000
MAX_DIMENSIONS = 8
MAX_KEY_DIGITS = 20

ITEM_BYTES = {
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float64": 8,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "bool": 1,
}
STORAGES = {
    "bool": "BoolStorage",
    "uint8": "ByteStorage",
    "int8": "CharStorage",
    "int16": "ShortStorage",
    "int32": "IntStorage",
    "int64": "LongStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
}
_UNTYPED = "untyped"

_Kind = TypeVar("_Kind")


class Storage(NamedTuple):
    """A block of elements: the zip entry `data/KEY`."""

    dtype: str | None  # None: `size` counts bytes
    key: str
    size: int  # elements


class Tensor(NamedTuple):
    """A view of a storage."""

    storage: Storage
    dtype: str
    offset: int  # in elements, as are the strides
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class OrderedDict(dict[str, Any]):
    """Stands for collections.OrderedDict, without its constructor's arguments."""

    def __init__(self) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        """torch sets `_metadata`, the versions of its modules, which are not needed."""


def load_pickle(data: bytes) -> Any:
    """What the pickle of a torch file holds, with `Tensor`s in it; a ValueError says what it has
    that is not allowed. Protocols 2 to 5."""
    _scan(data)
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, TypeError, AttributeError, LookupError, EOFError) as error:
        raise ValueError(f"the pickle is damaged: {error}") from error


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _GLOBALS[_allowed(f"{module}.{name}")]

    def persistent_load(self, identifier: Any) -> Storage:
        """A storage from ('storage', type, key, location, size)."""
        fields = _expect(identifier, tuple, "a storage's tuple")
        if len(fields) != 5 or fields[0] != "storage":
            raise ValueError("a persistent id is not a storage of five fields")
        _, dtype, key, _, size = fields
        if _expect(dtype, str, "a storage type") != _UNTYPED and dtype not in ITEM_BYTES:
            raise ValueError("expected a storage type")
        # It becomes part of the name of a zip entry.
        _expect(key, str, "a storage key")
        if not (key.isascii() and key.isdigit() and len(key) <= MAX_KEY_DIGITS):
            raise ValueError("a storage key is not a number")
        if _expect(size, int, "a storage size") < 0:
            raise ValueError(f"a storage has {size} elements")
        return Storage(None if dtype == _UNTYPED else dtype, key, size)


def _rebuild_tensor_v2(
    storage: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    _grad: Any,
    _hooks: Any,
    metadata: Any = None,
) -> Tensor:
    if _expect(storage, Storage, "a storage").dtype is None:
        raise ValueError("a tensor has no element type")
    return _tensor(storage, offset, shape, strides, storage.dtype, metadata)


def _rebuild_tensor_v3(
    storage: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    _grad: Any,
    _hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    return _tensor(storage, offset, shape, strides, dtype, metadata)


def _tensor(
    storage: Any, offset: Any, shape: Any, strides: Any, dtype: Any, metadata: Any
) -> Tensor:
    _expect(storage, Storage, "a storage")
    _expect(offset, int, "a tensor's offset")
    for sizes in (shape, strides):
        if len(_expect(sizes, tuple, "a shape or strides")) > MAX_DIMENSIONS:
            raise ValueError(
                f"a tensor has {len(sizes)} dimensions, expected at most {MAX_DIMENSIONS}"
            )
        for size in sizes:
            _expect(size, int, "an integer")
    if len(shape) != len(strides):
        raise ValueError("a tensor's shape and strides differ in length")
    if _expect(dtype, str, "an element type") not in ITEM_BYTES:
        raise ValueError("expected an element type")
    if metadata:
        raise ValueError("a tensor is a lazy negation or conjugate, which is not supported")
    return Tensor(storage, dtype, offset, shape, strides)


def _rebuild_parameter(tensor: Any, _grad: Any, _hooks: Any) -> Tensor:
    return _expect(tensor, Tensor, "a tensor")


def _size(shape: Any) -> tuple[int, ...]:
    return _expect(shape, tuple, "a shape")


def _expect(value: object, kind: type[_Kind], what: str) -> _Kind:
    if type(value) is not kind:  # a bool is no int here
        raise ValueError(f"expected {what}")
    return value


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": OrderedDict,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch.Size": _size,
}
_GLOBALS: dict[str, Any] = {
    **_FUNCTIONS,
    "torch.storage.UntypedStorage": _UNTYPED,
    **{f"torch.{storage}": dtype for dtype, storage in STORAGES.items()},
    **{f"torch.{dtype}": dtype for dtype in ITEM_BYTES},
}


def _allowed(name: str) -> str:
    if name not in _GLOBALS:
        _refuse(name)
    return name


def _refuse(name: str) -> NoReturn:
    shown = "".join(c if " " <= c <= "~" else "?" for c in name[:200])
    raise ValueError(f"refuses to load '{shown}': only tensors and plain containers are allowed")


# What pushes a value and takes none.
_VALUES = frozenset(
    (
        "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT",
        "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT",
    )
)  # fmt: skip
_PUTS = frozenset(("BINPUT", "LONG_BINPUT", "MEMOIZE"))
_GETS = frozenset(("BINGET", "LONG_BINGET"))
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_EXTENSIONS = frozenset(("EXT1", "EXT2", "EXT4"))


class _Global(NamedTuple):
    name: str


def _scan(data: bytes) -> None:
    """Checks every opcode and what is on the stack when it runs, without building anything."""
    stream = io.BytesIO(data)
    opcodes = pickletools.genops(stream)
    scan = _Scan(stream)
    position: int | None = 0
    while True:
        try:
            opcode, argument, position = next(opcodes)
        except (ValueError, StopIteration) as error:
            raise ValueError(f"after pickle byte {position}: {error}") from error
        try:
            if scan.step(opcode, argument):
                return
        except ValueError as error:
            raise ValueError(f"pickle byte {position}: {error}") from error


class _Scan:
    """The stack and the memo of a pickle: strings and names as they are, of other values their
    kinds."""

    def __init__(self, stream: io.BytesIO) -> None:
        self.stream = stream
        self.length = stream.getbuffer().nbytes
        self.count = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def step(self, opcode: pickletools.OpcodeInfo, argument: Any) -> bool:
        """Follows one opcode; True at the end of the pickle."""
        name = opcode.name
        if (name == "PROTO") != (self.count == 0) or (name == "PROTO" and argument < 2):
            raise ValueError("expected a pickle of protocol 2 to 5")
        if self.count == MAX_OPCODES:
            raise ValueError(f"more than {MAX_OPCODES} opcodes")
        self.count += 1
        if name in _VALUES:
            self.stack.append(_checked(opcode, argument))
        elif name in _PUTS:
            self.put(len(self.memo) if argument is None else argument)
        elif name in _GETS:
            if argument not in self.memo:
                raise ValueError(f"memo {argument} was never set")
            self.stack.append(self.memo[argument])
        elif name == "MARK":
            self.marks.append(len(self.stack))
        elif name == "TUPLE":
            self.pop_to_mark()
            self.stack.append(pickletools.pytuple)
        elif name in _TUPLES:
            self.pop(_TUPLES[name])
            self.stack.append(pickletools.pytuple)
        elif name == "GLOBAL":
            self.stack.append(_Global(_allowed(argument.replace(" ", ".", 1))))
        elif name == "STACK_GLOBAL":
            module, attribute = self.pop(2)
            if not (isinstance(module, str) and isinstance(attribute, str)):
                raise ValueError("expected the names of a module and of what is in it")
            self.stack.append(_Global(_allowed(f"{module}.{attribute}")))
        elif name == "BINPERSID":
            self.pop(1)
            self.stack.append(Storage)
        elif name == "REDUCE":
            self.reduce(*self.pop(2))
        elif name == "BUILD":
            self.build(*self.pop(2))
        elif name in ("SETITEM", "SETITEMS"):
            self.set_items(self.pop(2) if name == "SETITEM" else self.pop_to_mark())
        elif name in ("APPEND", "APPENDS"):
            self.pop(1) if name == "APPEND" else self.pop_to_mark()
            self.top_must_be("a list to append to", pickletools.pylist)
        elif name == "FRAME":
            if argument > self.length - self.stream.tell():
                raise ValueError("a frame passes the end of the pickle")
        elif name == "STOP":
            self.pop(1)
            if self.stack or self.marks or self.stream.tell() != self.length:
                raise ValueError("the pickle ends with values or bytes left over")
            return True
        elif name == "INST":
            _refuse(argument.replace(" ", ".", 1))
        elif name == "PROTO":
            if argument > 5:
                raise ValueError(f"the pickle has protocol {argument}, expected 2 to 5")
        elif name in _EXTENSIONS:
            _refuse(f"extension {argument}")
        else:
            # NEWOBJ, OBJ and the like make objects; the rest is what torch.save never writes.
            _refuse(f"pickle opcode {ord(opcode.code)}")
        return False

    def pop(self, count: int) -> list[Any]:
        start = len(self.stack) - count
        if start < (self.marks[-1] if self.marks else 0):
            raise ValueError("the stack is empty")
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def pop_to_mark(self) -> list[Any]:
        if not self.marks:
            raise ValueError("there is no mark on the stack")
        count = len(self.stack) - self.marks[-1]
        items = self.pop(count)
        self.marks.pop()
        return items

    def put(self, index: int) -> None:
        # Whoever counts them has put as many values before. The unpickler makes room for all.
        if index > self.count:
            raise ValueError(f"memo {index} is larger than the number of values before it")
        (self.memo[index],) = self.pop(1)
        self.stack.append(self.memo[index])

    def top_must_be(self, what: str, *kinds: Any) -> None:
        (kind,) = self.pop(1)
        if kind not in kinds:
            raise ValueError(f"expected {what}")
        self.stack.append(kind)

    def set_items(self, items: list[Any]) -> None:
        if len(items) % 2:
            raise ValueError("a dictionary's keys and values do not pair up")
        if not all(isinstance(key, str) for key in items[::2]):
            raise ValueError("a key of a dictionary is not a string")
        self.top_must_be("a dictionary to set items of", pickletools.pydict, OrderedDict)

    def reduce(self, function: Any, arguments: Any) -> None:
        if arguments is not pickletools.pytuple:
            raise ValueError("expected arguments")
        if not isinstance(function, _Global) or function.name not in _FUNCTIONS:
            raise ValueError("expected a function")
        made = _FUNCTIONS[function.name]
        self.stack.append(pickletools.pytuple if made is _size else made)

    def build(self, target: Any, state: Any) -> None:
        if target is not OrderedDict:
            _refuse("attributes of an object other than OrderedDict")
        if state is not pickletools.pydict:
            raise ValueError("expected the attributes of an OrderedDict")
        self.stack.append(target)


def _checked(opcode: pickletools.OpcodeInfo, argument: Any) -> Any:
    """What the scan keeps of a value."""
    if isinstance(argument, str):
        if not argument.isascii():
            argument.encode()  # pickle lets halves of surrogate pairs pass
        return argument
    if isinstance(argument, int) and not -(2**63) <= argument < 2**63:
        raise ValueError("an integer does not fit into 8 bytes")
    return opcode.stack_after[0]
