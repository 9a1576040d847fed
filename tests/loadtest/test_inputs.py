"""Nonsense handed to the verbs of the load test: an error that names it, never a traceback."""

import math

import numpy as np
import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.errors import LedgerError, LoadTestError
from tests.loadtest.test_diagnose import dense, rows

ROWS = rows(dense, contexts=(1024, 8192), many=(1, 8))
H100 = ("llama-3.1-8b", "h100-sxm-80gb")


@pytest.mark.parametrize("contexts", [None, "1024", [], [0], [True], [1.5], [10**10], [None]])
def test_contexts_of_a_plan(contexts):
    with pytest.raises(LoadTestError, match="contexts"):
        lk.loadtest.plan(contexts=contexts)


def test_arrays_and_single_numbers_are_contexts():
    made = lk.loadtest.plan(contexts=np.array([1024, 2048]), concurrencies=4)
    assert [cell.name for cell in made.cells] == ["1K x 4", "2K x 4"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"time_limit_s": math.nan}, "time_limit_s"),
        ({"time_limit_s": 0}, "time_limit_s"),
        ({"time_limit_s": "long"}, "time_limit_s"),
        ({"seed": "x"}, "seed"),
        ({"warmup": -1}, "warmup"),
        ({"runs": 0}, "runs"),
        ({"output_tokens": None}, "output_tokens"),
        ({"output_tokens": 1}, "one token"),
        ({"design": "cube"}, "design"),
        ({"deployment": "tp=2"}, "deployment"),
        ({"deployment": {"tp": 0}}, "tp"),
    ],
)
def test_options_of_a_plan(options, says):
    with pytest.raises(LedgerError, match=says):
        lk.loadtest.plan(*H100, **options)


def test_a_dict_describes_a_deployment():
    given = {"tp": 2, "max_num_seqs": 4}
    made = lk.loadtest.plan(*H100, given)
    assert made.skipped == lk.loadtest.plan(*H100, lk.Deployment(**given)).skipped
    found = lk.loadtest.diagnose(ROWS, deployment=given)
    assert found.deployment == lk.Deployment(**given)


@pytest.mark.parametrize("served", [None, "", 5])
def test_a_command_needs_a_model(served):
    with pytest.raises(LoadTestError, match="served"):
        lk.loadtest.plan().commands("vllm", served=served)


@pytest.mark.parametrize("results", [None, {"itl_s": [1]}, [1, 2], 5])
def test_what_is_no_result(results):
    with pytest.raises(LoadTestError, match="needs results"):
        lk.loadtest.diagnose(results)


def test_a_lazy_frame_is_a_result():
    assert lk.loadtest.diagnose(ROWS.lazy()).table.equals(lk.loadtest.diagnose(ROWS).table)


def test_a_column_of_another_kind_is_named():
    with pytest.raises(LoadTestError, match="itl_s"):
        lk.loadtest.diagnose(ROWS.with_columns(itl_s=pl.lit("fast")))


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 0.0, 1e300, 1e-300])
@pytest.mark.parametrize("column", ["itl_s", "concurrency", "context_tokens"])
def test_values_that_nobody_measures_are_left_out(column, value):
    found = lk.loadtest.diagnose(ROWS.with_columns(pl.lit(value).alias(column)))
    assert (found.verdict, found.judgement.rule) == ("undetermined", "no_rows")
    assert found.left_out.height == ROWS.height


@pytest.mark.parametrize("at", ["8K", (1,), (None, 2), (1, 2, 3), 5, (True, 1)])
def test_operating_points_of_another_kind(at):
    with pytest.raises(LoadTestError, match="operating point"):
        lk.loadtest.diagnose(ROWS, at=at)


@pytest.mark.parametrize("points", [([1, 2], [1]), (["a"], [1]), ([-1], [1]), ([math.inf], [1])])
def test_points_of_shares(points):
    with pytest.raises(LoadTestError, match="points"):
        lk.loadtest.diagnose(ROWS).shares(*points)


@pytest.mark.parametrize(
    ("x", "y", "options"),
    [
        (["a"], [1], {}),
        (None, [1], {}),
        ([0, 1, 2], [1, 2, 3], {"concurrency": 0}),
        ([0, 1, 2], [1, 2, 3], {"concurrency": math.nan}),
        ([0, 1, 2], [1, 2, 3], {"concurrency": "2"}),
        ([1, 1e300], [1e300, 1e-300], {}),
        ([1, 2], [1, math.inf], {}),
    ],
)
def test_series_that_are_none(x, y, options):
    with pytest.raises(LoadTestError):
        lk.loadtest.diagnose_series(x, y, axis="context", measure="tokens_per_s", **options)


@pytest.mark.parametrize(
    "options",
    [{"threads": 0}, {"threads": "2"}, {"seconds": math.nan}, {"seconds": -1}, {"array_bytes": 1}],
)
def test_options_of_a_profile(options):
    with pytest.raises(LoadTestError, match=next(iter(options))):
        lk.loadtest.profile_local(**options)


@pytest.mark.parametrize(
    "wrong",
    [{"stall_s": math.nan}, {"request_s": math.inf}, {"retries": 1.5}, {"retries": 10**6}],
)
def test_limits_that_would_not_limit(wrong):
    with pytest.raises(LoadTestError, match=next(iter(wrong))):
        lk.loadtest.Limits(**wrong)


@pytest.mark.parametrize(
    ("options", "says"), [({"limits": 5}, "limits"), ({"memory": 5}, "memory"),
                          ({"progress": 5}, "progress"), ({"plan": None}, "plan")],
)  # fmt: skip
def test_options_of_a_run(options, says):
    given = {"plan": lk.loadtest.plan(), **options}
    with pytest.raises(LoadTestError, match=says):
        lk.loadtest.run(given.pop("plan"), "http://127.0.0.1:1", **given)


@pytest.mark.parametrize("path", [None, 5])
def test_paths_that_are_none(path):
    with pytest.raises(LoadTestError, match="path"):
        lk.loadtest.read(path)
