"""The header of a GGUF file, read strictly over a memory map.

Weights are never touched: a header of a few megabytes is walked in place, whatever the size of the
file. Every length is checked against the bytes that are left before anything is read, and what is
kept or walked has a budget of its own, because the file may be sparse: a hostile header costs no
more than an honest one. Layout: ggml-org/ggml@d99724f,
``docs/gguf.md``, versions 2 and 3.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.errors import NOT_GIVEN, CheckpointError, UnsupportedDtypeError
from ledgerkit.spec.ggml import ggml_type_by_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["GgufArray", "GgufHeader", "GgufTensor", "parse_header", "read_header"]

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MAX_NAME_BYTES = 64
_MAX_KEY_BYTES = 65_535
_MAX_PAIRS = 16_384
_MAX_TENSORS = 1 << 17
_MAX_STRINGS = 1 << 22
"""Strings in all arrays together; the largest vocabularies have a million, merges included."""
_MAX_EXTENTS = 4
_MAX_ELEMENTS = (1 << 63) - 1
_MAX_ALIGNMENT = 1 << 30
_KEPT_ELEMENTS = 4_096
"""Longer arrays (the vocabulary) are checked and counted, but not kept."""
_KEPT_STRING_BYTES = 1 << 20
"""The same for strings (a whole tokenizer in JSON)."""
_KEPT_BYTES = 32 << 20
"""The same for everything once this much has been kept."""
_DEFAULT_ALIGNMENT = 32
# the least that one pair and one tensor description can take
_MIN_PAIR_BYTES = 8 + 1 + 4 + 1
_MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8

_BOOL, _STRING, _ARRAY = 7, 8, 9
_SCALARS = {
    0: struct.Struct("<B"), 1: struct.Struct("<b"), 2: struct.Struct("<H"), 3: struct.Struct("<h"),
    4: struct.Struct("<I"), 5: struct.Struct("<i"), 6: struct.Struct("<f"), 7: struct.Struct("<B"),
    10: struct.Struct("<Q"), 11: struct.Struct("<q"), 12: struct.Struct("<d"),
}  # fmt: skip
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


class GgufArray(NamedTuple):
    """An array or a string that was too long to keep: only its length is known."""

    length: int
    """Elements of an array, bytes of a string."""


class GgufTensor(NamedTuple):
    """One tensor as the header describes it.

    Examples
    --------
    >>> GgufTensor("blk.0.attn_q.weight", (4096, 4096), "q4_k", 0, 9437184).elements
    16777216
    """

    name: str
    ne: tuple[int, ...]
    """Extents, fastest first: (inputs, outputs[, experts]) for a linear layer."""
    type: str
    """ggml type in lower case."""
    offset: int
    """Bytes from the start of the tensor data."""
    bytes: int

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.ne)


@dataclass(frozen=True)
class GgufHeader:
    """What one GGUF file says before its weights."""

    path: str
    version: int
    metadata: dict[str, Any]
    """Keys and values; what was too long to keep is a ``GgufArray``."""
    tensors: tuple[GgufTensor, ...]
    data_offset: int
    """Where the tensor data starts, in bytes."""
    file_bytes: int


Buffer = bytes | mmap.mmap


class _Cursor:
    """A position in the header that cannot leave it."""

    def __init__(self, data: Buffer, size: int, path: str) -> None:
        self.data = data
        self.size = size
        self.path = path
        self.at = 0
        self._kept = 0
        self._walked = 0

    def error(
        self, what: str, given: Any = NOT_GIVEN, allowed: str | None = None
    ) -> CheckpointError:
        return CheckpointError(f"{self.path}: {what}, at byte {self.at}", given=given,
                               allowed=allowed)  # fmt: skip

    def need(self, count: int, what: str) -> int:
        """Pass ``count`` bytes and return where they start."""
        start = self.at
        if count > self.size - start:
            raise self.error(f"{what} runs past the end of the file", given=f"{count} bytes",
                             allowed=f"at most {self.size - start}")  # fmt: skip
        self.at = start + count
        return start

    def u32(self, what: str) -> int:
        return int(_U32.unpack_from(self.data, self.need(4, what))[0])

    def u64(self, what: str) -> int:
        return int(_U64.unpack_from(self.data, self.need(8, what))[0])

    def text(self, what: str, most: int) -> str:
        """Read a name that must be kept."""
        length = self.u64(f"the length of {what}")
        if length > most:
            raise self.error(f"{what} is too long", given=length, allowed=f"at most {most} bytes")
        return self._decoded(self.need(length, what), what)

    def _decoded(self, start: int, what: str) -> str:
        try:
            return self.data[start : self.at].decode("utf-8")
        except UnicodeDecodeError:
            raise self.error(f"{what} is not UTF-8") from None

    def _keeps(self, size: int) -> bool:
        """Whether ``size`` more bytes may be kept."""
        if size > _KEPT_BYTES - self._kept:
            return False
        self._kept += size
        return True

    def string(self, what: str) -> str | GgufArray:
        length = self.u64(f"the length of {what}")
        start = self.need(length, what)
        if length > _KEPT_STRING_BYTES or not self._keeps(length + 64):
            return GgufArray(length)
        return self._decoded(start, what)

    def scalar(self, kind: int, what: str) -> Any:
        code = _SCALARS[kind]
        value = code.unpack_from(self.data, self.need(code.size, what))[0]
        return self.boolean(value, what) if kind == _BOOL else value

    def boolean(self, value: int, what: str) -> bool:
        if value > 1:
            raise self.error(f"{what} is no boolean", given=value, allowed="0 or 1")
        return bool(value)

    def array(self, what: str) -> Any:
        kind = self.u32(f"the element type of {what}")
        count = self.u64(f"the length of {what}")
        if kind == _STRING:
            return self._strings(count, what)
        if kind not in _SCALARS:
            raise self.error(f"{what} has elements of an unknown or nested type", given=kind)
        code = _SCALARS[kind]
        if count > (self.size - self.at) // code.size:
            raise self.error(f"{what} runs past the end of the file", given=f"{count} elements")
        start = self.need(count * code.size, what)
        if count > _KEPT_ELEMENTS or not self._keeps(32 * count):
            return GgufArray(count)
        values = struct.unpack_from(f"<{count}{code.format[-1]}", self.data, start)
        return tuple(self.boolean(v, what) for v in values) if kind == _BOOL else values

    def _strings(self, count: int, what: str) -> Any:
        if count > (self.size - self.at) // 8:
            raise self.error(f"{what} runs past the end of the file", given=f"{count} strings")
        self._walked += count
        if self._walked > _MAX_STRINGS:
            raise self.error(f"{what} has an absurd number of strings", given=count,
                             allowed=f"{_MAX_STRINGS} in all arrays")  # fmt: skip
        if count <= _KEPT_ELEMENTS:
            return tuple(self.string(what) for _ in range(count))
        # a vocabulary has hundreds of thousands of strings: walk their lengths, keep none
        unpack, data, at, last = _U64.unpack_from, self.data, self.at, self.size - 8
        for _ in range(count):
            if at > last:
                break
            at += 8 + unpack(data, at)[0]
        else:
            if at <= self.size:
                self.at = at
                return GgufArray(count)
        raise self.error(f"{what} runs past the end of the file", given=f"{count} strings")

    def value(self, what: str) -> Any:
        kind = self.u32(f"the type of {what}")
        if kind == _STRING:
            return self.string(what)
        if kind == _ARRAY:
            return self.array(what)
        if kind not in _SCALARS:
            raise self.error(f"{what} has an unknown value type", given=kind, allowed="0 to 12")
        return self.scalar(kind, what)


def read_header(path: Path) -> GgufHeader:
    """Read the header of one GGUF file; its weights are mapped but never touched.

    Parameters
    ----------
    path : pathlib.Path
        A ``.gguf`` file, of any size.

    Raises
    ------
    CheckpointError
        The file cannot be opened, is no GGUF, or its header is truncated, corrupt or hostile.
    """
    shown = path.name
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < len(_MAGIC) + 4 + 16:
                raise CheckpointError(f"{shown}: too short for a GGUF file", given=f"{size} bytes")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return parse_header(data, size, shown)
    except OSError as problem:
        raise CheckpointError(
            f"{shown}: cannot be read: {problem.strerror}", given=str(path)
        ) from None


def parse_header(data: Buffer, size: int, path: str) -> GgufHeader:
    """Parse a GGUF header.

    Parameters
    ----------
    data : bytes or mmap.mmap
        The file, or as much of its start as holds the header.
    size : int
        Bytes of the whole file; tensors must end before it.
    path : str
        How errors call the file.

    Raises
    ------
    CheckpointError
        The header breaks a rule of the format.

    Examples
    --------
    >>> empty = b"GGUF" + (3).to_bytes(4, "little") + bytes(16)
    >>> parse_header(empty, len(empty), "empty.gguf").version
    3
    """
    cursor = _Cursor(data, min(size, len(data)), path)
    if bytes(data[cursor.need(4, "the magic number") : 4]) != _MAGIC:
        raise cursor.error("not a GGUF file", given=bytes(data[:4]), allowed="it starts with GGUF")
    version = cursor.u32("the version")
    if version not in _VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS
        what = "a big-endian GGUF file" if swapped else "an unknown GGUF version"
        raise cursor.error(what, given=version, allowed="little-endian version 2 or 3")
    tensor_count = _count(cursor, "tensors", _MIN_TENSOR_BYTES, _MAX_TENSORS)
    pair_count = _count(cursor, "metadata pairs", _MIN_PAIR_BYTES, _MAX_PAIRS)
    metadata = _metadata(cursor, pair_count)
    alignment = _alignment(cursor, metadata)
    tensors = _unique([_tensor(cursor, alignment) for _ in range(tensor_count)], cursor)
    data_offset = math.ceil(cursor.at / alignment) * alignment
    _check_extents(tensors, size - data_offset, cursor)
    return GgufHeader(path, version, metadata, tuple(tensors), data_offset, size)


def _count(cursor: _Cursor, noun: str, least_bytes: int, most: int) -> int:
    count = cursor.u64(f"the number of {noun}")
    room = min(most, (cursor.size - cursor.at) // least_bytes)
    if count > room:
        raise cursor.error(f"more {noun} than the file can hold", given=count,
                           allowed=f"at most {room}")  # fmt: skip
    return count


def _metadata(cursor: _Cursor, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for _ in range(count):
        key = cursor.text("a metadata key", _MAX_KEY_BYTES)
        if not key:
            raise cursor.error("an empty metadata key")
        if key in metadata:
            raise cursor.error("a duplicate metadata key", given=key)
        metadata[key] = cursor.value(f"the value of {key[:80]!r}")
    return metadata


def _alignment(cursor: _Cursor, metadata: dict[str, Any]) -> int:
    value = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not 0 < value <= _MAX_ALIGNMENT or value & (value - 1):
        raise cursor.error("general.alignment must be a power of two", given=value)
    return int(value)


def _tensor(cursor: _Cursor, alignment: int) -> GgufTensor:
    name = cursor.text("a tensor name", _MAX_NAME_BYTES)
    if not name:
        raise cursor.error("an empty tensor name")
    rank = cursor.u32(f"the rank of {name!r}")
    if not 1 <= rank <= _MAX_EXTENTS:
        raise cursor.error(f"the rank of {name!r}", given=rank, allowed="1 to 4")
    ne = tuple(cursor.u64(f"the extents of {name!r}") for _ in range(rank))
    elements = math.prod(ne)
    if not 0 < elements <= _MAX_ELEMENTS:
        raise cursor.error(f"the extents of {name!r} are empty or absurd", given=ne)
    number = cursor.u32(f"the type of {name!r}")
    try:
        kind = ggml_type_by_id(number)
        size = kind.tensor_bytes(ne)
    except UnsupportedDtypeError as problem:
        raise cursor.error(f"tensor {name!r}: {problem.what}", problem.given,
                           problem.allowed) from None  # fmt: skip
    offset = cursor.u64(f"the offset of {name!r}")
    if offset % alignment:
        raise cursor.error(f"the offset of {name!r} is not aligned", given=offset,
                           allowed=f"multiples of {alignment}")  # fmt: skip
    return GgufTensor(name, ne, kind.name, offset, size)


def _unique(tensors: list[GgufTensor], cursor: _Cursor) -> list[GgufTensor]:
    seen: set[str] = set()
    for tensor in tensors:
        if tensor.name in seen:
            raise cursor.error("a duplicate tensor name", given=tensor.name)
        seen.add(tensor.name)
    return tensors


def _check_extents(tensors: list[GgufTensor], data_bytes: int, cursor: _Cursor) -> None:
    offset: Callable[[GgufTensor], int] = lambda tensor: tensor.offset  # noqa: E731
    end, before = 0, ""
    for tensor in sorted(tensors, key=offset):
        if tensor.offset < end:
            raise cursor.error(f"tensors {before!r} and {tensor.name!r} overlap",
                               given=tensor.offset)  # fmt: skip
        end, before = tensor.offset + tensor.bytes, tensor.name
        if end > data_bytes:
            raise cursor.error(f"tensor {before!r} ends past the end of the file: truncated?",
                               given=f"{end} bytes of data",
                               allowed=f"at most {max(data_bytes, 0)}")  # fmt: skip
