"""The header parser: what it accepts, what it refuses, and that refusing is cheap."""

from __future__ import annotations

import resource
import struct
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import CheckpointError, LedgerError
from ledgerkit.readers.gguf import read_gguf
from ledgerkit.readers.gguf_header import GgufArray, parse_header, read_header
from tests.gguf import build, raw

HUGE = (1 << 64) - 1
F16, Q4_K = 1, 12
WEIGHT = raw.tensor("w", (256, 4), Q4_K, 0)
WEIGHT_BYTES = 4 * 144


def good(*pairs: bytes, data: int = WEIGHT_BYTES) -> bytes:
    return raw.header(list(pairs), [WEIGHT], data=data)


def parse(packed: bytes):
    return parse_header(packed, len(packed), "x.gguf")


def test_every_type_of_value_is_read():
    packed = raw.header([
        raw.pair("u8", 0, b"\xff"), raw.pair("i8", 1, b"\xff"),
        raw.pair("u16", 2, b"\xff\xff"), raw.pair("i16", 3, b"\xff\xff"),
        raw.u32("u32", 1 << 31), raw.pair("i32", 5, struct.pack("<i", -5)),
        raw.pair("f32", 6, struct.pack("<f", 0.5)), raw.pair("bool", 7, b"\x01"),
        raw.string("string", "时间 text"), raw.pair("u64", 10, struct.pack("<Q", HUGE)),
        raw.pair("i64", 11, struct.pack("<q", -1)), raw.pair("f64", 12, struct.pack("<d", 0.25)),
        raw.array("numbers", raw.I32, 3, struct.pack("<3i", 1, -2, 3)),
        raw.array("flags", raw.BOOL, 2, b"\x00\x01"),
        raw.array("words", raw.STRING, 2, raw.text("a") + raw.text("")),
        raw.array("long", raw.F32, 5000, bytes(4 * 5000)),
        raw.array("vocabulary", raw.STRING, 5000, raw.text("token") * 5000),
    ], [WEIGHT], data=WEIGHT_BYTES)  # fmt: skip
    found = parse(packed)
    assert found.metadata == {
        "u8": 255, "i8": -1, "u16": 65535, "i16": -1, "u32": 1 << 31, "i32": -5, "f32": 0.5,
        "bool": True, "string": "时间 text", "u64": HUGE, "i64": -1, "f64": 0.25,
        "numbers": (1, -2, 3), "flags": (False, True), "words": ("a", ""),
        "long": GgufArray(5000), "vocabulary": GgufArray(5000),
    }  # fmt: skip
    assert found.tensors[0].bytes == WEIGHT_BYTES
    assert found.data_offset % 32 == 0


def test_version_2_is_read_and_alignment_is_honoured():
    assert parse(raw.header([], [WEIGHT], version=2, data=WEIGHT_BYTES)).version == 2
    packed = raw.header([raw.u32("general.alignment", 256)], [WEIGHT], data=WEIGHT_BYTES,
                        alignment=256)  # fmt: skip
    assert parse(packed).data_offset == 256


HOSTILE = {
    "empty": b"",
    "too short": b"GGUF\x03\x00\x00\x00",
    "magic": raw.header([], [], magic=b"GGML"),
    "magic reversed": raw.header([], [], magic=b"FUGG"),
    "version 0": raw.header([], [], version=0),
    "version 1": raw.header([], [], version=1),
    "version 4": raw.header([], [], version=4),
    "big-endian": raw.header([], [], version=0x03000000),
    "absurd number of tensors": raw.header([], [], tensor_count=HUGE),
    "more tensors than bytes": raw.header([], [], tensor_count=1000),
    "absurd number of pairs": raw.header([], [], pair_count=1 << 40),
    "more pairs than bytes": raw.header([], [], pair_count=100),
    "key past the end": raw.header([raw.text("k", length=1 << 33)], [], data=None),
    "key of absurd length": raw.header([raw.text("k", length=HUGE)], [], data=None),
    "empty key": good(raw.u32("", 1)),
    "key is not utf-8": good(raw.pair(b"\xff\xfe", raw.U32, bytes(4))),
    "duplicate key": good(raw.u32("a", 1), raw.u32("a", 2)),
    "unknown value type": good(raw.pair("a", 13, bytes(8))),
    "string past the end": good(raw.pair("a", raw.STRING, raw.text("abc", length=1 << 40))),
    "string is not utf-8": good(raw.pair("a", raw.STRING, raw.text(b"\xc3\x28"))),
    "boolean is 2": good(raw.pair("a", raw.BOOL, b"\x02")),
    "boolean in an array is 7": good(raw.array("a", raw.BOOL, 1, b"\x07")),
    "array past the end": good(raw.array("a", raw.F32, 1 << 40, b"")),
    "array of absurd length": good(raw.array("a", raw.U64, HUGE, b"")),
    "strings past the end": good(raw.array("a", raw.STRING, 1 << 40, b"")),
    "vocabulary that runs past the end": good(
        raw.array("a", raw.STRING, 5000, raw.text("x") * 4999 + raw.text("x", length=1 << 50))
    ),
    "nested array": good(raw.array("a", raw.ARRAY, 1, struct.pack("<IQ", raw.U8, 0))),
    "array of an unknown type": good(raw.array("a", 99, 1, bytes(8))),
    "alignment 0": good(raw.u32("general.alignment", 0)),
    "alignment 24": good(raw.u32("general.alignment", 24)),
    "alignment is a string": good(raw.string("general.alignment", "32")),
    "alignment is a boolean": good(raw.pair("general.alignment", raw.BOOL, b"\x01")),
    "empty tensor name": raw.header([], [raw.tensor("", (256,), F16, 0)], data=512),
    "long tensor name": raw.header([], [raw.tensor("n" * 65, (256,), F16, 0)], data=512),
    "duplicate tensor": raw.header(
        [], [raw.tensor("w", (16,), F16, 0), raw.tensor("w", (16,), F16, 32)], data=64
    ),
    "rank 0": raw.header([], [raw.tensor("w", (), F16, 0)], data=512),
    "rank 5": raw.header([], [raw.tensor("w", (1,) * 5, F16, 0)], data=512),
    "absurd rank": raw.header([], [raw.tensor("w", (16,), F16, 0, rank=1 << 31)], data=512),
    "zero extent": raw.header([], [raw.tensor("w", (16, 0), F16, 0)], data=512),
    "overflowing extents": raw.header([], [raw.tensor("w", (1 << 40, 1 << 40), F16, 0)], data=512),
    "removed type": raw.header([], [raw.tensor("w", (32,), 4, 0)], data=512),
    "unknown type": raw.header([], [raw.tensor("w", (32,), 1 << 30, 0)], data=512),
    "part of a block": raw.header([], [raw.tensor("w", (100, 4), Q4_K, 0)], data=512),
    "misaligned offset": raw.header([], [raw.tensor("w", (16,), F16, 8)], data=512),
    "offset past the end": raw.header([], [raw.tensor("w", (16,), F16, 1 << 60)], data=512),
    "data truncated": good(data=WEIGHT_BYTES - 1),
    "no data": good(data=0),
    "overlap": raw.header(
        [], [raw.tensor("a", (32,), F16, 0), raw.tensor("b", (32,), F16, 32)], data=512
    ),
    "header truncated": good()[:40],
    "header truncated in a tensor": raw.header([], [WEIGHT[:-3]], data=None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused_quickly_and_without_allocation(name: str, tmp_path: Path):
    path = tmp_path / "hostile.gguf"
    path.write_bytes(HOSTILE[name])
    tracemalloc.start()
    start = time.perf_counter()
    try:
        with pytest.raises(CheckpointError) as caught:
            read_header(path)
        elapsed, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
    assert elapsed < 0.5
    assert "hostile.gguf" in str(caught.value)
    with pytest.raises(CheckpointError):
        read_gguf(path)


GIGABYTE = 1 << 30
SPARSE = {
    "an endless name": raw.header([raw.text("k", length=50 * GIGABYTE)], [], data=None),
    "endless empty strings": raw.header(
        [raw.pair("a", raw.ARRAY, struct.pack("<IQ", raw.STRING, 4 * GIGABYTE))], [], data=None
    ),
    "many arrays of empty strings": raw.header(
        [raw.array(f"a{n}", raw.STRING, 1 << 20, bytes(8 << 20)) for n in range(5)], [], data=None
    ),
    "endless string": raw.header(
        [raw.pair("a", raw.STRING, struct.pack("<Q", 50 * GIGABYTE))], [], data=None,
        pair_count=2,
    ),
    "endless array": raw.header(
        [raw.pair("a", raw.ARRAY, struct.pack("<IQ", raw.U64, 6 * GIGABYTE))], [], data=None,
        pair_count=2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPARSE)
def test_lengths_that_a_sparse_file_can_hold_cost_nothing(name: str, tmp_path: Path):
    """In a file of 100 GiB of holes, absurd lengths do not run past the end."""
    path = tmp_path / "sparse.gguf"
    path.write_bytes(SPARSE[name])
    with path.open("r+b") as file:
        file.truncate(100 * GIGABYTE)
    start = time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError):
        read_header(path)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert time.process_time() - start < 3
    assert grown < 64 << 20  # pages of the map that were walked


def test_what_is_kept_has_a_budget():
    """Long strings and arrays are counted; many short ones are kept only up to 32 MiB."""
    text = raw.text("x" * (1 << 20))
    packed = raw.header(
        [raw.pair("long", raw.STRING, raw.text(bytes((1 << 20) + 1))),
         *[raw.pair(f"s{n}", raw.STRING, text) for n in range(40)]],
        [WEIGHT], data=WEIGHT_BYTES,
    )  # fmt: skip
    found = parse(packed).metadata
    assert found["long"] == GgufArray((1 << 20) + 1)
    assert sum(isinstance(value, str) for value in found.values()) == 31
    assert found["s39"] == GgufArray(1 << 20)


def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path):
    for path in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(CheckpointError, match="cannot be read"):
            read_header(path)


@given(st.binary(max_size=400))
def test_noise_is_refused(noise: bytes):
    with pytest.raises(CheckpointError):
        parse(b"GGUF" + noise[:60])
    with pytest.raises(CheckpointError):
        parse(noise)


SMALL = raw.header(
    [
        raw.string("general.architecture", "llama"), raw.u32("llama.block_count", 1),
        raw.array("tokenizer.ggml.tokens", raw.STRING, 3, raw.text("a") + raw.text("b") * 2),
        raw.pair("flag", raw.BOOL, b"\x01"),
    ],
    [raw.tensor("token_embd.weight", (32, 3), 2, 0), raw.tensor("b", (8,), 0, 64)],
    data=96,
)  # fmt: skip


@given(st.data())
def test_a_mutated_header_is_read_or_refused(data: st.DataObject):
    """Never another exception, and what is read keeps inside the file."""
    packed = bytearray(SMALL)
    for _ in range(data.draw(st.integers(1, 4))):
        match data.draw(st.sampled_from(["flip", "set", "cut", "insert", "widen"])):
            case "flip":
                at = data.draw(st.integers(0, len(packed) - 1))
                packed[at] ^= 1 << data.draw(st.integers(0, 7))
            case "set":
                at = data.draw(st.integers(0, len(packed) - 1))
                packed[at] = data.draw(st.sampled_from([0, 1, 8, 9, 12, 127, 255]))
            case "cut":
                del packed[data.draw(st.integers(24, len(packed) - 1)) :]
            case "insert":
                at = data.draw(st.integers(0, len(packed)))
                packed[at:at] = data.draw(st.binary(min_size=1, max_size=9))
            case "widen":  # a 64-bit number somewhere becomes absurd
                at = data.draw(st.integers(0, max(0, len(packed) - 8)))
                packed[at : at + 8] = struct.pack("<Q", data.draw(st.integers(0, HUGE)))
        if len(packed) < 25:
            break
    try:
        found = parse(bytes(packed))
    except LedgerError:
        return
    ends = [found.data_offset + t.offset + t.bytes for t in found.tensors]
    assert all(end <= len(packed) for end in ends)
    assert len({t.name for t in found.tensors}) == len(found.tensors)


@pytest.fixture(scope="module")
def moe_header(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, int, Path]:
    """The start of a small mixture-of-experts file, its whole size, and room for mutants."""
    where = tmp_path_factory.mktemp("mutants")
    path = build.write(where / "gpt_oss.gguf", build.gpt_oss())
    packed = path.read_bytes()
    return packed, read_header(path).data_offset, where / "mutant.gguf"


@given(st.data())
def test_a_model_read_from_a_mutated_file_is_whole_or_refused(
    moe_header: tuple[bytes, int, Path], data: st.DataObject
):
    packed, header_bytes, path = moe_header
    at = data.draw(st.integers(0, header_bytes - 1))
    mutant = bytearray(packed)
    mutant[at] = data.draw(st.integers(0, 255).filter(lambda value: value != packed[at]))
    path.write_bytes(mutant)
    try:
        model = read_gguf(path)
    except LedgerError:
        return
    assert model.weight_bytes == sum(model.weight_bytes_by_account.values()) > 0
