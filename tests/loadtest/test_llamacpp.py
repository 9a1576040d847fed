"""The real thing: plan, run and judge a real llama.cpp server on this machine.

What is asserted is structure, counts and bytes; speed is whatever the machine gives.
"""

import re

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.errors import LoadTestError
from ledgerkit.spec.llamacpp_cache import llamacpp_cache
from tests.gguf import real_files

pytestmark = [pytest.mark.xdist_group("llamacpp"), pytest.mark.slow]

PATIENT = lk.loadtest.Limits(first_token_s=900, stall_s=300, request_s=1800)
OUTPUT, SLOTS, PER_SLOT = 16, 4, 2304
DEPLOYMENT = lk.Deployment(kv_dtype="fp16", engine="llama.cpp")


@pytest.fixture(scope="module")
def device():
    return lk.loadtest.profile_local(threads=1, seconds=0.3)


def measure(path, device, where, contexts, many, seed):
    """Run the two sweeps of the article once, and judge them."""
    model = lk.load_model(str(path))
    plan = lk.loadtest.plan(
        model, device, DEPLOYMENT, contexts=contexts, concurrencies=many, design="sweeps",
        output_tokens=OUTPUT, runs=1, warmup=1, seed=seed,
    )  # fmt: skip
    assert plan.cells[plan.order[0][0]].name == "128 x 1"  # it comes again at the end: short
    with lk.loadtest.serve_local(path, slots=SLOTS, context_tokens=PER_SLOT) as server:
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
    return measure(real_files.smollm2(), device, where, [128, 512, 1024, 2048], [1, 2], 3)


@pytest.fixture(scope="module")
def gemma3(device, tmp_path_factory):
    path = real_files.gemma3(real_files.shared_directory(tmp_path_factory))
    return measure(path, device, tmp_path_factory.mktemp("gemma3"), [128, 512, 1024], [1, 2, 4], 3)


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


def test_every_cell_has_a_step_of_its_own(tested):
    _, plan, results, _, _ = tested
    cells = results.cells
    assert cells.height == len(plan.order)
    assert (cells["concurrency"] <= cells["concurrency_requested"]).all()
    assert (cells["concurrency"] >= 1).all()
    alone = cells.filter(pl.col("concurrency_requested") == 1)
    assert set(alone["itl_method"]) == {"steady window"}
    for column in ("itl_s", "ttft_p50_s", "e2e_p99_s", "engine_itl_s", "tokens_per_s"):
        assert cells[column].null_count() == 0
        assert (cells[column] > 0).all()


def test_the_engines_own_metrics_are_read(tested):
    _, _, results, _, _ = tested
    assert results.provenance["server"]["metrics"] is True
    running = results.cells["running_max"].drop_nulls()
    assert len(running)
    assert (running <= SLOTS).all()


def test_the_file_holds_everything(tested, tmp_path):
    _, plan, results, found, _ = tested
    again = lk.loadtest.read(results.save(tmp_path / "again.parquet"))
    assert again.cells.equals(results.cells)
    assert again.provenance["plan"]["fingerprint"] == plan.fingerprint
    assert again.provenance["end"] == "finished"
    judged = lk.loadtest.diagnose(again, at=(found.context_tokens, found.concurrency))
    assert judged.table["measured_s"].equals(found.table["measured_s"])


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
    for row, (context, many) in zip(
        found.fit.design, found.cells.select("context_tokens", "concurrency").rows(), strict=True
    ):
        low = model.cache_bytes(int(context), "fp16") * many
        high = model.cache_bytes(int(context) + 1, "fp16") * many
        assert low <= row[2] <= high


def test_one_run_is_no_verdict_and_the_rest_is_well_formed(tested):
    _, plan, _, found, _ = tested
    assert (found.verdict, found.judgement.rule) == ("undetermined", "few_runs")
    assert {cell.runs for cell in found.next_cells} == {2}
    assert found.table.height == len(plan.cells)
    assert found.table["predicted_s"].null_count() == 0
    assert (found.table["measured_over_predicted"] > 0).all()
    assert found.anchors is not None
    for share in (found.attention_kv_share, found.sequence_share, found.step_share):
        assert 0 <= share.low <= share.value <= share.high <= 1
    for language in ("zh", "en"):
        assert found.text(language)
        for kind in ("verdict", "ratio", "sensitivity"):
            assert found.chart(kind, language=language).to_dict()["width"] == 700


def test_a_file_that_is_no_model_does_not_start(tmp_path):
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"GGUF, but not really")
    with (
        pytest.raises(LoadTestError, match="did not start"),
        lk.loadtest.serve_local(wrong, slots=1, context_tokens=256),
    ):
        pass


@pytest.mark.parametrize("option", ["slots", "context_tokens", "ubatch", "threads"])
def test_numbers_of_a_server_that_make_no_sense(option, tmp_path):
    (tmp_path / "any.gguf").touch()
    with (
        pytest.raises(LoadTestError, match=option),
        lk.loadtest.serve_local(tmp_path / "any.gguf", **{option: 0}),
    ):
        pass
