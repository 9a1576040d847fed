"""Cache and state elements against the real cache tensors of the reference.

The reference ran shrunken models with a window of 16, in which sliding layers show 15 kept tokens,
and its convolution memory has as many columns as the kernel. Not comparable: the state of
MiniMax-M1 (its class keeps none in the cache that was measured) and rows with an error.
"""

from __future__ import annotations

import csv
import re

import pytest

import ledgerkit as lk
from ledgerkit.readers.config import read_config
from ledgerkit.spec.attention import CompressedAttention, NoAttention, StateAttention
from ledgerkit.spec.cache import layer_cache_bytes

KEPT = 15
KIND = re.compile(r"(\d+)x (\w+) \[(\w+)\] slope=([\d.e+]+) fixed=([\d.e+]+) (\{.*?\})(?: \||$)")


@pytest.fixture(scope="session")
def measured(shared):
    with (shared / "facts" / "cache_elements.csv").open(encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if not row["error"]]
    assert len(found) >= 74
    return [
        (row, read_config(shared / "facts" / "configs" / (row["id"].replace("/", "__") + ".json")))
        for row in found
    ]


def growing(attention):
    """Elements that each further token adds for ever."""
    if attention.limit is not None:
        return 0
    indexer = getattr(attention, "indexer", None)
    keys = 0 if indexer is None else indexer.elements_per_token
    if isinstance(attention, CompressedAttention):
        return (attention.head_dim + keys) / attention.ratio if attention.ratio else 0
    return attention.elements_per_token + keys


def fixed(attention):
    """Elements that stay the same from some context on, as the reference counts them."""
    if isinstance(attention, StateAttention):
        return attention.state_elements + attention.conv_elements("transformers")
    if isinstance(attention, CompressedAttention):
        # the overlap of two windows: keys and gates of main and index compressor
        widths = attention.head_dim + (attention.indexer.head_dim if attention.indexer else 0)
        return KEPT * attention.head_dim + 2 * attention.ratio * widths * attention.overlap
    if isinstance(attention, NoAttention) or attention.limit is None:
        return 0
    return KEPT * attention.elements_per_token


def test_growing_and_fixed_elements_equal_the_measured_cache(measured):
    wrong = {}
    for row, model in measured:
        state_is_missing = row["id"].startswith("MiniMaxAI/MiniMax-M1")
        ours = [
            sum(group.count * growing(group.attention) for group in model.groups),
            0 if state_is_missing else sum(g.count * fixed(g.attention) for g in model.groups),
        ]
        theirs = [float(row["slope_elems_per_token"]), float(row["fixed_elems"])]
        if ours != theirs:
            wrong[row["id"]] = (ours, theirs)
    assert not wrong


def test_every_kind_of_layer_equals_its_cache_tensors(measured):
    wrong = {}
    for row, model in measured:
        if row["id"].startswith("MiniMaxAI/MiniMax-M1"):
            continue
        theirs = sorted(
            (float(slope), float(elements))
            for count, _, _, slope, elements, _ in KIND.findall(row["detail"])
            for _ in range(int(count))
        )
        ours = sorted(
            (growing(group.attention), fixed(group.attention))
            for group in model.groups
            for _ in range(group.count)
        )
        assert len(theirs) == len(ours) == int(row["n_layers"]), row["id"]
        same = all(
            mine[0] == pytest.approx(other[0], rel=1e-12)
            # the reference prints six digits
            and mine[1] == pytest.approx(other[1], rel=1e-5)
            for mine, other in zip(ours, theirs, strict=True)
        )
        if not same:
            wrong[row["id"]] = (ours[:3], theirs[:3])
    assert not wrong


def test_window_of_the_layers_is_the_one_of_the_config(measured):
    checked = 0
    for row, model in measured:
        if not row["real_window"] or model.model_type.startswith(("mimo", "deepseek_v4")):
            continue  # the reference holds 129 and 128 for these
        windows = {g.attention.limit for g in model.groups if g.attention.kind == "softmax"}
        assert int(row["real_window"]) in windows, row["id"]
        checked += 1
    assert checked >= 9


def test_kv_bytes_per_token_follow_from_the_elements(measured):
    for row, model in measured:
        expected = 2 * float(row["slope_elems_per_token"])
        assert model.kv_bytes_per_token() == pytest.approx(expected, rel=1e-12), row["id"]


def test_peak_bytes_of_a_layer_count_each_kept_token(measured):
    for _, model in measured:
        for group in model.groups:
            attention = group.attention
            if attention.kind == "softmax" and attention.limit is not None:
                size = attention.limit
                full = layer_cache_bytes(attention, size)
                assert layer_cache_bytes(attention, 3 * size) == full
                assert full == 2 * size * attention.elements_per_token


def test_the_compressors_of_deepseek_v4_keep_what_is_not_yet_an_entry():
    model = lk.load_model("deepseek-v4-pro")
    # values and gates in fp32: 128 tokens of one window, or 4 of two that overlap (main and index)
    heavy, light = 2 * 128 * 512 * 4, 2 * 4 * 2 * (512 + 128) * 4
    kept = 31 * heavy + 30 * light
    entries = 128 * 584 * 61 + 31 * (131_072 // 128) * 584 + 30 * (131_072 // 4) * (584 + 132)
    assert model.cache_bytes(131_072, "fp8") == entries + kept
    assert entries / 2**20 == pytest.approx(693.3, abs=0.05)
    books = lk.ledger(
        model, "b200-sxm-180gb", lk.Deployment(tp=8, kv_dtype="fp8"),
        lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=4),
    )  # fmt: skip
    held = books.entries.filter(phase="hold", account="state")
    assert held["amount_device"].sum() == 4 * kept  # every tensor-parallel rank has its own copy
