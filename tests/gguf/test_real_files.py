"""Real files against the reader of the ``gguf`` package, tensor by tensor and byte by byte."""

from __future__ import annotations

import functools
import math
from collections import Counter
from pathlib import Path

import gguf
import pytest

from ledgerkit.readers.gguf import read_gguf, read_gguf_file
from ledgerkit.readers.gguf_header import GgufArray, read_header


@pytest.fixture(params=["smollm2", "gemma3"])
def real(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


@functools.cache
def read_with_gguf_package(path: Path) -> gguf.GGUFReader:
    """Slow on a large vocabulary, so once for each file."""
    return gguf.GGUFReader(path)


def test_header_equals_the_one_of_the_gguf_package(real: Path):
    header, oracle = read_header(real), read_with_gguf_package(real)
    assert header.data_offset == oracle.data_offset
    start = header.data_offset
    found = [(t.name, t.ne, t.type, t.bytes, start + t.offset) for t in header.tensors]
    assert found == [
        (t.name, tuple(map(int, t.shape)), t.tensor_type.name.lower(), int(t.n_bytes),
         int(t.data_offset))
        for t in oracle.tensors
    ]  # fmt: skip
    stated = {key: value for key, value in oracle.fields.items() if not key.startswith("GGUF.")}
    assert header.metadata.keys() == stated.keys()
    for key, value in header.metadata.items():
        if isinstance(value, GgufArray):
            assert value.length == len(stated[key].data)
            continue
        expected = stated[key].contents()
        if isinstance(value, tuple):
            assert list(value) == list(expected)
        elif isinstance(value, float):
            assert math.isclose(value, expected, rel_tol=1e-6)
        else:
            assert value == expected, key


def test_bytes_of_the_accounts_are_the_bytes_of_the_tensors(real: Path):
    oracle = read_with_gguf_package(real)
    model, file = read_gguf(real), read_gguf_file(real)
    assert model.weight_bytes == sum(int(t.n_bytes) for t in oracle.tensors) == file.tensor_bytes
    assert model.parameter_count == sum(int(t.n_elements) for t in oracle.tensors)
    assert file.unbooked == ()
    assert sum(model.weight_bytes_by_account.values()) == model.weight_bytes
    # every tensor is one row of one layer, in its own type
    rows = Counter()
    for weight, count in model.booked_weights():
        rows[weight.name, weight.dtype] += count
    names = {"f32": "fp32"}
    found = Counter(
        ("blk.{layer}." + t.name.split(".", 2)[2] if t.name.startswith("blk.") else t.name,
         names.get(t.tensor_type.name.lower(), t.tensor_type.name.lower()))
        for t in oracle.tensors
    )  # fmt: skip
    assert rows == found


def test_smollm2_accounts(smollm2: Path):
    """By hand: 30 layers, width 576, 9 heads, 3 KV heads, MLP 1536, table 49152 in q8_0."""
    model = read_gguf(smollm2)
    q4_1, q8_0 = 20 / 32, 34 / 32
    assert model.weight_bytes_by_account == {
        ("attention_kv", "norms"): 30 * 576 * 4,
        ("attention_kv", "projections"): 30 * (2 * 576 * 576 + 2 * 192 * 576) * q4_1,
        ("ffn_mlp", "dense"): 30 * 3 * 576 * 1536 * q4_1,
        ("ffn_mlp", "norms"): 30 * 576 * 4,
        ("ffn_mlp", "vocab"): 49152 * 576 * q8_0 + 576 * 4,
    }
    assert model.parameter_count == 134_515_008  # SmolLM2-135M, recounted with transformers
    assert model.tie_word_embeddings
    assert model.slug == "smollm2-135m-instruct.q4_1"
    assert model.quantization == "GGUF q4_1, q8_0, f32"
    assert len(model.groups) == 1


def test_gemma3_layers_are_grouped_by_types_and_windows(gemma3: Path):
    """llama.cpp makes every sixth layer full; q4_k_m has attn_v and ffn_down in two types."""
    model = read_gguf(gemma3)
    kinds = {layer: group for group in model.groups for layer in group.layers}
    assert [layer for layer in range(18) if kinds[layer].attention.limit is None] == [5, 11, 17]
    types = {
        int(t.name.split(".")[1]): t.tensor_type.name.lower()
        for t in read_with_gguf_package(gemma3).tensors
        if t.name.endswith("ffn_down.weight")
    }
    for layer, group in kinds.items():
        down = next(w for w in group.weights if w.name == "blk.{layer}.ffn_down.weight")
        assert down.dtype == types[layer]
    assert len(set(types.values())) == 2
    assert model.cache_bytes(1000, "fp16") == (15 * 512 + 3 * 1000) * 2 * 256 * 2


def test_reading_leaves_the_weights_on_disk(gemma3: Path):
    header = read_header(gemma3)
    assert header.data_offset < 0.03 * header.file_bytes
    assert isinstance(header.metadata["tokenizer.ggml.tokens"], GgufArray)
