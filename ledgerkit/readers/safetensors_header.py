"""The headers of safetensors files, read strictly; weights are never touched.

A file is an 8-byte length, a JSON object of that length, and the tensors, end to end. Rules and
limits are those of huggingface/safetensors@v0.8, ``safetensors/src/tensor.rs``.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.errors import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["DTYPE_BITS", "StoredTensor", "parse_header", "read_header"]

_MAX_HEADER_BYTES = 100_000_000
_MAX_RANK = 16
_MAX_EXTENT = (1 << 63) - 1

DTYPE_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "I64": 64, "U64": 64, "F64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
"""Bits of one element of each dtype."""


class StoredTensor(NamedTuple):
    """One tensor as a header describes it.

    Examples
    --------
    >>> StoredTensor("lm_head.weight", "BF16", (32000, 4096), 262144000, "a.safetensors").elements
    131072000
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    """As stored; packed formats store fewer, wider elements than the model has."""
    bytes: int
    file: str

    @property
    def elements(self) -> int:
        """Number of stored elements."""
        return math.prod(self.shape)


def read_header(path: Path) -> tuple[StoredTensor, ...]:
    """Read the header of one file.

    Parameters
    ----------
    path : pathlib.Path
        A ``.safetensors`` file, of any size.

    Raises
    ------
    CheckpointError
        The file cannot be opened, is truncated, or breaks a rule of the format.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            length = header_bytes(file.read(8), size, path.name)
            return parse_header(file.read(length), size, path.name)
    except OSError as problem:
        raise CheckpointError(f"{path.name}: cannot be read: {problem.strerror}",
                              given=str(path)) from None  # fmt: skip


def header_bytes(start: bytes, size: int, path: str) -> int:
    """Return the length of the JSON header from the first eight bytes of a file.

    Parameters
    ----------
    start : bytes
        The first eight bytes.
    size : int
        Bytes of the whole file.
    path : str
        How errors call the file.

    Examples
    --------
    >>> header_bytes(bytes([2, 0, 0, 0, 0, 0, 0, 0]), 10, "empty.safetensors")
    2
    """
    if len(start) < 8:
        raise CheckpointError(f"{path}: too short for a safetensors file", given=f"{size} bytes")
    length = int.from_bytes(start[:8], "little")
    most = min(_MAX_HEADER_BYTES, size - 8)
    if not 2 <= length <= most:
        raise CheckpointError(f"{path}: the header has an absurd length", given=length,
                              allowed=f"2 to {most} bytes")  # fmt: skip
    return length


def parse_header(raw: bytes, size: int, path: str) -> tuple[StoredTensor, ...]:
    """Parse the JSON header of a file.

    Parameters
    ----------
    raw : bytes
        The header, without the length before it.
    size : int
        Bytes of the whole file; the tensors must fill it.
    path : str
        How errors call the file.

    Raises
    ------
    CheckpointError
        The header breaks a rule of the format.

    Examples
    --------
    >>> header = b'{"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}'
    >>> parse_header(header, 8 + len(header) + 12, "tiny.safetensors")[0].shape
    (2, 3)
    """
    entries = _parse_json(raw, path)
    described = entries.pop("__metadata__", {})
    if not isinstance(described, dict) or not all(isinstance(v, str) for v in described.values()):
        raise CheckpointError(f"{path}: __metadata__ must map names to text", given=described)
    found = [(*_entry(name, entry, path), name) for name, entry in entries.items()]
    found.sort(key=lambda item: item[0])
    end = 0
    for (start, stop), _, _, name in found:
        if start != end:
            raise CheckpointError(f"{path}: the tensors overlap or leave a hole at {name!r}",
                                  given=start, allowed=str(end))  # fmt: skip
        end = stop
    data = size - 8 - len(raw)
    if end != data:
        raise CheckpointError(f"{path}: the tensors do not fill the file: truncated?",
                              given=f"{end} bytes", allowed=f"{data} bytes")  # fmt: skip
    return tuple(
        StoredTensor(name, dtype, shape, stop - start, path)
        for (start, stop), dtype, shape, name in found
    )


def _parse_json(raw: bytes, path: str) -> dict[str, Any]:
    if not raw.startswith(b"{"):
        raise CheckpointError(f"{path}: the header is no JSON object", given=raw[:16])
    try:
        entries = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique)
    except UnicodeDecodeError:
        raise CheckpointError(f"{path}: the header is not UTF-8") from None
    except RecursionError:
        raise CheckpointError(f"{path}: the header is nested too deeply") from None
    except ValueError as problem:  # not JSON, a name twice, a number of thousands of digits
        raise CheckpointError(f"{path}: the header is not valid JSON", given=str(problem)) from None
    if not isinstance(entries, dict):
        raise CheckpointError(f"{path}: the header is no JSON object", given=type(entries).__name__)
    return entries


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        msg = "a name occurs twice"
        raise ValueError(msg)
    return found


def _entry(name: str, entry: Any, path: str) -> tuple[tuple[int, int], str, tuple[int, ...]]:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"{path}: tensor {name!r} needs dtype, shape and data_offsets",
                              given=entry)  # fmt: skip
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    bits = DTYPE_BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        raise CheckpointError(f"{path}: tensor {name!r} has an unknown dtype", given=dtype,
                              allowed=", ".join(DTYPE_BITS))  # fmt: skip
    if not _wholes(shape) or len(shape) > _MAX_RANK:
        raise CheckpointError(f"{path}: tensor {name!r} has an absurd shape", given=shape)
    if not _wholes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointError(f"{path}: tensor {name!r} has absurd offsets", given=offsets)
    needed = math.prod(shape) * bits
    if needed % 8 or needed // 8 != offsets[1] - offsets[0]:
        raise CheckpointError(f"{path}: tensor {name!r} has offsets that are not its size",
                              given=offsets, allowed=f"{needed / 8} bytes apart")  # fmt: skip
    return (offsets[0], offsets[1]), dtype, tuple(shape)


def _wholes(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= _MAX_EXTENT for v in values
    )
