"""What a hostile user typed: each snippet ends in a right result, a note or a full error."""

from __future__ import annotations

import pytest

import ledgerkit as lk
from ledgerkit.errors import DeploymentError, LedgerError, UnsupportedDtypeError, WorkloadError

MODEL, DEVICE = "llama-3.1-8b", "h100-sxm-80gb"
SHORT = {"prompt_tokens": 8, "output_tokens": 8}


def refused(call, match, kind=LedgerError, given=True):
    """The call raises this kind of error, which says all that it should."""
    with pytest.raises(kind, match=match) as caught:
        call()
    error = caught.value
    assert type(error) is not LedgerError or kind is LedgerError
    assert "given:" in str(error) or not given
    assert error.allowed
    assert error.fix
    return error


# notes -----------------------------------------------------------------------------------------


def test_sequences_above_the_engine_s_default_are_told():
    crowded = lk.ledger(MODEL, DEVICE, workload=SHORT | {"concurrency": 5000})
    assert any("runs 1024 sequences" in note and "5000" in note for note in crowded.notes)
    calm = crowded.at(lk.Workload(**SHORT, concurrency=1024))
    assert not calm.notes
    ranks = lk.ledger(MODEL, DEVICE, {"dp_attention": 8}, SHORT | {"concurrency": 8192})
    assert not ranks.notes
    trail = lk.compare([calm], trail=("concurrency", [1, 1025]))
    assert any("runs 1024 sequences" in note and "1025" in note for note in trail.notes)
    assert not lk.compare([calm], trail=("concurrency", [1, 512])).notes


# silent numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["weights", "experts"])
@pytest.mark.parametrize("name", ["int64", "int32", "i8", "i16", "f64", "q8_1", "q8_k", "bool"])
def test_formats_that_are_none_of_weights(field, name):
    refused(lambda: lk.Deployment(**{field: name}), f"^{field}: ", UnsupportedDtypeError)


@pytest.mark.parametrize(
    ("model", "asked", "kept", "rows"),
    [
        ("gpt-oss-20b", "q4_k", "q5_0", "2880"),
        ("gpt-oss-20b", "iq2_xxs", "iq4_nl", "2880"),
        ("smollm2-360m", "q6_k", "q8_0", "960"),
    ],
)
def test_rows_that_are_no_whole_blocks_are_kept_as_llama_cpp_keeps_them(model, asked, kept, rows):
    books = lk.ledger(model, DEVICE, {"weights": asked}, SHORT)
    assert any(f"rows of {rows} elements" in note and kept in note for note in books.notes)
    same = lk.ledger("llama-3.1-8b", DEVICE, {"weights": asked}, SHORT)
    assert not any("whole number of blocks" in note for note in same.notes)


def test_bytes_of_rows_that_are_no_whole_blocks():
    """SmolLM2-360M: rows of 960 in q5_0 (22 bytes for 32), rows of 2560 in q4_k (144 for 256)."""
    model = lk.load_model("smollm2-360m")
    books = [lk.ledger(model, DEVICE, {"weights": name}, SHORT) for name in ("bf16", "q4_k")]
    of_960, of_2560 = 960 * (960 + 320 + 320 + 960 + 2 * 2560), 960 * 2560
    saved = 32 * (of_960 * (2 - 22 / 32) + of_2560 * (2 - 144 / 256))
    held = [found.resident_bytes_device for found in books]
    assert held[0] - held[1] == pytest.approx(saved, rel=1e-12)


def test_groups_longer_than_a_row():
    for field in ("weights", "experts"):
        layout = {field: "int4_g999999"}
        refused(lambda layout=layout: lk.ledger("gpt-oss-20b", DEVICE, layout, SHORT),
                f"{field}='int4_g999999': a group is longer than a row of 2880",
                UnsupportedDtypeError)  # fmt: skip


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (lambda: lk.Deployment(tp=True), DeploymentError, "tp must be a whole number"),
        (lambda: lk.Deployment(memory_fraction=True), DeploymentError, "must be a number"),
        (lambda: lk.Deployment(engine=b"vllm"), DeploymentError, "engine must be text"),
        (lambda: lk.Deployment(weights=True), DeploymentError, "weights must be text"),
        (lambda: lk.Workload(**SHORT | {"prompt_tokens": b"1"}), WorkloadError, "whole number"),
        (lambda: lk.Workload(**SHORT, concurrency=True), WorkloadError, "whole number"),
    ],
)
def test_flags_and_bytes_are_no_numbers_or_names(call, kind, match):
    refused(call, match, kind)


# scheduling ------------------------------------------------------------------------------------

WORK = {"prompt_tokens": 1024, "output_tokens": 128, "concurrency": 32}
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("mechanism", "setting", "values"),
    [
        ("chunked_prefill", "chunk_tokens", (0, -1, 1.5, NAN, INF, 1e300, "x", None, True)),
        ("prefix_cache", "match_tokens", (-1, NAN, "x", None, 0.5)),
        ("prefix_cache", "block_size", (0, -1, NAN, "x", 10**400)),
        ("prefix_cache", "restore_bytes_per_s", (0, -1, NAN, INF, "x", 10**400)),
        ("paged_cache", "max_model_len", (0, -1, NAN, "x")),
        ("paged_cache", "lengths", (["x"], [NAN], [1e200], [], 5, None, b"ab", "normal")),
        ("continuous_batching", "schedule_s", (-1, NAN, INF, "x", None, True)),
        ("speculative_decoding", "acceptance", ("x", None, NAN, 1.5, [0.5, 0.5], ["x"], 10**400)),
        ("speculative_decoding", "draft_tokens", (-1, 1.5, "x", None, 10**9)),
        ("pipeline_bubble", "micro_batches", (0, -1, 1.5, "x")),
        ("agent_context", "policy", ("x", None, 5)),
        ("agent_context", "steps", (0, 10**9, NAN, "x", None)),
        ("agent_context", "tool_tokens", (-1, NAN, "x", None)),
        ("disaggregation", "link_bytes_per_s", (0, -1, NAN, "x")),
        ("disaggregation", "hidden_share", (-0.1, 1.1, NAN, "x", None)),
    ],
)
def test_settings_of_mechanisms(mechanism, setting, values):
    needed = {"prefix_cache": {"match_tokens": 512}, "speculative_decoding": {"acceptance": 0.8},
              "agent_context": {"tool_tokens": 100}}.get(mechanism, {})  # fmt: skip
    if mechanism == "speculative_decoding":
        needed |= {"draft": MODEL}
    for value in values:
        given = needed | {setting: value}
        word = {"lengths": "lengths"}.get(setting, setting)
        refused(lambda given=given: lk.scheduling(mechanism, MODEL, DEVICE, None, WORK, **given),
                word)  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "given"),
    [
        ("expert_exchange", {"kernels": "x"}), ("expert_exchange", {"most_tokens": 0}),
        ("expert_offload", {"how": "x"}), ("expert_offload", {"sync_s": -1}),
        ("expert_balance", {"skew": 0}), ("expert_balance", {"skew": None}),
        ("node_limited_routing", {"nodes": 0}), ("node_limited_routing", {"nodes": 10**12}),
        ("node_limited_routing", {"nodes": 4, "node_limit": 0}),
    ],
)  # fmt: skip
def test_settings_of_mechanisms_with_experts(mechanism, given):
    layout = {"tp": 8, "ep": 8}
    refused(lambda: lk.scheduling(mechanism, "deepseek-v3", DEVICE, layout, WORK, **given),
            list(given)[-1])  # fmt: skip


@pytest.mark.parametrize("name", [None, "x", ["x"], 5])
def test_names_of_mechanisms(name):
    refused(lambda: lk.scheduling(name, MODEL, DEVICE, None, WORK), "scheduling mechanism")
    refused(lambda: lk.scheduling("graph_padding", MODEL, DEVICE, None, WORK, zz=1), "'zz'")
    refused(lambda: lk.scheduling("prefix_cache", MODEL, DEVICE, None, WORK), "match_tokens")
