"""The header parser, against the ``safetensors`` package and against hostile files."""

from __future__ import annotations

import json
import struct
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import CheckpointError, LedgerError
from ledgerkit.readers.safetensors import read_safetensors
from ledgerkit.readers.safetensors_header import DTYPE_BITS, parse_header, read_header

WEIGHT = {"dtype": "BF16", "shape": [4, 2], "data_offsets": [0, 16]}


def packed(header: object, data: int = 16, *, length: int | None = None) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + bytes(data)


def parse(content: bytes):
    length = int.from_bytes(content[:8], "little")
    return parse_header(content[8 : 8 + length], len(content), "x.safetensors")


def test_the_safetensors_package_agrees(tmp_path: Path):
    torch = pytest.importorskip("torch")
    from safetensors import safe_open
    from safetensors.torch import save_file

    dtypes = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16,
              "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32, "I16": torch.int16,
              "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
              "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
              "F8_E8M0": torch.float8_e8m0fnu, "C64": torch.complex64}  # fmt: skip
    tensors = {f"t.{name}": torch.zeros((3, 5), dtype=kind) for name, kind in dtypes.items()}
    tensors |= {"scalar": torch.zeros(()), "empty": torch.zeros((0, 7))}
    path = tmp_path / "all.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    found = {tensor.name: tensor for tensor in read_header(path)}
    with safe_open(path, "pt") as oracle:
        assert found.keys() == set(oracle.keys())
        for name, tensor in found.items():
            part = oracle.get_slice(name)
            assert (tensor.dtype, list(tensor.shape)) == (part.get_dtype(), part.get_shape())
            assert tensor.bytes == tensors[name].numel() * tensors[name].element_size()
    assert dtypes.keys() <= DTYPE_BITS.keys()


def test_sub_byte_dtypes():
    four = {"dtype": "F4", "shape": [4, 8], "data_offsets": [0, 16]}
    assert parse(packed({"w": four}))[0].bytes == 16
    with pytest.raises(CheckpointError, match="not its size"):
        parse(packed({"w": {**four, "shape": [3, 5]}}))


def changed(**fields: object) -> bytes:
    return packed({"w": {**WEIGHT, **fields}})


HOSTILE = {
    "empty": b"",
    "seven bytes": bytes(7),
    "length of zero": packed(b"", 0),
    "absurd length": packed({"w": WEIGHT}, length=(1 << 64) - 1),
    "length past the end": packed({"w": WEIGHT}, length=1 << 20),
    "no JSON": packed(b"<html></html>", 0),
    "half of the JSON": packed(json.dumps({"w": WEIGHT}).encode()[:-3]),
    "a list": packed(b"[1, 2]", 0),
    "not UTF-8": packed(b'{"\xff": 1}', 0),
    "a name twice": packed(
        b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
        b'"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        1,
    ),
    "nested for ever": packed(b'{"w":' + b"[" * 100_000, 0),
    "a number of thousands of digits": packed(b'{"w":' + b"9" * 20_000 + b"}", 0),
    "metadata that is no text": packed({"__metadata__": {"a": 1}}, 0),
    "entry that is no object": packed({"w": 7}),
    "entry without shape": packed({"w": {"dtype": "BF16", "data_offsets": [0, 16]}}),
    "entry with more": changed(stride=[1]),
    "unknown dtype": changed(dtype="Q4_K"),
    "dtype that is no text": changed(dtype=3),
    "negative extent": changed(shape=[-4, -2]),
    "fractional extent": changed(shape=[4.0, 2.0]),
    "boolean extent": changed(shape=[True, 8]),
    "absurd extents": changed(shape=[1 << 62, 1 << 62]),
    "absurd rank": changed(shape=[1] * 50 + [8]),
    "negative offset": changed(data_offsets=[-16, 0]),
    "reversed offsets": changed(data_offsets=[16, 0]),
    "three offsets": changed(data_offsets=[0, 8, 16]),
    "offsets that are not the size": changed(data_offsets=[0, 15]),
    "hole": packed({"w": {**WEIGHT, "data_offsets": [8, 24]}}, 24),
    "overlap": packed({"w": WEIGHT, "v": {**WEIGHT, "data_offsets": [8, 24]}}, 24),
    "truncated data": packed({"w": WEIGHT}, 15),
    "data that nobody owns": packed({"w": WEIGHT}, 17),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_quickly_and_without_allocation(name: str, tmp_path: Path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(HOSTILE[name])
    tracemalloc.start()
    start = time.perf_counter()
    try:
        with pytest.raises(CheckpointError, match=r"model\.safetensors"):
            read_header(path)
        assert time.perf_counter() - start < 1
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    with pytest.raises(LedgerError):
        read_safetensors(tmp_path, {"model_type": "llama"})


def test_a_sparse_giant_is_refused_or_read_at_once(tmp_path: Path):
    path = tmp_path / "giant.safetensors"
    size = 400 * 10**9
    content = packed({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}, 0)
    path.write_bytes(content)
    with path.open("r+b") as file:
        file.truncate(len(content) + size)
    start = time.perf_counter()
    assert read_header(path)[0].bytes == size
    with path.open("r+b") as file:  # a header that claims a hundred megabytes of zeros
        file.write(struct.pack("<Q", 100_000_000))
    with pytest.raises(CheckpointError, match=r"valid JSON|no JSON"):
        read_header(path)
    assert time.perf_counter() - start < 2


@given(st.data())
def test_a_mutated_header_is_read_or_refused(data: st.DataObject):
    content = bytearray(packed({"__metadata__": {"format": "pt"}, "w": WEIGHT,
                                "v": {"dtype": "F32", "shape": [1], "data_offsets": [16, 20]}},
                               20))  # fmt: skip
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(8, len(content) - 21))
        content[at] = data.draw(st.sampled_from(b'{}[]",:0123456789-.eE \\abtrufnls\xff'))
    try:
        found = parse(bytes(content))
    except LedgerError:
        return
    assert sum(tensor.bytes for tensor in found) == 20
