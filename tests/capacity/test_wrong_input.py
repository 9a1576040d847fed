"""What a capacity is asked for must make sense."""

import math

import pytest

import ledgerkit as lk
from ledgerkit.errors import LedgerError

ROOM = lk.capacity("llama-3.1-8b", "h100-sxm-80gb")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ROOM.ideal_bytes(-1),
        lambda: ROOM.ideal_bytes(1, "zz"),
        lambda: ROOM.reserved_bytes("x"),
        lambda: ROOM.max_concurrency(0),
        lambda: ROOM.max_concurrency(-1),
        lambda: ROOM.max_concurrency(math.nan),
        lambda: ROOM.swap_blocks(-1),
        lambda: ROOM.swap_blocks(math.nan),
        lambda: lk.load_model("a" * 5000),
        lambda: lk.steady_state(
            "llama-3.1-8b", "h100-sxm-80gb", None,
            lk.Workload(prompt_tokens=512, output_tokens=64), prefill_workers=math.nan,
            decode_workers=1,
        ),
    ],
)  # fmt: skip
def test_nonsense_is_refused(ask):
    with pytest.raises(LedgerError):
        ask()


def test_a_workload_may_be_a_dict():
    asked = {"prompt_tokens": 1000, "output_tokens": 24}
    room = lk.capacity("llama-3.1-8b", "h100-sxm-80gb", None, asked)
    assert room.max_model_len == 1024
