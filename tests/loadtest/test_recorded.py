"""The recorded load tests that ship: real, complete, and readable without a server."""

import json

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit._data import data_path
from ledgerkit.errors import LoadTestError
from ledgerkit.spec.llamacpp_cache import llamacpp_cache

SLOTS, PER_SLOT = 4, 2304
DEPLOYMENT = lk.Deployment(
    kv_dtype="fp16", engine="llama.cpp", max_num_seqs=SLOTS, max_model_len=PER_SLOT
)


@pytest.fixture(scope="module", params=["smollm2-135m", "gemma-3-270m"])
def name(request):
    return request.param


@pytest.fixture(scope="module")
def results(name):
    return lk.loadtest.recorded(name)


@pytest.fixture(scope="module")
def model(results):
    return lk.Model.model_validate(results.provenance["model"])


def test_it_is_what_the_plan_of_the_notebook_asks_for(results, model):
    device = lk.load_hardware(results.provenance["device"])
    plan = lk.loadtest.plan(
        model, device, DEPLOYMENT, contexts=[128, 512, 1024, 2048], concurrencies=[1, 2, 4],
        design="sweeps", output_tokens=224, warmup=1,
    )  # fmt: skip
    assert plan.fingerprint == results.provenance["plan"]["fingerprint"]
    assert results.provenance["end"] == "finished"
    assert results.failures.is_empty()
    assert results.cells.height == len(plan.order)
    requests = results.requests
    assert requests.height == sum(plan.cells[i].concurrency for i, _ in plan.order)
    assert requests["output_tokens"].to_list() == [224] * requests.height
    assert (requests["prompt_tokens"] - requests["prompt_tokens_requested"]).n_unique() == 1
    assert requests["cached_tokens"].sum() == 0
    assert requests["chunk_times_s"].list.len().min() > 200


def test_its_cache_is_the_one_that_llama_cpp_allocated(results, model):
    allocated = llamacpp_cache(model, SLOTS * PER_SLOT, SLOTS, n_ubatch=512).buffers
    printed = results.provenance["cache_buffers_mib"]
    assert printed == [f"{buffer.bytes / 2**20:.2f}" for buffer in allocated]


def test_it_can_be_judged_and_drawn(results, model):
    device = lk.load_hardware(results.provenance["device"])
    found = lk.loadtest.diagnose(
        results, model=model, hardware=device, deployment=DEPLOYMENT, at=(2048, 1)
    )
    assert found.table.height == 6
    assert found.table["predicted_s"].null_count() == 0
    assert found.anchors is not None
    if found.verdict == "undetermined":
        assert found.next_cells
    for cell in found.next_cells:
        assert (cell.prompt_tokens < PER_SLOT, cell.concurrency <= SLOTS) == (True, True)
    for kind in ("verdict", "ratio", "sensitivity"):
        assert found.chart(kind, language="zh").to_dict()["layer"]


def test_too_little_of_it_is_no_verdict(results):
    few = results.cells.filter(pl.col("run") < 2)
    found = lk.loadtest.diagnose(few, at=(2048, 1))
    assert (found.verdict, found.judgement.rule) == ("undetermined", "few_runs")


def test_it_says_where_it_comes_from_and_names_no_directory(name, results):
    told = json.dumps(results.provenance)
    assert results.provenance["file"]["name"].endswith(".gguf")
    assert len(results.provenance["file"]["sha256"]) == 64
    assert "xllamacpp" in results.provenance["engine"]
    assert "site-packages" not in told
    assert data_path("loadtest", f"{name}.parquet").stat().st_size < 200_000


def test_an_unknown_recording_lists_the_known():
    with pytest.raises(LoadTestError, match="gemma-3-270m, smollm2-135m"):
        lk.loadtest.recorded("gpt-5")
