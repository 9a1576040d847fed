"""What is planned fits, is complete, and can be printed for other tools."""

import shlex

import pytest

import ledgerkit as lk
from ledgerkit.errors import LoadTestError


@pytest.fixture(scope="module")
def planned():
    return lk.loadtest.plan("llama-3.1-8b", "h100-sxm-80gb")


def test_the_grid_of_the_article_without_what_cannot_fit(planned):
    grid = {(c, b) for c in (1024, 8192, 32768, 131072 - 256) for b in (1, 4, 8, 16)}
    here = {(cell.prompt_tokens, cell.concurrency) for cell in planned.cells}
    left = {(cell.prompt_tokens, cell.concurrency) for cell in planned.skipped}
    assert here | left == grid
    assert not here & left
    assert all(cell.fits in ("yes", "uncertain") for cell in planned.cells)
    for c, b in left:  # 131,072 B per token beside 16 GB of weights
        assert b * (c + 256) * 131072 + 16e9 > 0.9 * 80e9


def test_every_cell_runs_often_enough_and_the_first_comes_back(planned):
    cells = len(planned.cells)
    assert len(planned.order) == 3 * cells + 1
    for run in range(3):
        block = planned.order[run * cells : (run + 1) * cells]
        assert sorted(block) == [(place, run) for place in range(cells)]
    assert planned.order[-1] == (planned.order[0][0], 3)
    assert planned.order[:cells] != tuple(sorted(planned.order[:cells]))


def test_predictions_are_those_of_the_ledger(planned):
    cell = planned.cells[3]
    books = lk.ledger(
        "llama-3.1-8b", "h100-sxm-80gb", lk.Deployment(),
        lk.Workload(prompt_tokens=cell.prompt_tokens, output_tokens=cell.output_tokens,
                    concurrency=cell.concurrency),
    )  # fmt: skip
    assert (cell.step_s, cell.ttft_s, cell.fits) == (books.tpot_s, books.ttft_s, books.fits)
    expected = sum(
        planned.cells[i].concurrency * planned.cells[i].ttft_s + 255 * planned.cells[i].step_s
        for i, _ in planned.order
    )
    assert planned.duration_s == pytest.approx(expected)
    device = lk.load_hardware("h100-sxm-80gb")
    if device.usd_per_hour is not None:
        assert planned.cost_usd == pytest.approx(expected / 3600 * device.usd_per_hour)


def test_short_time_leaves_corners_and_less_time_shorter_ones():
    corners = lk.loadtest.plan("llama-3.1-8b", "h100-sxm-80gb", time_limit_s=120)
    assert len(corners.cells) == 4
    assert {cell.concurrency for cell in corners.cells} == {1, 16}
    assert corners.duration_s < 120
    shorter = lk.loadtest.plan("llama-3.1-8b", "h100-sxm-80gb", time_limit_s=45)
    assert shorter.duration_s < 45
    longest = max(cell.prompt_tokens for cell in shorter.cells)
    assert longest < max(cell.prompt_tokens for cell in corners.cells)
    assert {cell.reason for cell in shorter.skipped} == {"memory", "time"}


def test_designs_from_all_to_least():
    sizes = {
        design: {
            (cell.prompt_tokens, cell.concurrency) for cell in lk.loadtest.plan(design=design).cells
        }
        for design in ("grid", "sweeps", "corners")
    }
    assert sizes["sweeps"] == {(c, 1) for c in (1024, 8192, 32768, 131072)} | {
        (8192, b) for b in (1, 4, 8, 16)
    }
    assert sizes["corners"] == {(c, b) for c in (1024, 131072) for b in (1, 16)}
    assert len(sizes["grid"]) == 16
    with pytest.raises(LoadTestError, match="design"):
        lk.loadtest.plan(design="random")


def test_limits_of_the_engine_are_respected():
    made = lk.loadtest.plan(
        "llama-3.1-8b", "h100-sxm-80gb", lk.Deployment(max_num_seqs=8, max_model_len=40_000)
    )
    assert max(cell.concurrency for cell in made.cells) == 8
    assert max(cell.prompt_tokens for cell in made.cells) == 32768
    assert {cell.reason for cell in made.skipped} >= {"seats", "length"}


def test_without_a_model_nothing_is_predicted():
    made = lk.loadtest.plan()
    assert len(made.cells) == 16
    assert made.duration_s is None
    assert made.cost_usd is None
    assert made.table.height == 16


def test_the_same_plan_has_the_same_fingerprint(planned):
    assert lk.loadtest.plan("llama-3.1-8b", "h100-sxm-80gb").fingerprint == planned.fingerprint
    other = lk.loadtest.plan("llama-3.1-8b", "h100-sxm-80gb", seed=1)
    assert other.fingerprint != planned.fingerprint


@pytest.mark.parametrize(
    "wrong",
    [{"contexts": []}, {"contexts": [0]}, {"concurrencies": [1.5]}, {"runs": 0},
     {"output_tokens": 1}, {"warmup": -1}],
)  # fmt: skip
def test_numbers_that_make_no_sense(wrong):
    with pytest.raises(LoadTestError):
        lk.loadtest.plan(**wrong)


def test_nothing_left_to_run_is_an_error():
    with pytest.raises(LoadTestError, match="no cell fits"):
        lk.loadtest.plan("llama-3.1-70b", "h100-sxm-80gb")


@pytest.mark.parametrize("tool", ["vllm", "sglang", "aiperf", "genai-perf", "guidellm"])
def test_commands_run_every_cell_at_its_concurrency(planned, tool):
    lines = planned.commands(tool, served="org/model").splitlines()
    assert len(lines) == len(planned.order)
    flag = {"vllm": "--max-concurrency", "sglang": "--max-concurrency", "guidellm": "--profile"}
    for (place, _), line in zip(planned.order, lines, strict=True):
        words = shlex.split(line)
        cell = planned.cells[place]
        at = words[words.index(flag.get(tool, "--concurrency")) + 1]
        assert int(at.rpartition("=")[2]) == cell.concurrency
        assert any(str(cell.prompt_tokens) in word for word in words)
        assert any(str(cell.output_tokens) in word for word in words)
    assert len(set(lines)) == len(lines)  # every run has a seed and a file of its own


def test_commands_of_llama_cpp_cover_the_grid(planned):
    decode, prefill = planned.commands("llama-bench", served="m.gguf").splitlines()
    assert "-d 1024,8192,32768,130816" in decode
    assert "-p 1024,8192,32768,130816" in prefill
    batched = planned.commands("llama-batched-bench", served="m o.gguf").splitlines()
    assert len(batched) == 3
    assert "'m o.gguf'" in batched[0]
    assert "-npl 1,4,8,16" in batched[0]


def test_an_unknown_tool_lists_the_known(planned):
    with pytest.raises(LoadTestError, match="guidellm"):
        planned.commands("wrk", served="m")


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_plan_in_words(planned, language):
    text = planned.text(language)
    assert "32K x 16" in text
    assert ("放不下" if language == "zh" else "not fit") in text
