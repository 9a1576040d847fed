"""GGUF headers packed by hand, right or wrong as a test wants them."""

from __future__ import annotations

import struct
from typing import Any

import gguf

from tests.gguf.writing import Plan, Type

U8, I32, F32, BOOL, STRING, ARRAY, U32, U64 = 0, 5, 6, 7, 8, 9, 4, 10


def text(value: str | bytes, length: int | None = None) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw) if length is None else length) + raw


def pair(key: str | bytes, kind: int, payload: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + payload


def u32(key: str, value: int) -> bytes:
    return pair(key, U32, struct.pack("<I", value))


def string(key: str, value: str) -> bytes:
    return pair(key, STRING, text(value))


def array(key: str, kind: int, count: int, payload: bytes) -> bytes:
    return pair(key, ARRAY, struct.pack("<IQ", kind, count) + payload)


def tensor(
    name: str | bytes, ne: tuple[int, ...], kind: int, offset: int, rank: int | None = None
) -> bytes:
    return (
        text(name)
        + struct.pack("<I", len(ne) if rank is None else rank)
        + struct.pack(f"<{len(ne)}Q", *ne)
        + struct.pack("<IQ", kind, offset)
    )


def header(
    pairs: list[bytes],
    tensors: list[bytes],
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    tensor_count: int | None = None,
    pair_count: int | None = None,
    data: int | None = 0,
    alignment: int = 32,
) -> bytes:
    """A header and ``data`` bytes of zeros behind it; None = stop where the header ends."""
    packed = magic + struct.pack(
        "<IQQ", version, len(tensors) if tensor_count is None else tensor_count,
        len(pairs) if pair_count is None else pair_count,
    )  # fmt: skip
    packed += b"".join(pairs) + b"".join(tensors)
    if data is None:
        return packed
    return packed + bytes(-len(packed) % alignment + data)


def of_plan(plan: Plan, kind: Type) -> tuple[bytes, int]:
    """The header of a whole model, and the size of its file; matrices are of one type."""
    pairs = [string("general.architecture", plan.architecture)]
    for key, value in plan.keys.items():
        name = f"{plan.architecture}.{key}"
        pairs.append(pair(name, F32, struct.pack("<f", value)) if isinstance(value, float)
                     else u32(name, value))  # fmt: skip
    tensors, offset = [], 0
    for name, ne in plan.tensors.items():
        used = Type.F32 if len(ne) == 1 else kind
        block, size = gguf.GGML_QUANT_SIZES[used]
        tensors.append(tensor(name, ne, int(used), offset))
        elements = 1
        for extent in ne:
            elements *= extent
        offset += -(-(elements // block * size) // 32) * 32
    packed = header(pairs, tensors)
    return packed, len(packed) + offset


def metadata_of(values: dict[str, Any]) -> list[bytes]:
    """Pairs of whole numbers and strings."""
    return [string(k, v) if isinstance(v, str) else u32(k, v) for k, v in values.items()]
