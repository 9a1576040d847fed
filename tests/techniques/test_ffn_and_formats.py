"""Numbers of feed-forward techniques, formats and layouts, against arithmetic."""

from __future__ import annotations

import math

import pytest

import ledgerkit as lk

WORK = lk.Workload(prompt_tokens=4096, output_tokens=2, concurrency=1)


def rows(technique, model, *, hardware="h200-sxm-141gb", work=WORK, back=False, **options):
    found = lk.transfer(technique, model=model, hardware=hardware, workload=work, **options)
    found = found.reversed() if back else found
    return {(r["phase"], r["resource"], r["account"]): r for r in found.table.iter_rows(named=True)}


# bytes of a weight with its scales, in a matrix of 14,336 by 4,096
BYTES = {
    "weight_fp8": 1 + 4 / 128**2,
    "weight_int8": 1 + 4 / 4096,
    "weight_int4": 0.515625,
    "weight_mxfp4": 0.53125,
    "weight_nvfp4": 0.5625,
    "weight_gguf": 0.5625,
}


@pytest.mark.parametrize("technique", sorted(BYTES))
def test_weights_shrink_to_their_bits_and_scales(technique):
    found = rows(technique, "llama-3.1-8b")
    held = found["hold", "resident", "dense"]
    # of 4,096 inputs, the down projection has 14,336: scales per row are fewer there
    assert held["after"] / held["before"] == pytest.approx(BYTES[technique] / 2, rel=3e-4)
    assert found["decode", "read", "dense"]["share_of_before"] < 0
    assert found["hold", "resident", "vocab"]["change"] == 0


def test_experts_shrink_and_nothing_else():
    found = rows("expert_quantization", "qwen3-30b-a3b")
    held = found["hold", "resident", "routed_experts"]
    assert held["after"] / held["before"] == pytest.approx(0.53125 / 2)
    # the engine's reserve is an estimate of its own
    moved = {key[2] for key, row in found.items() if key[0] == "hold" and row["change"]}
    assert moved - {"padding"} == {"routed_experts"}


def test_a_dense_ffn_of_equal_active_parameters_computes_as_much():
    found = rows("dense_ffn", "qwen3-30b-a3b")
    experts, dense = (found["decode", "compute", name] for name in ("routed_experts", "dense"))
    assert dense["after"] == experts["before"]
    # 8 of 128 experts stay resident
    assert found["hold", "resident", "dense"]["after"] == (
        found["hold", "resident", "routed_experts"]["before"] / 16
    )


def test_a_shared_expert_is_one_that_every_token_uses():
    found = rows("shared_experts", "deepseek-v3", action="remove", back=True,
                 deployment=lk.Deployment(tp=8))  # fmt: skip
    routed = found["decode", "compute", "routed_experts"]
    assert routed["after"] / routed["before"] == pytest.approx(8 / 9)
    shared = found["decode", "compute", "shared_experts"]["after"]
    assert shared == pytest.approx(routed["before"] - routed["after"])
    many = lk.Workload(prompt_tokens=1024, output_tokens=2, concurrency=32)
    found = rows("shared_experts", "deepseek-v3", action="remove", back=True, work=many,
                 deployment=lk.Deployment(tp=8))  # fmt: skip
    # 32 tokens read fewer distinct experts when one of nine is common to all
    routed = found["decode", "read", "routed_experts"]
    distinct = [256 * (1 - (1 - k / 256) ** 32) for k in (8, 9)]
    assert routed["after"] / routed["before"] == pytest.approx(distinct[0] / distinct[1])


def test_a_window_hybrid_keeps_one_layer_in_six():
    work = lk.Workload(prompt_tokens=65_535, output_tokens=1)
    found = rows("hybrid_window", "llama-3.1-8b", work=work, action="apply")
    held = found["hold", "resident", "cache"]
    assert held["after"] == 4_096 * (5 * 65_536 + 27 * 1_024)
    assert found["hold", "resident", "projections"]["change"] == 0


def test_blocks_are_scored_by_their_mean_keys():
    work = lk.Workload(prompt_tokens=65_536, output_tokens=1)
    found = rows("block_sparse", "llama-3.1-8b", work=work, action="apply", block=512, blocks=8)
    core = found["decode", "compute", "core"]
    assert core["before"] / core["after"] == 65_536 / 4_096
    scores = found["decode", "compute", "indexer"]["after"]
    assert scores == 32 * (65_536 // 512) * 2 * 32 * (128 + 1)
    # one key of eight heads for 512 tokens
    assert found["hold", "resident", "indexer"]["after"] == 32 * (65_537 // 512) * 8 * 128 * 2


def test_expert_parallel_ranks_wait_for_the_fullest():
    work = lk.Workload(prompt_tokens=1024, output_tokens=2, concurrency=1024)
    layout = lk.Deployment(dp_attention=8)
    found = rows("expert_parallelism", "deepseek-v3", work=work, deployment=layout)
    late, experts = (found["decode", "time", name]["after"] for name in ("ep", "routed_experts"))
    mean = 1024 * 8 / 8
    assert late > experts * math.sqrt(2 * math.log(8) / mean) * (1 - 1e-9)


def test_two_stages_halve_what_a_device_holds_and_send_hidden_states():
    found = rows("pipeline_parallelism", "llama-3.1-70b")
    dense = found["hold", "resident", "dense"]
    assert dense["after"] == dense["before"] / 2
    assert found["decode", "communicate", "pp"]["after"] == 8_192 * 2
