"""Further architectures: what is refused, and what only they have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ledgerkit.errors import CheckpointError, LedgerError, UnsupportedArchitectureError
from ledgerkit.readers.gguf import read_gguf
from ledgerkit.spec.attention import NoAttention, SoftmaxAttention, StateAttention
from ledgerkit.spec.feed_forward import DenseFfn, MoeFfn, NoFfn
from tests.gguf import build
from tests.gguf.build import PLANS

REFUSED: dict[str, tuple[str, Callable[[build.Plan], object], type[LedgerError], str]] = {
    "a window that llama.cpp does not apply": (
        "exaone4", lambda p: p.keys.update({"attention.sliding_window": 512}),
        UnsupportedArchitectureError, "64 layers only"),
    "other caches than llama.cpp keeps": (
        "gemma3n", lambda p: p.keys.update({"attention.shared_kv_layers": 3}),
        UnsupportedArchitectureError, "20 caches"),
    "experts of another width": (
        "hunyuan_moe", lambda p: p.keys.update(expert_feed_forward_length=192),
        UnsupportedArchitectureError, "intermediate_size"),
    "an MTP block of Ling": (
        "bailingmoe2", lambda p: (p.keys.update(nextn_predict_layers=1, block_count=5),
                                  p.add("blk.4.", attn_norm=(256,))),
        UnsupportedArchitectureError, "MTP blocks of bailingmoe2"),
    "window layers with different heads": (
        "step35", lambda p: p.keys.update({"attention.head_count": [4, 6, 6, 8]}),
        UnsupportedArchitectureError, "same heads"),
    "shared experts of another width": (
        "exaone_moe", lambda p: p.keys.update(expert_shared_feed_forward_length=192),
        CheckpointError, "shared experts"),
    "attention that is one matrix": (
        "deci", lambda p: p.keys.update({"attention.head_count": [4, 4, 0, 4]}),
        UnsupportedArchitectureError, "one matrix"),
    "two MTP blocks of Nemotron": (
        "nemotron_h_moe", lambda p: p.keys.update(nextn_predict_layers=2),
        UnsupportedArchitectureError, "MTP blocks of nemotron_h_moe"),
    "an MTP block of Nemotron without experts": (
        "nemotron_h_moe_mtp", lambda p: p.keys.update(feed_forward_length=[0, 128, 0, 128, 0]),
        UnsupportedArchitectureError, "MTP blocks of nemotron_h_moe"),
    "a block with attention and MLP": (
        "nemotron_h", lambda p: p.keys.update(feed_forward_length=[0, 512, 512, 512]),
        UnsupportedArchitectureError, "attention and an MLP"),
    "MLPs of two widths": (
        "nemotron_h", lambda p: p.keys.update(feed_forward_length=[0, 512, 0, 640]),
        CheckpointError, "equally wide"),
    "layers without a period": (
        "jamba", lambda p: p.keys.update({"attention.head_count_kv": [2, 0, 2, 2]}),
        UnsupportedArchitectureError, "period"),
    "an inner width that does not fit": (
        "jamba", lambda p: p.keys.update({"ssm.inner_size": 500}), CheckpointError, "inner_size"),
    "another latent width": (
        "nemotron_h_moe", lambda p: p.keys.update(moe_latent_size=32), CheckpointError,
        "contradict"),
    "another rank of a projection": (
        "jamba", lambda p: p.keys.update({"ssm.time_step_rank": 8}), CheckpointError,
        "contradict"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    name, change, error, match = REFUSED[case]
    plan = PLANS[name]()
    change(plan)
    with pytest.raises(error, match=match):
        read_gguf(build.write(tmp_path / "changed.gguf", plan))


def test_one_mixer_or_mlp_in_each_block(tiny: dict[str, Path]) -> None:
    model = read_gguf(tiny["nemotron_h_moe"])
    kinds = {layer: group for group in model.groups for layer in group.layers}
    assert [type(kinds[layer].attention) for layer in range(4)] == [
        StateAttention, NoAttention, SoftmaxAttention, NoAttention
    ]  # fmt: skip
    assert [type(kinds[layer].ffn) for layer in range(4)] == [NoFfn, MoeFfn, NoFfn, MoeFfn]
    moe = kinds[1].ffn
    assert isinstance(moe, MoeFfn)
    assert (moe.expert_hidden_size, moe.shared_intermediate_size, moe.matrices) == (64, 192, 2)
    # in and out of the latent space, and two matrices for each of 8 experts
    assert model.parameters["ffn_mlp", "routed_experts"] == 2 * (2 * 256 * 64 + 8 * 2 * 64 * 128)


def test_state_of_mamba1(tiny: dict[str, Path]) -> None:
    model = read_gguf(tiny["jamba"])
    states = [group for group in model.groups if isinstance(group.attention, StateAttention)]
    assert sorted(layer for group in states for layer in group.layers) == [0, 1, 3]
    assert all(group.attention.state_elements == 512 * 16 for group in states)
    assert model.kv_bytes_per_token() == 2 * 2 * 64 * 2


def test_caches_of_gemma3n(tiny: dict[str, Path]) -> None:
    model = read_gguf(tiny["gemma3n"])
    stores = {layer: group.attention.stores_kv for group in model.groups for layer in group.layers}
    assert sorted(layer for layer, kept in stores.items() if kept) == list(range(20))
    assert any("another layer's cache" in note for note in model.notes)
    assert model.kv_bytes_per_token() == 4 * 2 * 2 * 64 * 2  # layers 4, 9, 14, 19 are full


def test_short_convolutions_keep_columns_and_no_state(tiny: dict[str, Path]) -> None:
    model = read_gguf(tiny["lfm2moe"])
    kinds = {layer: group for group in model.groups for layer in group.layers}
    kept = [kinds[layer].attention for layer in (0, 1, 3)]
    assert all(isinstance(one, StateAttention) and one.variant == "short_conv" for one in kept)
    assert {(one.state_elements, one.conv_elements()) for one in kept} == {(0, 2 * 256)}
    assert isinstance(kinds[2].attention, SoftmaxAttention)
    assert [type(kinds[layer].ffn) for layer in range(4)] == [DenseFfn] + [MoeFfn] * 3
    assert model.kv_bytes_per_token() == 2 * 2 * 64 * 2


def test_an_unknown_architecture_is_named(tmp_path: Path) -> None:
    plan = PLANS["llama"]()
    plan.architecture = "plamo2"
    with pytest.raises(UnsupportedArchitectureError, match="plamo2") as caught:
        read_gguf(build.write(tmp_path / "unknown.gguf", plan))
    assert "lfm2moe" in str(caught.value)
    assert "config.json" in str(caught.value)
