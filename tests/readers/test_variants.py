"""Variants of built-in models: changed fields, fitted lists, and what is refused."""

from __future__ import annotations

import pytest

from ledgerkit.catalog.models import load_model
from ledgerkit.errors import ConfigError, LedgerError, UnsupportedArchitectureError
from ledgerkit.readers.variants import continue_pattern


def test_a_deepseek_style_model_of_another_size():
    base = load_model("deepseek-v3")
    small = base.replace(num_hidden_layers=30, hidden_size=3072, kv_lora_rank=256)
    assert small.num_hidden_layers == 30
    assert small.kv_bytes_per_token() == 30 * (256 + 64) * 2
    assert [group.count for group in small.groups] == [3, 27]
    assert small.slug != base.slug
    assert "num_hidden_layers=30" in small.name
    assert base.num_hidden_layers == 61


def test_a_gemma_style_model_without_windows():
    base = load_model("gemma-4-26b-a4b")
    full = base.replace(sliding_window=None)
    assert full.parameter_count == base.parameter_count
    assert all(group.attention.limit is None for group in full.groups)
    # 25 layers of 8 heads of 256 and 5 of 2 heads of 512, keys and values, two bytes
    assert full.kv_bytes_per_token() == 2 * (25 * 8 * 256 * 2 + 5 * 2 * 512 * 2)
    assert any("without windows" in note for note in full.notes)


def test_a_kimi_style_model_with_half_the_experts():
    base = load_model("kimi-k2.6")
    half = base.replace(n_routed_experts=192)
    routed = ("ffn_mlp", "routed_experts")
    assert half.parameters[routed] * 2 == base.parameters[routed]
    assert half.active_parameter_count < base.active_parameter_count
    assert half.quantization == base.quantization


def test_another_spelling_reaches_the_field_that_the_file_uses():
    base = load_model("gemma-4-26b-a4b")
    assert base.replace(num_experts_per_tok=4).groups[0].ffn.num_experts_per_tok == 4
    gpt2 = load_model("gpt2").replace(
        num_hidden_layers=24, hidden_size=1024, num_attention_heads=16
    )
    assert gpt2.parameter_count == 354_823_168  # GPT-2 medium


def test_lists_per_layer_are_cut_and_continued_by_their_pattern():
    mimo = load_model("mimo-v2.5-pro")
    assert mimo.replace(num_hidden_layers=20).num_hidden_layers == 20
    longer = load_model("gpt-oss-120b").replace(num_hidden_layers=40)
    windows = {index: g.attention.window for g in longer.groups for index in g.layers}
    assert [windows[index] for index in range(36, 40)] == [128, None, 128, None]
    assert any("layer_types" in note for note in longer.notes)
    for slug in ("kimi-linear-48b-a3b", "nemotron-h-56b", "deepseek-v4-pro", "nemotron-super-49b",
                 "hunyuan-a13b", "gemma-3n-e4b", "jamba-v0.1", "minimax-m1", "step3"):  # fmt: skip
        base = load_model(slug)
        layers = base.num_hidden_layers
        for new in (layers - 7, layers + 3):
            assert base.replace(num_hidden_layers=new).num_hidden_layers == new, slug


def test_variants_of_variants():
    one = load_model("llama-3.1-8b").replace(num_hidden_layers=16)
    two = one.replace(num_key_value_heads=2)
    assert two.num_hidden_layers == 16
    assert two.kv_bytes_per_token() == 16 * 2 * 2 * 128 * 2
    assert two.replace(num_hidden_layers=32, num_key_value_heads=8).parameter_count == (
        load_model("llama-3.1-8b").parameter_count
    )


def test_the_same_value_gives_the_same_counts():
    base = load_model("deepseek-v3")
    assert base.replace(num_experts_per_tok=8).parameters == base.parameters
    assert base.replace() is base


@pytest.mark.parametrize(
    "fields",
    [
        {"num_hidden_layers": 0},
        {"num_hidden_layers": -1},
        {"num_hidden_layers": True},
        {"num_hidden_layers": "many"},
        {"num_hidden_layers": 10**9},
        {"hidden_size": 3.5},
        {"hidden_size": None},
        {"num_experts_per_tok": 1000},
        {"kv_lora_rank": 0},
        {"n_group": 7},
        {"first_k_dense_replace": -2},
        {"vocab_size": 0},
    ],
)
def test_impossible_values_are_refused(fields):
    with pytest.raises(LedgerError):
        load_model("deepseek-v3").replace(**fields)


def test_an_unknown_field_is_refused_by_name():
    with pytest.raises(UnsupportedArchitectureError, match="num_hyperloops"):
        load_model("llama-3.1-8b").replace(num_hyperloops=3)


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(ConfigError, match="num_key_value_heads"):
        load_model("llama-3.1-8b").replace(num_key_value_heads=5)


def test_windows_must_be_positive():
    for value in (0, -128):
        with pytest.raises(ConfigError, match="sliding_window"):
            load_model("gpt-oss-20b").replace(sliding_window=value)


@pytest.mark.parametrize(
    ("items", "length", "expected"),
    [
        ([0, 1, 1], 2, [0, 1]),
        ([0, 1, 0, 1], 7, [0, 1, 0, 1, 0, 1, 0]),
        ([9, 0, 1, 0, 1], 8, [9, 0, 1, 0, 1, 0, 1, 0]),
        ([1, 1, 1], 5, [1, 1, 1, 1, 1]),
        (list("M-M-*"), 7, list("M-M-*M-")),
    ],
)
def test_patterns_continue_with_their_shortest_tail(items, length, expected):
    assert continue_pattern(items, length) == expected
