"""The real thing: plan, run and judge a real llama.cpp server on this machine.

What is asserted is structure, counts and bytes; speed is whatever the machine gives.
"""

import re

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.spec.llamacpp_cache import llamacpp_cache
from tests.gguf import real_files
from tests.llamacpp_server import serving

pytestmark = [pytest.mark.xdist_group("llamacpp"), pytest.mark.slow]

PATIENT = lk.loadtest.Limits(first_token_s=900, stall_s=300, request_s=1800)
OUTPUT, SLOTS, PER_SLOT = 20, 4, 2304
DEPLOYMENT = lk.Deployment(kv_dtype="fp16", engine="llama.cpp")


@pytest.fixture(scope="module")
def device():
    return lk.loadtest.profile_local(threads=1, seconds=0.5)


def measure(path, device, where, contexts, many):
    """Run the two sweeps of the article, three times each, and judge them."""
    model = lk.load_model(str(path))
    with serving(path, where, n_ctx=SLOTS * PER_SLOT, n_parallel=SLOTS, n_ubatch=512) as server:
        plan = lk.loadtest.plan(
            model, device, DEPLOYMENT, contexts=contexts, concurrencies=many, design="sweeps",
            output_tokens=OUTPUT, warmup=1,
        )  # fmt: skip
        results = lk.loadtest.run(
            plan, server.url, served_model=path.name, out=where / "test.parquet", limits=PATIENT
        )
        log = server.text()
    found = lk.loadtest.diagnose(
        results, model=model, hardware=device, deployment=DEPLOYMENT, at=(max(contexts), 1)
    )
    return model, plan, results, found, log


@pytest.fixture(scope="module")
def smollm2(device, tmp_path_factory):
    where = tmp_path_factory.mktemp("smollm2")
    return measure(real_files.smollm2(), device, where, [128, 512, 1024, 2048], [1, 2, 4])


@pytest.fixture(scope="module")
def gemma3(device, tmp_path_factory):
    path = real_files.gemma3(real_files.shared_directory(tmp_path_factory))
    return measure(path, device, tmp_path_factory.mktemp("gemma3"), [128, 512, 1024], [1, 2])


@pytest.fixture(params=["smollm2", "gemma3"])
def tested(request):
    return request.getfixturevalue(request.param)


def test_the_server_counts_what_was_planned(tested):
    _, plan, results, _, _ = tested
    assert results.failures.is_empty()
    requests = results.requests
    assert requests.height == sum(plan.cells[i].concurrency for i, _ in plan.order)
    # prompts were sent as token ids; a model may put its start token before them
    added = requests["prompt_tokens"] - requests["prompt_tokens_requested"]
    assert added.n_unique() == 1
    assert added[0] in (0, 1)
    assert requests["output_tokens"].to_list() == [OUTPUT] * requests.height
    assert set(requests["tokens_from"]) == {"usage"}
    assert set(requests["finish_reason"]) == {"length"}
    assert requests["cached_tokens"].sum() == 0  # salted prompts meet no prefix cache


def test_sequences_really_decode_together(tested):
    _, plan, results, _, _ = tested
    cells = results.cells
    assert cells.height == len(plan.order)
    assert (cells["concurrency"] <= cells["concurrency_requested"]).all()
    assert (cells["concurrency"] >= 1).all()
    alone = cells.filter(pl.col("concurrency_requested") == 1)
    assert set(alone["itl_method"]) == {"steady window"}
    assert (cells["itl_s"] > 0).all()


def test_the_engines_own_clock_agrees_with_the_clients(tested):
    """Through a loopback address the client waits for the engine and little else."""
    _, _, results, found, _ = tested
    assert results.cells["engine_itl_s"].null_count() == 0
    assert abs(found.gap.value) < 0.15


def test_cache_bytes_are_those_that_llama_cpp_allocates(tested):
    model, _, _, _, log = tested
    printed = re.findall(r" KV buffer size = +([\d.]+) MiB", log)
    allocated = llamacpp_cache(model, SLOTS * PER_SLOT, SLOTS, n_ubatch=512).buffers
    assert printed == [f"{buffer.bytes / 2**20:.2f}" for buffer in allocated]
    whole = sum(buffer.bytes for buffer in allocated)
    live = SLOTS * model.cache_bytes(PER_SLOT, "fp16")
    if all(getattr(group.attention, "window", None) is None for group in model.groups):
        assert whole == live
    else:  # windowed layers also hold a batch beside the window, in cells of 256
        assert live < whole < 2 * live


def test_the_regressors_are_cache_bytes_to_the_byte(tested):
    model, _, _, found, _ = tested
    if found.fit is None:
        pytest.fail("five cells with repeats must give a fit")
    for row, (context, many) in zip(
        found.fit.design, found.cells.select("context_tokens", "concurrency").rows(), strict=True
    ):
        low = model.cache_bytes(int(context), "fp16") * many
        high = model.cache_bytes(int(context) + 1, "fp16") * many
        assert low <= row[2] <= high


def test_there_is_a_verdict_with_predictions_beside_it(tested):
    _, plan, _, found, _ = tested
    assert found.verdict in ("attention_kv", "weights", "mixed", "service", "undetermined")
    assert found.table.height == len(plan.cells)
    assert found.table["predicted_s"].null_count() == 0
    assert found.anchors is not None
    for language in ("zh", "en"):
        assert found.text(language)
        assert found.chart("verdict", language=language).to_dict()["width"] == 700
        assert found.chart("ratio", language=language).to_dict()["width"] == 700
