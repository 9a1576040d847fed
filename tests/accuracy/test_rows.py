"""Rows: read strictly, repaired, counted once, excluded by what they say, never by residuals."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from ledgerkit._accuracy.rows import COLUMNS, OWN_COLUMNS, read_rows
from ledgerkit._accuracy.rules import distinct, exclude
from ledgerkit._accuracy.setups import Setups, cache_dtype, device, formats
from ledgerkit._data import data_path
from ledgerkit.catalog.models import load_model
from ledgerkit.errors import CatalogError, LoadTestError

AGGREGATED = {
    "model_path": "org/Llama-3.1-8B", "system": "h100_sxm", "backend": "vllm", "mode": "agg",
    "isl": "1024", "osl": "512", "concurrency": "8", "tp_size": "2", "pp_size": "1",
    "moe_tp_size": "1", "moe_ep_size": "1", "silicon_ttft_ms": "100", "silicon_tpot_ms": "10",
    "measured": "2026-01-01", "origin": "rows.csv",
}  # fmt: skip


def _write(path, *rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows({**AGGREGATED, **row} for row in rows)
    return path


def _rows(tmp_path, *rows):
    return read_rows(_write(tmp_path / "rows.csv", *rows))


def test_sizes_written_twice_are_repaired(tmp_path):
    tp, dp, fine = _rows(
        tmp_path,
        {"tp_size": "64", "moe_tp_size": "8", "moe_ep_size": "8"},
        {"tp_size": "1", "attention_dp_size": "16", "moe_tp_size": "4", "moe_ep_size": "4"},
        {"tp_size": "4", "moe_tp_size": "2", "moe_ep_size": "2"},
    )
    assert (tp.layout.tp, tp.layout.ep, tp.repaired) == (8, 8, True)
    assert (dp.layout.dp_attention, dp.layout.ep, dp.repaired) == (4, 4, True)
    assert (fine.layout.tp, fine.layout.ep, fine.repaired) == (4, 2, False)


def test_the_load_of_a_row_is_that_of_one_replica(tmp_path):
    blank, split, ranks = _rows(
        tmp_path,
        {"concurrency": "", "batch_size": "24"},
        {"concurrency": "96", "batch_size": "24"},
        {"concurrency": "96", "batch_size": "12", "attention_dp_size": "8"},
    )
    assert [row.concurrency for row in (blank, split, ranks)] == [24, 24, 96]


def test_the_same_measurement_counts_once_under_all_its_names(tmp_path):
    rows = _rows(
        tmp_path,
        {},
        {"model_path": "other/Llama-3.1-8B-Instruct", "silicon_tpot_ms": "10.1"},
        {"silicon_tpot_ms": "10.1", "silicon_ttft_ms": "300"},
        {"silicon_tpot_ms": "10.1", "silicon_ttft_ms": "300", "moe_tp_size": "2"},
        {"silicon_tpot_ms": "10.2"},
        {"concurrency": "16"},
    )
    kept = distinct(rows, Setups().identity)
    # equal layout, or a first token within 5 %; the fourth has neither
    assert [row.line for row in kept] == [2, 5, 6, 7]
    assert kept[0].names == {"org/Llama-3.1-8B", "other/Llama-3.1-8B-Instruct"}
    assert kept[0].duplicates == 2


def test_rules_exclude_by_inputs_and_provenance(tmp_path):
    many = [{"concurrency": str(n)} for n in range(1, 11)]
    rows = _rows(
        tmp_path,
        *many,
        {"tp_size": "36", "concurrency": "90"},
        {"origin": "one_off.csv", "concurrency": "91"},
        {"model_path": "openai/gpt-oss-120b", "concurrency": "512"},
        {"model_path": "deepseek-ai/DeepSeek-R1", "backend": "trtllm", "measured": "2026-02-05"},
        {"model_path": "deepseek-ai/DeepSeek-R1", "measured": "2025-11-10", "concurrency": "93"},
        {"mode": "disagg", "concurrency": "94"},
    )
    exclude(rows, rows)
    assert [row.judged for row in rows[10:]] == ["R1", "R2", "R3", "R4", "", "R7"]
    assert [row.ttft_judged for row in rows[13:15]] == [True, False]
    assert not any(row.judged for row in rows[:10])


def test_missing_columns_and_broken_cells_are_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("model_path,system\na,b\n", encoding="utf-8")
    with pytest.raises(LoadTestError, match="columns are missing"):
        read_rows(path)
    with pytest.raises(LoadTestError, match="line 2"):
        read_rows(_write(path, {"isl": "many"}))
    with pytest.raises(LoadTestError, match="no such file"):
        read_rows(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("meta-llama/Llama-3.1-70B", "llama-3.1-70b"),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", "llama-3.1-8b"),
        ("nvidia/DeepSeek-R1-0528-NVFP4", "deepseek-r1"),
        ("Qwen/Qwen3-235B-A22B-FP8", "qwen3-235b-a22b-fp8"),
        ("Qwen/Qwen3-32B-FP8", "qwen3-32b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-70b"),
        ("moonshotai/Kimi-K2-Instruct-0905", "kimi-k2-instruct"),
    ],
)
def test_names_of_checkpoints_find_their_model(name, slug):
    assert Setups().model(name).slug == slug


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(CatalogError, match="no model"):
        Setups().model("org/never-heard-of-1b")
    with pytest.raises(CatalogError, match="no device"):
        device("q900_sxm")
    (row,) = _rows(tmp_path, {"precision": "fp2"})
    with pytest.raises(CatalogError, match="precision"):
        formats(row, load_model("llama-3.1-8b"))


@pytest.mark.parametrize(
    ("name", "slug"),
    [("h100_sxm", "h100-sxm-80gb"), ("gb200", "gb200-nvl72-186gb"), ("a100_sxm", "a100-sxm-80gb"),
     ("l40s", "l40s-48gb"), ("h20", "h20-141gb"), ("b300_sxm", "b300-sxm-288gb")],
)  # fmt: skip
def test_short_names_find_the_largest_device(name, slug):
    assert device(name).slug == slug


@pytest.mark.parametrize(
    ("model", "precision", "weights", "experts"),
    [
        ("llama-3.1-8b", "", None, None),
        ("llama-3.1-8b", "fp8", "fp8", None),
        ("llama-3.1-8b", "fp4", "nvfp4", None),
        ("deepseek-r1", "fp8", None, None),
        ("deepseek-r1", "fp4", "bf16", "nvfp4"),
        ("gpt-oss-120b", "fp4", None, None),
        ("kimi-k2.6", "int4", None, None),
    ],
)
def test_precisions_become_formats(tmp_path, model, precision, weights, experts):
    (row,) = _rows(tmp_path, {"precision": precision})
    assert formats(row, load_model(model)) == {"weights": weights, "experts": experts}


@pytest.mark.parametrize(
    ("system", "engine", "precision", "expected"),
    [("h100_sxm", "vllm", "fp8", "bf16"), ("b200_sxm", "vllm", "fp8", "fp8"),
     ("h100_sxm", "trtllm", "fp8", "fp8"), ("h100_sxm", "trtllm", "", "bf16")],
)  # fmt: skip
def test_cache_dtypes_that_rows_leave_open(tmp_path, system, engine, precision, expected):
    (row,) = _rows(tmp_path, {"system": system, "backend": engine, "precision": precision})
    assert cache_dtype(row, device(system)) == expected


def test_our_own_table_is_small_public_and_from_every_group():
    path = data_path("accuracy_public.csv")
    with path.open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert 60 <= len(cells) <= 120
    assert list(cells[0]) == list(OWN_COLUMNS)
    assert all("@" in row["source"] and "Apache-2.0" in row["source"] for row in cells)
    rows = read_rows(path)
    groups = Counter((r.model_path, r.system, r.engine) for r in rows if not r.disaggregated)
    assert len(groups) == 22
    assert min(groups.values()) == 4
    assert sum(row.disaggregated for row in rows) >= 8


def test_the_known_rows_count_as_they_should(known):
    assert known.listed == 2726
    assert len(known.judged) == 1206
    assert known.excluded["R7"] > 400
    assert {k: known.excluded[k] for k in ("R1", "R3", "R4", "R5")} == {
        "R1": 46, "R3": 8, "R4": 62, "R5": 16,
    }  # fmt: skip
    assert known.repaired == 191
    assert sum(not row.ttft_judged for row in known.judged) == 33
    assert 160 <= len(known.pool_rows) <= 175
