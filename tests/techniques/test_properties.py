"""What holds for every technique: opposite signs, sums, empty identities, refusals with reasons."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit._techniques.registry import RECIPES
from ledgerkit.errors import CatalogError, LedgerError, TechniqueError

MODELS = ("llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3.2", "gemma-4-26b-a4b",
          "qwen3-next-80b-a3b-instruct", "gemma-3n-e4b-it", "gpt-oss-20b")  # fmt: skip

works = st.builds(
    lk.Workload,
    prompt_tokens=st.integers(1, 20_000),
    output_tokens=st.integers(1, 2_000),
    concurrency=st.integers(1, 64),
)
layouts = st.sampled_from(
    [{}, {"tp": 2}, {"tp": 8}, {"kv_dtype": "fp8"}, {"tp": 4, "ep": 4}, {"pp": 2}]
)


@st.composite
def transfers(draw):
    """A technique on a deployment that takes it."""
    model, layout, work = draw(st.sampled_from(MODELS)), draw(layouts), draw(works)
    names = draw(st.permutations(sorted(RECIPES)))
    for name in names:
        for action in ("remove", "apply"):
            try:
                return lk.transfer(name, model=model, hardware="h100-sxm-80gb", deployment=layout,
                                   workload=work, action=action)  # fmt: skip
            except LedgerError:
                continue
    reject()  # the deployment itself cannot be built
    return None


def changes(transfer):
    return {
        (r["phase"], r["resource"], r["ledger"], r["account"]): r["change"]
        for r in transfer.table.iter_rows(named=True)
    }


@settings(max_examples=15)
@given(transfers())
def test_the_other_way_round_has_the_opposite_signs(transfer):
    there, back = changes(transfer), changes(transfer.reversed())
    assert there.keys() == back.keys()
    assert all(there[key] == -back[key] for key in there)
    assert changes(transfer.reversed().reversed()) == there


@settings(max_examples=15)
@given(transfers())
def test_changes_sum_to_the_difference_of_the_two_ledgers(transfer):
    for phase, resource in {(key[0], key[1]) for key in changes(transfer)}:
        old, new = transfer.total(phase, resource)
        rows = transfer.table.filter(phase=phase, resource=resource)
        # each row's own rounding, and that of the totals: 4 ulp of the larger one
        slack = 8 * math.ulp(max(abs(old), abs(new), *rows["change"].abs()))
        assert math.fsum(rows["change"]) == pytest.approx(new - old, rel=0, abs=slack)
        assert math.fsum(rows["before"]) == pytest.approx(old, rel=0, abs=slack)


@settings(max_examples=5)
@given(works)
def test_stacks_sum_over_their_steps(work):
    where = {"hardware": "h100-sxm-80gb", "workload": work}
    names = ("gqa", "kv_quantization", "weight_fp8", "tensor_parallelism")
    model = lk.load_model("llama-3.1-8b")
    stack = lk.transfer([{"technique": "gqa", "kv_heads": 2}, *names[1:]], model=model, **where)
    total = dict.fromkeys(changes(stack), 0.0)
    point = stack.start.point
    for step in stack.steps:
        one = lk.transfer(step.technique, model=point.model, hardware=point.hardware,
                          deployment=point.deployment, workload=point.workload,
                          **{k: v for k, v in step.settings.items() if v is not None})  # fmt: skip
        for key, change in changes(one).items():
            total[key] = total.get(key, 0.0) + change
        point = one.after.point
    for key, change in changes(stack).items():
        assert total[key] == pytest.approx(
            change, rel=1e-9, abs=1e-6 if key[1] != "time" else 1e-12
        )


@settings(max_examples=5)
@given(works)
def test_there_and_back_is_empty(work):
    for technique, model in (
        ("kv_quantization", "llama-3.1-8b"),
        ("tensor_parallelism", "qwen3-8b"),
    ):
        both = lk.transfer(
            [technique, {"technique": technique, "action": "remove"}],
            model=model, hardware="h100-sxm-80gb", workload=work,
        )  # fmt: skip
        assert both.is_empty
        assert not both.books_a_cost
        assert both.credits.is_empty()
        assert both.debits.is_empty()


WORK = lk.Workload(prompt_tokens=1024, output_tokens=64)


@pytest.mark.parametrize(
    ("technique", "model", "action"),
    [
        ("gqa", "llama-3.1-8b", "apply"),
        ("mla", "deepseek-v3", "apply"),
        ("mla", "llama-3.1-8b", "remove"),
        ("sliding_window", "gemma-3-27b-it", "apply"),
        ("sliding_window", "llama-3.1-8b", "remove"),
        ("dsa", "deepseek-v3.2", "apply"),
        ("dsa", "deepseek-v3", "remove"),
        ("hybrid_linear", "qwen3-next-80b-a3b-instruct", "apply"),
        ("hybrid_linear", "qwen3-8b", "remove"),
        ("kv_sharing", "gemma-3n-e4b-it", "apply"),
        ("moe", "deepseek-v3", "apply"),
        ("moe", "llama-3.1-8b", "remove"),
        ("shared_experts", "deepseek-v3", "apply"),
        ("shared_experts", "mixtral-8x7b-v0.1", "remove"),
        ("gated_ffn", "llama-3.1-8b", "apply"),
        ("gated_ffn", "falcon-7b", "remove"),
        ("weight_fp8", "deepseek-v3", "apply"),
        ("expert_quantization", "llama-3.1-8b", "apply"),
        ("tensor_parallelism", "llama-3.1-8b", "remove"),
        ("expert_parallelism", "llama-3.1-8b", "apply"),
        ("mha", "llama-2-7b-hf", "apply"),
        ("mha", "llama-3.1-8b", "remove"),
        ("nsa", "deepseek-v3", "apply"),
        ("block_sparse", "minimax-m3", "apply"),
    ],
)
def test_what_a_model_has_already_or_lacks_is_refused_with_the_reason(technique, model, action):
    with pytest.raises(TechniqueError) as told:
        lk.transfer(technique, model=model, hardware="h200-sxm-141gb", workload=WORK, action=action)
    assert told.value.fix


def test_unknown_names_and_settings_are_named():
    where = {"model": "llama-3.1-8b", "hardware": "h100-sxm-80gb", "workload": WORK}
    with pytest.raises(CatalogError, match="gqa"):
        lk.transfer("gqaa", **where)
    with pytest.raises(TechniqueError, match="kv_heads"):
        lk.transfer("gqa", kvheads=4, **where)
    with pytest.raises(TechniqueError, match="apply, remove"):
        lk.transfer("gqa", action="drop", **where)
    with pytest.raises(TechniqueError, match="equal_active"):
        lk.transfer("moe", against="half", action="remove", **{**where, "model": "deepseek-v3"})
    with pytest.raises(TechniqueError, match="stack"):
        lk.transfer(["gqa", "mqa"], kv_heads=4, **where)
    with pytest.raises(TechniqueError, match="needs a technique"):
        lk.transfer([], **where)
    transfer = lk.transfer("mqa", **where)
    with pytest.raises(TechniqueError, match="unknown axis"):
        transfer.break_even("weather", "time")
    with pytest.raises(TechniqueError, match="unknown resource"):
        transfer.break_even("context", "money")
    with pytest.raises(TechniqueError, match="range"):
        transfer.break_even("context", between=(9, 9))


def test_a_break_even_along_a_setting_of_the_technique():
    work = lk.Workload(prompt_tokens=8192, output_tokens=64, concurrency=4)
    where = {"model": "llama-3.1-8b", "hardware": "h100-sxm-80gb", "workload": work}
    window = lk.transfer("sliding_window", **where)
    found = window.break_even("window", "read", between=(512, 16_384))
    # a window as long as the context saves nothing; below it always does
    assert (found.before, found.first) == ("gain", None)
    assert (
        window.moved("window", 8192 + 64).total("hold", "resident")[0]
        == (window.moved("window", 8192 + 64).total("hold", "resident")[1])
    )
    shared = lk.transfer("pd_disaggregation", **where)
    slow, fast = (
        shared.moved("link_bytes_per_s", rate).net.filter(name="ttft_s")["change"].item()
        for rate in (1e9, 1e11)
    )
    assert slow == pytest.approx(100 * fast)


def test_words_name_the_other_axis_in_both_languages():
    work = lk.Workload(prompt_tokens=8192, output_tokens=64, concurrency=4)
    mqa = lk.transfer("mqa", model="llama-3.1-8b", hardware="h100-sxm-80gb", workload=work)
    assert "concurrency 4" in mqa.break_even("context").words("en")
    assert "prompt 8K" in mqa.break_even("concurrency").words("en")
    assert mqa.break_even("context").words("zh").startswith("时间，decode，并发 4：")
    with pytest.raises(TechniqueError, match="no ledger books"):
        mqa.explain("routed_experts")


def test_an_unknown_kind_of_technique_is_named():
    with pytest.raises(TechniqueError, match="a name, a dict or a list"):
        lk.transfer(42, model="llama-3.1-8b", hardware="h100-sxm-80gb", workload=WORK)
    with pytest.raises(TechniqueError, match="needs a name"):
        lk.transfer([{"kv_heads": 4}], model="llama-3.1-8b", hardware="h100-sxm-80gb",
                    workload=WORK)  # fmt: skip


def test_what_only_other_devices_feel_is_a_change():
    # two KV heads on two ranks become one head on both: one copy for the replica
    found = lk.transfer("mqa", model="gemma-3n-e4b-it", hardware="h100-sxm-80gb", workload=WORK,
                        deployment=lk.Deployment(tp=2))  # fmt: skip
    assert found.credits.is_empty()
    assert not found.is_empty
    gate = lk.transfer("gated_ffn", model="deepseek-v3", hardware="h200-sxm-141gb", workload=WORK,
                       action="remove")  # fmt: skip
    assert gate.is_empty
    assert "what differs is quality" in gate.notes[0]
