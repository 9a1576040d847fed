"""Nonsense is refused by name: what is wrong, what was given, what is allowed, how to fix it."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit._ledger import Ledger, check_workload
from ledgerkit.errors import (
    CatalogError,
    ConfigError,
    DeploymentError,
    HardwareError,
    LedgerError,
    UnsupportedArchitectureError,
    UnsupportedDtypeError,
    WorkloadError,
)
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.hardware import Hardware
from tests.costs import world

WORK = {"prompt_tokens": 1024, "output_tokens": 128}
HUGE = 10**400
DEVICE = {
    "slug": "mine", "memory_bytes": 80_000_000_000, "memory_bytes_per_s": 3e12,
    "peak_flop_per_s": {"bf16": 1e15},
}  # fmt: skip


def refused(kind, match, call):
    """The call raises this kind of error, which says all that it should."""
    with pytest.raises(kind, match=match) as caught:
        call()
    error = caught.value
    assert type(error) is not LedgerError or kind is LedgerError
    assert error.what
    assert error.given is not None
    assert error.allowed
    assert error.fix
    assert all(part in str(error) for part in (error.what, error.allowed, error.fix))
    return error


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"prompt_tokens": 0}, "prompt_tokens"),
        ({"prompt_tokens": -5}, "prompt_tokens"),
        ({"prompt_tokens": 1.5}, "prompt_tokens"),
        ({"prompt_tokens": math.nan}, "prompt_tokens"),
        ({"prompt_tokens": math.inf}, "prompt_tokens"),
        ({"prompt_tokens": "many"}, "prompt_tokens"),
        ({"prompt_tokens": HUGE}, "prompt_tokens"),
        ({"output_tokens": 0}, "output_tokens"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": -1}, "concurrency"),
        ({"concurrency": HUGE}, "concurrency"),
        ({"cached_tokens": -1}, "cached_tokens"),
        ({"cached_tokens": 1024}, "cached_tokens must be below prompt_tokens"),
        ({"cached_tokens": 5000}, "cached_tokens must be below prompt_tokens"),
        ({"batch": 8}, "no field 'batch'"),
    ],
)
def test_workloads(change, match):
    refused(WorkloadError, match, lambda: Workload(**(WORK | change)))


def test_a_workload_needs_its_fields():
    refused(WorkloadError, "needs the field 'output_tokens'", lambda: Workload(prompt_tokens=1))
    refused(WorkloadError, "needs the field 'prompt_tokens'", Workload)
    with pytest.raises(WorkloadError, match="output_tokens"):
        Workload(prompt_tokens=1, output_tokens=None)


@pytest.mark.parametrize(
    ("change", "kind", "match"),
    [
        ({"tp": 0}, DeploymentError, "tp"),
        ({"tp": -8}, DeploymentError, "tp"),
        ({"tp": 1.5}, DeploymentError, "tp"),
        ({"tp": HUGE}, DeploymentError, "tp"),
        ({"pp": 0}, DeploymentError, "pp"),
        ({"dp_attention": 0}, DeploymentError, "dp_attention"),
        ({"ep": 3, "tp": 8}, DeploymentError, "ep must divide"),
        ({"kv_dtype": "fp7"}, DeploymentError, "unknown cache layout"),
        ({"weights": "int9_g7"}, UnsupportedDtypeError, "unknown storage format"),
        ({"experts": "float"}, UnsupportedDtypeError, "unknown storage format"),
        ({"activations": "fp32"}, DeploymentError, "activations"),
        ({"memory_fraction": 0}, DeploymentError, "memory_fraction"),
        ({"memory_fraction": 1.01}, DeploymentError, "memory_fraction"),
        ({"memory_fraction": math.nan}, DeploymentError, "memory_fraction"),
        ({"block_size": 0}, DeploymentError, "block_size"),
        ({"block_size": HUGE}, DeploymentError, "block_size"),
        ({"max_num_batched_tokens": 0}, DeploymentError, "max_num_batched_tokens"),
        ({"max_num_batched_tokens": HUGE}, DeploymentError, "max_num_batched_tokens"),
        ({"tensor_parallel": 8}, DeploymentError, "no field 'tensor_parallel'"),
    ],
)
def test_deployments(change, kind, match):
    refused(kind, match, lambda: Deployment(**change))


@pytest.mark.parametrize(
    ("config", "change", "kind", "match"),
    [
        (world.LLAMA_8B, {"tp": 3}, DeploymentError, "tp must divide num_attention_heads = 32"),
        (world.LLAMA_8B, {"tp": 64}, DeploymentError, "num_attention_heads"),
        ({**world.LLAMA_8B, "num_attention_heads": 30, "num_key_value_heads": 6, "head_dim": 128},
         {"tp": 10}, DeploymentError, "tp must divide num_key_value_heads = 6"),
        ({**world.LLAMA_8B, "intermediate_size": 14337}, {"tp": 8}, DeploymentError,
         "intermediate_size = 14337"),
        (world.LLAMA_8B, {"pp": 33}, DeploymentError, "pp is larger"),
        (world.LLAMA_8B, {"tp": 8, "ep": 8}, DeploymentError, "no experts to spread"),
        (world.LLAMA_8B, {"experts": "fp8"}, DeploymentError, "no experts to re-type"),
        (world.LLAMA_8B, {"max_model_len": 200_000}, DeploymentError, "max_model_len"),
        (world.LLAMA_8B, {"kv_dtype": "fp8_ds_mla"}, UnsupportedDtypeError, "MLA latents"),
        (world.MIXTRAL, {"tp": 16, "ep": 16}, DeploymentError, "ep must divide num_experts = 8"),
        ({**world.MIXTRAL, "intermediate_size": 14337}, {"tp": 8}, DeploymentError,
         "moe_intermediate_size"),
        ({**world.GPT2, "n_embd": 720, "n_positions": 4096}, {"kv_dtype": "q8_0"},
         UnsupportedDtypeError, "multiples of 32"),
        (world.DEEPSEEK_V3, {"tp": 256}, DeploymentError, "num_attention_heads = 128"),
    ],
)  # fmt: skip
def test_layouts_that_no_engine_builds(config, change, kind, match):
    model = world.model(config)
    refused(kind, match, lambda: lk.ledger(model, world.RACK, Deployment(**change), WORK))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"memory_bytes": 0}, "memory_bytes"),
        ({"memory_bytes": -1}, "memory_bytes"),
        ({"memory_bytes": HUGE}, "memory_bytes"),
        ({"memory_bytes_per_s": 0}, "memory_bytes_per_s"),
        ({"memory_bytes_per_s": -3e12}, "memory_bytes_per_s"),
        ({"memory_bytes_per_s": 1e-300}, "memory_bytes_per_s"),
        ({"memory_bytes_per_s": 1e300}, "memory_bytes_per_s"),
        ({"memory_bytes_per_s": math.inf}, "memory_bytes_per_s"),
        ({"memory_bytes_per_s": math.nan}, "memory_bytes_per_s"),
        ({"peak_flop_per_s": {}}, "peak_flop_per_s"),
        ({"peak_flop_per_s": {"bf16": 0}}, "peak_flop_per_s"),
        ({"peak_flop_per_s": {"bf17": 1e15}}, "peak_flop_per_s"),
        ({"scaleup_domain_size": 0}, "scaleup_domain_size"),
        ({"vram": 80}, "no field 'vram'"),
    ],
)
def test_devices(change, match):
    refused(HardwareError, match, lambda: Hardware(**(DEVICE | change)))


def test_a_device_without_the_dtype():
    model = world.model(world.LLAMA_8B)
    integer = Hardware(**(DEVICE | {"peak_flop_per_s": {"int8": 1e15}}))
    refused(UnsupportedDtypeError, "multiplies in none of",
            lambda: lk.ledger(model, integer, None, WORK))  # fmt: skip
    # fp8 weights on a device without fp8: computed in bf16, and said so
    books = lk.ledger(model, DEVICE, {"weights": "fp8"}, WORK)
    assert any("fp8" in note and "bf16" in note for note in books.notes)
    plain = lk.ledger(model, DEVICE, None, WORK)
    assert books.total("prefill", "compute") == plain.total("prefill", "compute") > 0
    assert books.ttft_s > 0


def test_devices_that_do_not_reach_each_other():
    model = world.model(world.LLAMA_8B)
    refused(HardwareError, "no link", lambda: lk.ledger(model, DEVICE, {"tp": 2}, WORK))
    linked = DEVICE | {"scaleup_bytes_per_s": 4e11, "scaleup_domain_size": 4}
    assert lk.ledger(model, linked, {"tp": 4}, WORK).tpot_s > 0
    refused(HardwareError, "more than one domain",
            lambda: lk.ledger(model, linked, {"tp": 8}, WORK))  # fmt: skip


def test_points_beyond_the_model_and_the_engine():
    model = world.model(world.LLAMA_8B)
    edge = {"prompt_tokens": 131_072 - 128, "output_tokens": 128}
    assert lk.ledger(model, world.RACK, None, edge).tpot_s > 0
    beyond = edge | {"prompt_tokens": 131_072 - 127}
    refused(WorkloadError, "beyond the positions",
            lambda: lk.ledger(model, world.RACK, None, beyond))  # fmt: skip
    refused(WorkloadError, "beyond max_model_len",
            lambda: lk.ledger(model, world.RACK, {"max_model_len": 1000}, WORK))  # fmt: skip
    crowd = WORK | {"concurrency": 9}
    refused(WorkloadError, "max_num_seqs",
            lambda: lk.ledger(model, world.RACK, {"max_num_seqs": 8}, crowd))  # fmt: skip
    assert lk.ledger(model, world.RACK, {"max_num_seqs": 8, "dp_attention": 2}, crowd).tpot_s > 0


@pytest.mark.parametrize("what", [None, 5, "short", [1, 2], Deployment()])
def test_a_ledger_needs_a_workload(what):
    with pytest.raises(WorkloadError, match="needs a workload") as caught:
        lk.ledger(world.model(world.LLAMA_8B), world.RACK, None, what)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("model", "hardware", "deployment", "kind"),
    [
        ("no-such-model", "h100-sxm-80gb", None, CatalogError),
        (5, "h100-sxm-80gb", None, CatalogError),
        (None, "h100-sxm-80gb", None, CatalogError),
        (world.LLAMA_8B, "h1000", None, CatalogError),
        (world.LLAMA_8B, None, None, CatalogError),
        (world.LLAMA_8B, {"slug": "half"}, None, HardwareError),
        (world.LLAMA_8B, DEVICE, {"engine": "no-such-engine"}, CatalogError),
        (world.LLAMA_8B, DEVICE, 8, DeploymentError),
        (world.LLAMA_8B, DEVICE, {"gpus": 8}, DeploymentError),
        ({}, DEVICE, None, ConfigError),
        ({"model_type": "perceptron"}, DEVICE, None, UnsupportedArchitectureError),
        ({**world.LLAMA_8B, "hidden_size": -1}, DEVICE, None, ConfigError),
        ({**world.LLAMA_8B, "hidden_size": HUGE}, DEVICE, None, ConfigError),
        ({**world.LLAMA_8B, "num_attention_heads": 0}, DEVICE, None, ConfigError),
        ({**world.LLAMA_8B, "num_key_value_heads": 7}, DEVICE, None, ConfigError),
        ({**world.LLAMA_8B, "num_hidden_layers": 10**9}, DEVICE, None, ConfigError),
        (
            {k: v for k, v in world.LLAMA_8B.items() if k != "hidden_size"},
            DEVICE,
            None,
            ConfigError,
        ),
        ({**world.MIXTRAL, "num_experts_per_tok": 9}, DEVICE, None, ConfigError),
    ],
    ids=lambda value: str(value)[:40],
)
def test_references(model, hardware, deployment, kind):
    with pytest.raises(kind) as caught:
        lk.ledger(model, hardware, deployment, WORK)
    assert caught.value.what


def test_a_model_that_does_not_fit_still_has_books():
    books = lk.ledger(world.model(world.DEEPSEEK_V3), DEVICE, None, WORK)
    assert books.fits == "no"
    assert books.max_concurrency == 0
    # by how much: weights of the checkpoint against what the engine may use
    assert -books.free_bytes == pytest.approx(books.resident_bytes_device - books.capacity_bytes)
    assert books.resident_bytes_device > 673e9 > books.capacity_bytes
    assert books.tpot_s > 0
    assert books.entries.height > 50


def test_axes_of_a_ledger():
    books = world.books_of(world.model(world.LLAMA_8B))
    refused(LedgerError, "unknown phase", lambda: books.total("training"))
    refused(LedgerError, "unknown resource", lambda: books.total("decode", "money"))
    refused(LedgerError, "unknown scope", lambda: books.total("decode", "read", "rack"))
    refused(LedgerError, "not a sum", lambda: books.total("decode", "time", "replica"))
    refused(LedgerError, "not a sum", lambda: books.by_ledger("decode", "steps", "replica"))
    refused(LedgerError, "unknown resource", lambda: books.share("decode", "money"))
    refused(LedgerError, "unknown resource", lambda: books.explain("core", resource="money"))
    refused(LedgerError, "unknown phase", lambda: books.explain("core", phase="training"))
    refused(LedgerError, "nothing is booked to indexer", lambda: books.explain("indexer"))
    assert books.share("hold", "time") == dict.fromkeys(books.share(), 0.0)


def test_comparisons():
    model = world.model(world.LLAMA_8B)
    point = {"model": model, "hardware": DEVICE, "workload": WORK}
    refused(LedgerError, "at least one point", lambda: lk.compare([]))
    refused(LedgerError, "Ledger or a dict", lambda: lk.compare(["llama-3.1-8b"]))
    refused(LedgerError, "unknown keys", lambda: lk.compare([point | {"gpu": 1}]))
    refused(LedgerError, "needs 'workload'",
            lambda: lk.compare([{"model": model, "hardware": DEVICE}]))  # fmt: skip
    refused(LedgerError, "same label", lambda: lk.compare([point, point]))
    for trail, match in (
        (("tp", [1, 2]), "unknown trail axis"),
        (("prompt_tokens", []), "values of at least 1"),
        (("prompt_tokens", [0, 5]), "values of at least 1"),
        (("prompt_tokens", [1.5]), "whole numbers"),
        (("prompt_tokens", ["x"]), "whole numbers"),
        ("prompt_tokens", "whole numbers"),
        (("prompt_tokens", 5), "whole numbers"),
    ):
        refused(LedgerError, match, lambda trail=trail: lk.compare([point], trail=trail))


def test_a_trail_ends_where_the_model_ends_and_says_so():
    model = world.model(world.LLAMA_8B)
    point = {"model": model, "hardware": DEVICE, "workload": WORK | {"cached_tokens": 100}}
    both = lk.compare([point], trail=("prompt_tokens", [50, 1024, 8192, 131_072]))
    assert both.table["prompt_tokens"].to_list() == [1024, 8192]
    assert both.table["is_operating_point"].to_list() == [True, False]
    assert len(both.notes) == 2
    assert "131072 positions" in both.notes[0]
    assert "100 cached_tokens" in both.notes[1]
    crowded = lk.compare(
        [point | {"deployment": {"max_num_seqs": 4}}], trail=("concurrency", [1, 4, 8])
    )
    assert crowded.table["concurrency"].to_list() == [1, 4]
    assert "max_num_seqs" in crowded.notes[0]


# extremes --------------------------------------------------------------------------------------

MODELS = world.every_kind()


def numbers(books):
    """Every number of a ledger."""
    yield from (
        books.ttft_s, books.ttft_s_low, books.ttft_s_high, books.tpot_s, books.tpot_s_low,
        books.tpot_s_high, books.e2e_s, books.tokens_per_s, books.tokens_per_s_low,
        books.tokens_per_s_high, books.resident_bytes_device, books.capacity_bytes,
        books.free_bytes, books.max_concurrency, *books.share().values(),
    )  # fmt: skip
    for entry in books._entries:
        yield from (entry.amount_device, entry.low, entry.high, entry.amount_replica or 0.0)


@settings(max_examples=120)
@given(
    model=st.sampled_from(MODELS),
    deployment=st.fixed_dictionaries(
        {
            "tp": st.sampled_from((1, 2, 8, 16, 32, 64, 128)),
            "pp": st.sampled_from((1, 2, 5, 12)),
            "dp_attention": st.sampled_from((1, 3, 16)),
            "ep": st.sampled_from((1, 2, 16)),
            "weights": st.sampled_from((None, "int2_g1", "fp8_block128", "nvfp4")),
            "kv_dtype": st.sampled_from(("bf16", "fp8", "nvfp4", "q4_0", "fp8_ds_mla")),
            "max_num_batched_tokens": st.sampled_from((None, 64, 1 << 50)),
            "block_size": st.sampled_from((None, 1, 1 << 50)),
            "memory_fraction": st.sampled_from((None, 1e-9, 1.0)),
        }
    ),
    prompt=st.sampled_from((1, 2, 500, 4096)),
    output=st.sampled_from((1, 2, 9000)),
    at_the_limit=st.booleans(),
    concurrency=st.sampled_from((1, 2, 1000, 10**6, 2**53)),
    memory=st.sampled_from((1, 10**6, 2**53)),
    rate=st.sampled_from((1.0, 3e12, 1e24)),
)
def test_extremes_give_finite_books_or_a_reason(
    model, deployment, prompt, output, at_the_limit, concurrency, memory, rate
):
    device = world.RACK.model_copy(
        update={"memory_bytes": memory, "memory_bytes_per_s": rate, "scaleup_domain_size": 1 << 20}
    )
    if at_the_limit:
        prompt = max(1, model.max_position_embeddings - output)
    try:
        setup = Deployment(**deployment)
        work = Workload(prompt_tokens=prompt, output_tokens=output, concurrency=concurrency)
        check_workload(model, setup, work)
        books = Ledger(world.table_of(model, setup, device), work)
        found = list(numbers(books))
    except LedgerError as error:
        assert error.what  # noqa: PT017
        return
    assert all(math.isfinite(number) for number in found)
    assert books.fits in ("yes", "no", "uncertain")
    assert books.ttft_s > 0
    assert books.tpot_s > 0
    assert math.fsum(books.share().values()) == pytest.approx(1)
    assert (books.max_concurrency >= concurrency) == (books.free_bytes >= 0) or (
        # places are counted per attention rank, where the last one may be partly empty
        concurrency % setup.dp_attention
    )


@pytest.mark.parametrize("model", MODELS, ids=[model.slug for model in MODELS])
def test_one_token_in_and_out(model):
    books = world.books_of(model, prompt_tokens=1, output_tokens=1)
    core = [e for e in books._entries if e.account == "core" and e.resource == "compute"]
    assert {e.phase for e in core} <= {"prefill", "decode"}
    assert books.e2e_s == books.ttft_s
    for phase, account in product(("prefill", "decode"), ("cache",)):
        reads = [e.amount_device for e in books._entries
                 if (e.phase, e.account, e.resource) == (phase, account, "read")]  # fmt: skip
        # one token is kept, and read once in each layer that has a cache
        assert math.fsum(reads) <= model.cache_bytes(1) * 2
