"""The device catalogue: text, table, lookups, and bad descriptions."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time

import polars as pl
import pytest

from ledgerkit._data import data_path
from ledgerkit.catalog import _registry, build
from ledgerkit.catalog import hardware as catalog
from ledgerkit.catalog.hardware import COLUMNS, PEAK_COLUMNS, hardware, load_hardware, records
from ledgerkit.errors import CatalogError, HardwareError
from ledgerkit.spec.hardware import Hardware

SLUGS = [record["slug"] for record in records()]


def test_table_is_what_the_text_builds():
    table = pl.read_parquet(data_path("hardware.parquet"))
    assert table.schema == build.frame().schema
    assert table.equals(build.frame())


def test_build_gives_the_same_bytes_twice(tmp_path):
    first = build.build(tmp_path / "first.parquet").read_bytes()
    second = build.build(tmp_path / "second.parquet").read_bytes()
    assert first == second


def test_columns_are_typed_and_carry_their_units():
    schema = pl.read_parquet(data_path("hardware.parquet")).schema
    assert schema["memory_bytes"] == pl.Int64
    assert schema["memory_is_lower_bound"] == pl.Boolean
    assert schema["unverified_fields"] == pl.List(pl.String)
    rates = [name for name, dtype in schema.items() if dtype == pl.Float64]
    assert all(
        name.endswith(("_per_s", "_gb", "_mb", "_w", "_per_hour", "_3_year")) for name in rates
    )


@pytest.fixture(scope="module")
def measured(shared):
    with (shared / "facts" / "hardware.csv").open(encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


IN_REFERENCE = {
    **{
        column: (dtype + ("_tops" if dtype.startswith("int") else "_tflops"), 1e12)
        for dtype, column in PEAK_COLUMNS.items()
    },
    "memory_bytes_per_s": ("memory_bandwidth_gbs", 1e9),
    "l2_mb": ("l2_mb", 1),
    "scaleup_bytes_per_s": ("scaleup_uni_gbs", 1e9),
    "scaleup_domain_size": ("scaleup_domain_size", 1),
    "pcie_generation": ("pcie_gen", 1),
    "pcie_bytes_per_s": ("pcie_uni_gbs", 1e9),
    "nic_bytes_per_s": ("nic_gbs_per_device", 1e9),
    "host_memory_bytes_per_s": ("host_mem_bandwidth_gbs", 1e9),
    "tdp_w": ("tdp_w", 1),
    "memory_gb": ("memory_gb", 1),
    "release_year": ("release_year", 1),
    "usd_per_hour": ("price_ondemand_usd_hr", 1),
    "usd_per_hour_3_year": ("price_contract3y_usd_hr", 1),
}


def test_every_number_equals_the_reference(measured):
    ours = {record["slug"]: record for record in records()}
    assert set(ours) == set(measured)
    for slug, reference in measured.items():
        for column, (name, unit) in IN_REFERENCE.items():
            cell = reference[name]
            expected = None if cell == "" else pytest.approx(float(cell) * unit, rel=1e-12)
            assert ours[slug][column] == expected, (slug, column)
        if reference["scaleup_bidir_gbs"]:
            both = 2 * ours[slug]["scaleup_bytes_per_s"]
            assert both == pytest.approx(float(reference["scaleup_bidir_gbs"]) * 1e9, rel=1e-12)
        if reference["memory_bytes"]:
            assert ours[slug]["memory_bytes"] == int(reference["memory_bytes"])
            assert ours[slug]["memory_is_lower_bound"] is False
        else:
            assert ours[slug]["memory_bytes"] == round(float(reference["memory_gb"]) * 1e9)
            assert ours[slug]["memory_is_lower_bound"] is True


def test_confidence_and_doubtful_fields_are_kept(measured):
    for record in records():
        reference = measured[record["slug"]]
        assert record["confidence"] == reference["confidence"]
        assert bool(record["unverified_fields"]) == bool(reference["unverified_fields"])


def test_doubtful_fields_are_columns_with_a_value():
    for record in records():
        for field in record["unverified_fields"]:
            assert record[field] is not None, (record["slug"], field)


def test_every_row_has_a_public_source_and_prices_have_theirs():
    for record in records():
        for column in ("source", "source2"):
            for source in (record[column] or "").split("; "):
                assert not source or source.startswith("http") or "/" in source.split(":")[0]
        assert record["source"]
        assert record["confidence"] in {"high", "medium", "low"}
        for price in ("usd_per_hour", "usd_per_hour_3_year"):
            known = record[price] is not None
            assert bool(record[f"{price}_source"]) == known
            assert bool(record[f"{price}_date"]) == known


def test_no_peak_is_one_with_sparsity():
    for record in records():
        peaks = {dtype: record[column] for dtype, column in PEAK_COLUMNS.items()}
        if record["vendor"] == "NVIDIA" and peaks["bf16"] and peaks["fp8"]:
            # halving the width doubles a dense rate; sparsity would make it four times
            assert peaks["fp8"] / peaks["bf16"] < 2.1 or record["family"] == "Rubin"


@pytest.mark.parametrize("slug", SLUGS)
def test_every_device_loads(slug):
    device = load_hardware(slug)
    assert device.slug == slug
    assert device.memory_bytes > 0
    assert device.peaks[device.compute_dtype("bf16")] > 0


def test_h100_in_numbers_of_its_datasheet():
    device = load_hardware("h100-sxm-80gb")
    assert device.memory_bytes == 84_942_979_072
    assert device.memory_bytes_per_s == 3352e9
    assert device.peaks["bf16"] == 989.4e12
    assert device.peaks["fp8"] == 1978.9e12
    assert "fp4" not in device.peaks
    assert device.scaleup_bytes_per_s == 450e9
    assert (device.scaleup_domain_size, device.nic_bytes_per_s) == (8, 50e9)
    assert (device.usd_per_hour, device.price_date) == (2.69, "2026-03")


def test_a_device_without_the_dtype_falls_back_and_never_to_zero():
    assert load_hardware("a100-sxm-80gb").compute_dtype("fp8") == "bf16"
    assert load_hardware("v100-sxm2-16gb").compute_dtype("bf16") == "fp16"
    assert load_hardware("desktop-ddr5-6000-dual").compute_dtype("bf16") == "fp32"


def test_names_are_forgiving_about_case_and_separators():
    assert load_hardware("H100_SXM 80GB") is load_hardware("h100-sxm-80gb")


def test_unknown_name_lists_close_ones():
    with pytest.raises(CatalogError, match="h100-sxm-80gb"):
        load_hardware("h100")
    with pytest.raises(CatalogError, match="no device of this name"):
        load_hardware("")
    with pytest.raises(CatalogError, match="a name, a dict or a Hardware"):
        load_hardware(7)


DESCRIBED = {
    "slug": "mine", "memory_bytes": 16 * 2**30, "memory_bytes_per_s": 4e11,
    "peak_flop_per_s": {"fp16": 8e13},
}  # fmt: skip


def test_a_dict_describes_a_device_by_fields_or_by_columns():
    by_fields = load_hardware(DESCRIBED)
    assert by_fields.peaks == {"fp16": 8e13}
    by_columns = load_hardware(
        {"slug": "mine", "memory_gb": 16, "memory_bytes_per_s": 4e11, "fp16_flop_per_s": 8e13}
    )
    assert by_columns.memory_bytes == 16_000_000_000
    assert by_columns.memory_is_lower_bound
    assert by_columns.peaks == by_fields.peaks
    assert load_hardware(by_fields) is by_fields


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory_bytes": -1}, "memory_bytes"),
        ({"memory_bytes": 0}, "memory_bytes"),
        ({"memory_bytes_per_s": float("nan")}, "memory_bytes_per_s"),
        ({"memory_bytes_per_s": float("inf")}, "memory_bytes_per_s"),
        ({"memory_bytes_per_s": 0}, "memory_bytes_per_s"),
        ({"peak_flop_per_s": {"fp16": -1.0}}, "peak_flop_per_s"),
        ({"peak_flop_per_s": {"fp3": 1.0}}, "peak_flop_per_s"),
        ({"vram": 16}, "no field 'vram'"),
    ],
)
def test_bad_fields_are_named(change, message):
    with pytest.raises(HardwareError, match=message):
        load_hardware(DESCRIBED | change)


def test_missing_fields_are_named():
    with pytest.raises(HardwareError, match="memory_bytes"):
        load_hardware({key: DESCRIBED[key] for key in DESCRIBED if key != "memory_bytes"})


def test_bad_columns_are_named():
    row = {"slug": "mine", "memory_gb": 16, "memory_bytes_per_s": 4e11, "fp16_flop_per_s": 8e13}
    with pytest.raises(HardwareError, match="memory_bytes_per_s must be a number"):
        load_hardware(row | {"memory_bytes_per_s": "fast"})
    with pytest.raises(HardwareError, match="no column 'vram'"):
        load_hardware(row | {"vram": 1})


class _Point:
    """An entry point whose callable returns what a test says."""

    def __init__(self, name, result):
        self.name, self.value, self._result = name, f"{name}:devices", result

    def load(self):
        return lambda: self._result


@pytest.fixture
def register(monkeypatch):
    def do(*points):
        monkeypatch.setattr(_registry, "entry_points", lambda **_: points)
        for cached in (_registry.registered, catalog._added, catalog._named):
            cached.cache_clear()

    yield do
    monkeypatch.undo()
    for cached in (_registry.registered, catalog._added, catalog._named):
        cached.cache_clear()


def test_other_distributions_add_devices(register):
    register(_Point("b", [DESCRIBED]), _Point("a", [DESCRIBED | {"slug": "first"}]))
    assert load_hardware("mine").peaks == {"fp16": 8e13}
    table = hardware()
    assert table["slug"].to_list()[-2:] == ["first", "mine"]
    assert table.filter(slug="mine")["fp16_flop_per_s"].item() == 8e13
    assert list(table.columns) == list(COLUMNS)


def test_a_registered_name_that_is_taken_is_refused(register):
    register(_Point("a", [DESCRIBED | {"slug": "t4-16gb"}]))
    with pytest.raises(CatalogError, match="registered under one name"):
        load_hardware("no-such-device")


@pytest.mark.parametrize("result", [None, ["words"], 3])
def test_an_entry_point_that_returns_nonsense_is_named(register, result):
    register(_Point("odd", result))
    with pytest.raises(CatalogError, match="'odd'"):
        load_hardware("no-such-device")


def test_table_has_all_columns_and_devices():
    table = hardware()
    assert table.height == len(SLUGS) == 92
    assert list(table.columns) == list(COLUMNS)
    assert table["slug"].is_unique().all()


def test_one_device_needs_no_data_frame_library():
    code = (
        "import sys, json; from ledgerkit.catalog.hardware import load_hardware;"
        "load_hardware('h100-sxm-80gb');"
        "print(json.dumps([m for m in ('polars', 'numba', 'altair') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_one_device_loads_quickly():
    taken = []
    for _ in range(5):
        catalog._text.cache_clear()
        catalog._named.cache_clear()
        begin = time.perf_counter()
        load_hardware("h100-sxm-80gb")
        taken.append(time.perf_counter() - begin)
    assert min(taken) < 0.020


def test_devices_are_hashable_values():
    assert len({load_hardware(slug) for slug in SLUGS}) == len(SLUGS)
    assert isinstance(load_hardware("t4-16gb"), Hardware)
