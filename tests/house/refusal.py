"""One point, one run, and what a refusal has to say."""

from __future__ import annotations

import pytest

import ledgerkit as lk
from ledgerkit.errors import LedgerError

MODEL, DEVICE = "llama-3.1-8b", "h100-sxm-80gb"
SHORT = {"prompt_tokens": 8, "output_tokens": 8}
WORK = {"prompt_tokens": 1024, "output_tokens": 128, "concurrency": 32}
NAN, INF = float("nan"), float("inf")
FEW = lk.Arrivals.poisson(1.0, requests=5, prompt_tokens=20, output_tokens=5)


def simulated(arrivals=FEW, **options):
    return lk.simulate(MODEL, DEVICE, arrivals=arrivals, **options)


def refused(call, match, kind=LedgerError):
    """The call raises this kind of error, which says all that it should."""
    with pytest.raises(kind, match=match) as caught:
        call()
    error = caught.value
    assert type(error) is not LedgerError or kind is LedgerError
    assert "given:" in str(error)
    assert error.allowed
    assert error.fix
    return error
