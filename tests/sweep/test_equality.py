"""Every column of a sweep is, bit for bit, what ``lk.ledger`` says at that point."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit.errors import CapacityError, SweepError
from ledgerkit.spec.axes import LEDGERS

MODELS = (
    "deepseek-v3", "llama-3.1-8b", "gemma-4-26b-a4b", "kimi-k2.6", "mimo-v2.5-pro",
    "gpt-oss-120b", "qwen3.5-397b-a17b", "gemma-3-4b-it", "mixtral-8x7b-v0.1",
)  # fmt: skip
DEVICES = ("h200-sxm-141gb", "h100-sxm-80gb", "a100-sxm-80gb", "l4-24gb", "mi300x-192gb")

TIMES = ("ttft_s", "ttft_s_low", "ttft_s_high", "tpot_s", "tpot_s_low", "tpot_s_high", "e2e_s",
         "tokens_per_s", "resident_bytes_device", "capacity_bytes", "free_bytes", "fits",
         "max_concurrency")  # fmt: skip
RESOURCES = {"flop": "compute", "read_bytes": "read", "write_bytes": "write",
             "communicate_bytes": "communicate", "s": "time"}  # fmt: skip
AMOUNTS = [f"{phase}_{ledger}_{amount}" for phase in ("prefill", "decode") for ledger in LEDGERS
           for amount in RESOURCES]  # fmt: skip
HELD = [f"hold_{ledger}_bytes" for ledger in LEDGERS]


def ledger_of(row: dict, calibration: lk.Calibration | None = None) -> lk.Ledger:
    deployment = {name: row[name] for name in lk.Deployment.model_fields if name in row}
    workload = {name: row[name] for name in lk.Workload.model_fields if name in row}
    return lk.ledger(
        row["model"], row["hardware"], lk.Deployment(**deployment), lk.Workload(**workload),
        calibration=calibration,
    )  # fmt: skip


def assert_row_is_ledger(row: dict, calibration: lk.Calibration | None = None) -> None:
    books = ledger_of(row, calibration)
    for name in TIMES:
        assert row[name] == getattr(books, name), name
    for name in AMOUNTS:
        phase, rest = name.split("_", 1)
        ledger = next(one for one in LEDGERS if rest.startswith(one))
        resource = RESOURCES[rest.removeprefix(ledger + "_")]
        assert row[name] == books.by_ledger(phase, resource)[ledger], name
    for ledger in LEDGERS:
        assert row[f"hold_{ledger}_bytes"] == books.by_ledger("hold", "resident")[ledger]
        assert row[f"{ledger}_s"] == books.by_ledger("decode", "time")[ledger]
    assert row["tokens_per_s_per_device"] == books.tokens_per_s / books.deployment.devices
    assert row["tokens_per_s_per_user"] == 1.0 / books.tpot_s
    assert row["devices"] == books.deployment.devices


def assert_row_is_steady_state(row: dict, calibration: lk.Calibration | None = None) -> None:
    deployment = {name: row[name] for name in lk.Deployment.model_fields if name in row}
    workload = {name: row[name] for name in lk.Workload.model_fields if name in row}
    try:
        state = lk.steady_state(
            row["model"], row["hardware"], lk.Deployment(**deployment), lk.Workload(**workload),
            calibration=calibration,
        )  # fmt: skip
    except CapacityError:
        assert row["loaded_tpot_s"] is None
        return
    for name in ("ttft_s", "tpot_s", "tokens_per_s"):
        assert row[f"loaded_{name}"] == getattr(state, name), name


def random_axes(seed: int) -> dict:
    rng = random.Random(seed)

    def some(values: list, most: int = 3) -> list:
        return rng.sample(values, rng.randint(1, min(most, len(values))))

    return {
        "model": some(list(MODELS)),
        "hardware": some(list(DEVICES), 2),
        "weights": some([None, "fp8", "bf16"], 2),
        "kv_dtype": some(["bf16", "fp8"], 2),
        "tp": some([1, 2, 3, 4, 6, 8]),
        "pp": some([1, 2, 3, 5]),
        "dp_attention": some([1, 2, 8], 2),
        "ep": some([1, 8], 2),
        "engine": some(["vllm", "sglang", "tensorrt-llm", "llama.cpp"], 2),
        "max_num_batched_tokens": some([None, 777, 4096], 2),
        "concurrency": sorted(some(list(range(1, 700)), 6)),
        "prompt_tokens": [*sorted(some(list(range(2, 9000)), 4)), 70_001],
        "cached_tokens": [0, *some(list(range(1, 3000)), 2)],
        "output_tokens": sorted(some(list(range(1, 3000)), 3)),
    }


COLUMNS = (*TIMES, *AMOUNTS, *HELD, "attention_kv_s", "ffn_mlp_s", "scheduling_s",
           "tokens_per_s_per_device", "tokens_per_s_per_user", "devices", "loaded_ttft_s",
           "loaded_tpot_s", "loaded_tokens_per_s")  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_random_points_of_a_grid_equal_the_ledger(seed: int) -> None:
    axes = random_axes(seed)
    swept = lk.sweep(**axes, progress=False)
    frame = swept.select(*axes, *COLUMNS).collect()
    assert frame.height + swept.dropped["points"].sum() == swept.points
    for row in frame.sample(min(15, frame.height), seed=seed).iter_rows(named=True):
        assert_row_is_ledger(row)
        assert_row_is_steady_state(row)


@pytest.fixture(scope="module")
def calibration() -> lk.Calibration:
    """Constants of a slow server, its host and its waits among them."""
    points = [
        {"prompt_tokens": 1024, "output_tokens": 512, "concurrency": many, "tpot_s": tpot,
         "ttft_s": ttft}
        for many, tpot, ttft in ((1, 0.009, 0.08), (16, 0.014, 0.4), (64, 0.025, 1.3))
    ]  # fmt: skip
    return lk.calibrate(points, "llama-3.1-8b", "h100-sxm-80gb")


CALIBRATED = {
    "model": "llama-3.1-8b",
    "hardware": "h100-sxm-80gb",
    "tp": [1, 2],
    "concurrency": [1, 7, 300],
    "prompt_tokens": [100, 9000],
    "output_tokens": [3, 700],
}


def test_a_calibrated_sweep_equals_the_calibrated_ledger(calibration: lk.Calibration) -> None:
    assert abs(calibration.tpot_factor - 1) > 0.01
    swept = lk.sweep(**CALIBRATED, calibration=calibration, progress=False)
    frame = swept.select(*CALIBRATED, *COLUMNS).collect()
    plain = lk.sweep(**CALIBRATED, progress=False).select("tpot_s", "loaded_ttft_s").collect()
    assert frame.height == 24
    assert (frame["tpot_s"] != plain["tpot_s"]).all()
    assert (frame["loaded_ttft_s"] != plain["loaded_ttft_s"]).any()
    for row in frame.iter_rows(named=True):
        assert_row_is_ledger(row, calibration)
        assert_row_is_steady_state(row, calibration)
    again = lk.sweep(frame.select(*CALIBRATED), calibration=calibration, progress=False)
    assert again.select("tpot_s").collect()["tpot_s"].equals(frame["tpot_s"])


def test_a_calibration_of_another_model_warns_and_of_another_kind_is_refused(
    calibration: lk.Calibration,
) -> None:
    with pytest.warns(UserWarning, match="qwen3-8b, h200-sxm-141gb"):
        lk.sweep(
            model=["llama-3.1-8b", "qwen3-8b"], hardware="h200-sxm-141gb", prompt_tokens=10,
            output_tokens=2, calibration=calibration,
        )  # fmt: skip
    with pytest.raises(SweepError, match="calibration"):
        lk.sweep(model="qwen3-8b", hardware="h200-sxm-141gb", prompt_tokens=10, output_tokens=2,
                 calibration=1.1)  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_a_frame_gives_the_same_rows_in_its_own_order(seed: int) -> None:
    axes = random_axes(100 + seed)
    fields = list(axes)
    grid = lk.sweep(**axes, progress=False).select(*fields, "ttft_s", "tpot_s", "fits").collect()
    shuffled = grid.sample(fraction=1.0, shuffle=True, seed=seed)
    again = (
        lk.sweep(shuffled.select(fields), progress=False)
        .select(*fields, "ttft_s", "tpot_s", "fits")
        .collect()
    )
    text = pl.col("model", "hardware").cast(pl.String)
    assert again.with_columns(text).equals(shuffled.with_columns(text))


def test_every_model_of_the_catalogue_in_a_pipeline() -> None:
    models = lk.models()["slug"].to_list()
    frame = (
        lk.sweep(
            model=models, hardware="h200-sxm-141gb", tp=[1, 8], pp=[1, 3], prompt_tokens=[900],
            output_tokens=[5], concurrency=[1, 33], progress=False,
        )
        .select("model", "hardware", "tp", "pp", "prompt_tokens", "output_tokens", "concurrency",
                "tpot_s", "ttft_s", "resident_bytes_device")
        .collect()
    )  # fmt: skip
    assert set(frame["model"].cast(pl.String)) == set(models)
    for row in frame.iter_rows(named=True):
        books = ledger_of(row)
        assert row["tpot_s"] == books.tpot_s
        assert row["ttft_s"] == books.ttft_s
        assert row["resident_bytes_device"] == books.resident_bytes_device


def test_large_blocks_and_zipped_fields_equal_the_ledger() -> None:
    swept = lk.sweep(
        lk.zip_axes(concurrency=[1, 3, 9], output_tokens=[10, 20, 30]),
        lk.zip_axes(tp=[1, 8], cached_tokens=[5, 7]),
        model="deepseek-v3", hardware="h200-sxm-141gb",
        prompt_tokens=range(8, 100_000), progress=False,
    )  # fmt: skip
    assert swept.points == 2 * 3 * (100_000 - 8)
    fields = ("tp", "cached_tokens", "concurrency", "output_tokens", "prompt_tokens", "model",
              "hardware")  # fmt: skip
    frame = swept.select(*fields, "tpot_s", "e2e_s", "free_bytes").collect()
    assert frame.height == swept.points
    assert frame["tp"].to_list() == [1] * (swept.points // 2) + [8] * (swept.points // 2)
    for row in frame.sample(20, seed=1).iter_rows(named=True):
        books = ledger_of(row)
        assert (row["tpot_s"], row["e2e_s"], row["free_bytes"]) == (
            books.tpot_s, books.e2e_s, books.free_bytes,
        )  # fmt: skip


@pytest.mark.parametrize("name", ["DeepSeek-V3.2", "DeepSeek-V4-Pro"])
def test_indexers_and_compressed_attention_equal_the_ledger(shared: Path, name: str) -> None:
    [path] = sorted((shared / "facts" / "configs").glob(f"*{name}*"))[:1]
    model = lk.load_model(path)
    frame = (
        lk.sweep(
            model=model, hardware="h200-sxm-141gb", tp=8, prompt_tokens=[3, 2047, 2048, 9001],
            output_tokens=[1, 700], concurrency=[1, 50], progress=False,
        )
        .select("tp", "prompt_tokens", "output_tokens", "concurrency", "hardware", *TIMES)
        .collect()
    )  # fmt: skip
    assert frame.height == 16
    for row in frame.iter_rows(named=True):
        books = ledger_of(row | {"model": model})
        for column in TIMES:
            assert row[column] == getattr(books, column), column
