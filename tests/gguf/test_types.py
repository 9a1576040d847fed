"""Sizes of the ggml types, against the ``gguf`` package and the block structs of ggml."""

from __future__ import annotations

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import UnsupportedDtypeError
from ledgerkit.spec.ggml import GGML_TYPES, ggml_type, ggml_type_by_id
from ledgerkit.spec.precision import storage

# gguf 0.19 counts 4-byte scales for q8_1, whose struct has two halves, and lacks q2_0;
# both from ggml-common.h: block_q8_1, block_q2_0
DIFFERENT = {"q8_1": (32, 2 + 2 + 32), "q2_0": (64, 2 + 16)}


@pytest.mark.parametrize("kind", GGML_TYPES, ids=lambda kind: kind.name)
def test_blocks(kind):
    if kind.name in DIFFERENT:
        assert (kind.block_elements, kind.block_bytes) == DIFFERENT[kind.name]
        return
    oracle = gguf.GGMLQuantizationType[kind.name.upper()]
    assert kind.id == int(oracle)
    assert (kind.block_elements, kind.block_bytes) == gguf.GGML_QUANT_SIZES[oracle]


def test_no_type_of_the_gguf_package_is_missing():
    assert {kind.name.upper() for kind in gguf.GGMLQuantizationType} <= {
        kind.name.upper() for kind in GGML_TYPES
    }
    assert len({kind.id for kind in GGML_TYPES}) == len(GGML_TYPES)


BITS = {"q4_k": 4.5, "q6_k": 6.5625, "q5_0": 5.5, "q8_0": 8.5, "iq1_s": 1.5625, "iq4_xs": 4.25,
        "mxfp4": 4.25, "nvfp4": 4.5, "tq1_0": 1.6875, "tq2_0": 2.0625, "q3_k": 3.4375,
        "iq2_xxs": 2.0625, "iq3_s": 3.4375, "q1_0": 1.125, "q2_0": 2.25}  # fmt: skip


@pytest.mark.parametrize("name", BITS)
def test_published_bits_per_weight(name: str):
    kind = ggml_type(name)
    assert kind.block_bytes * 8 / kind.block_elements == BITS[name]


@given(st.sampled_from(GGML_TYPES), st.integers(1, 40), st.integers(1, 5000), st.integers(1, 64))
def test_the_storage_format_has_the_bytes_of_the_type(kind, blocks, rows, experts):
    """Whatever reads ``Weight.bytes`` sees the bytes of the file, exactly."""
    inputs = blocks * kind.block_elements
    form = storage(kind.storage_name)
    assert form.bytes((rows, inputs)) == kind.tensor_bytes((inputs, rows))
    assert form.bytes((experts, rows, inputs)) == kind.tensor_bytes((inputs, rows, experts))
    assert form.bytes((inputs,)) == kind.row_bytes(inputs)


def test_names_and_numbers_that_do_not_exist():
    with pytest.raises(UnsupportedDtypeError, match="unknown ggml type"):
        ggml_type("q4_2")
    with pytest.raises(UnsupportedDtypeError, match="unknown ggml type number"):
        ggml_type_by_id(4)
    with pytest.raises(UnsupportedDtypeError, match="whole number of blocks"):
        ggml_type("q4_k").row_bytes(100)
    with pytest.raises(UnsupportedDtypeError, match="unknown storage format"):
        storage("q4_2")
