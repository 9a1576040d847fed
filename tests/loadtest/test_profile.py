"""This machine as a device."""

import os

import pytest

import ledgerkit as lk
from ledgerkit.errors import LoadTestError


@pytest.fixture(scope="module")
def device():
    return lk.loadtest.profile_local(seconds=0.2, array_bytes=1 << 24)


def test_rates_are_those_of_some_machine(device):
    assert 1e8 < device.memory_bytes_per_s < 1e13
    assert 1e8 < device.peaks["fp32"] < 1e15
    assert 2**28 < device.memory_bytes <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert device.source.startswith("measured")


def test_the_device_can_be_used_and_stored(device):
    books = lk.ledger("smollm2-135m", device, lk.Deployment(engine="llama.cpp"),
                      lk.Workload(prompt_tokens=128, output_tokens=8))  # fmt: skip
    # a step at least reads the weights: 134.5 M parameters in bf16
    assert books.tpot_s > 134_515_008 * 2 / device.memory_bytes_per_s
    assert lk.load_hardware(device.model_dump(mode="json")) == device


@pytest.mark.parametrize(
    "wrong", [{"threads": 0}, {"seconds": 0.0}, {"seconds": float("nan")}, {"array_bytes": 10}]
)
def test_numbers_that_make_no_sense(wrong):
    with pytest.raises(LoadTestError):
        lk.loadtest.profile_local(**wrong)
