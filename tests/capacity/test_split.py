"""Pools of their own for windows and states."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit._capacities.kinds import LayerKind
from ledgerkit._capacities.split import SplitPools
from ledgerkit.catalog.engines import load_engine
from ledgerkit.errors import DeploymentError
from ledgerkit.spec.engine import EngineProfile

GIB = 2**30
SGLANG = lk.Deployment(engine="sglang")


def test_a_logged_state_pool_follows_from_the_logged_token_pool(shared: Path) -> None:
    # SGLang log of Qwen3.5-9B on 2 devices: 327,310 tokens, max_mamba_cache_size=186
    model = lk.load_model(shared / "facts" / "configs" / "Qwen__Qwen3.5-9B.json")
    layout = lk.Deployment(engine="sglang", tp=2)
    keys_and_values = 327_310 * 8 * 2 * 256 * 2 * 2
    pool = keys_and_values * 1.9
    room = lk.capacity(model, "rtx-4090-24gb", layout, pool_bytes=pool)
    assert room.printed_tokens["sglang"] == pytest.approx(327_310, abs=1)
    # the log's pool is known to a token, so to 0.1 of a state: rounding may take one
    assert abs(room.printed_tokens["states"] - 186) <= 1
    assert room.max_concurrency(1024) == room.printed_tokens["states"]


def test_windows_have_a_pool_of_their_own() -> None:
    pool = 20 * GIB
    room = lk.capacity("gpt-oss-20b", "h100-sxm-80gb", SGLANG, pool_bytes=pool)
    per_token = 8 * 64 * 2 * 2
    tokens = int(pool // (12 * per_token + 0.8 * 12 * per_token))
    assert room.printed_tokens == {"sglang": tokens}
    assert room.resident_tokens == tokens
    assert room.max_concurrency(10_000) == tokens / 10_000
    # short requests: windows of 128 tokens are no limit before the main pool is
    assert room.max_concurrency(128) == pytest.approx(0.8 * tokens / 128, rel=1e-4)


def test_without_windows_and_states_nothing_is_divided() -> None:
    room = lk.capacity("llama-3.1-8b", "h100-sxm-80gb", SGLANG, pool_bytes=10 * GIB)
    assert room.resident_tokens == 10 * GIB // 131_072
    assert room.block_bytes == 131_072


@given(
    full=st.integers(0, 40), windowed=st.integers(0, 40), states=st.integers(0, 40),
    pool=st.floats(1e6, 1e12), tokens=st.integers(1, 1 << 20),
)  # fmt: skip
def test_pools_never_hold_more_than_there_is(full, windowed, states, pool, tokens) -> None:
    kinds = [
        LayerKind("full", full, 4096.0), LayerKind("window", windowed, 4096.0, window=1024),
        LayerKind("state", states, state_bytes=1e6),
    ]  # fmt: skip
    pools = SplitPools.of([kind for kind in kinds if kind.layers], 0.8, 0.9)
    many = pools.concurrency(pool, tokens)
    used = (pools.tokens(pool) * (pools.growing_bytes or pools.window_bytes)
            + (pools.slots(pool) or 0) * pools.state_bytes)  # fmt: skip
    assert used <= pool
    if full + windowed + states:
        each = sum(kind.sequence_bytes(tokens) for kind in kinds if kind.layers)
        assert int(many) * each <= pool * (1 + 1e-9)
    assert pools.longest(pool, 1 << 20) >= 0


def test_both_ratios_or_none() -> None:
    fields = load_engine("sglang").model_dump() | {"state_pool_ratio": None}
    with pytest.raises(DeploymentError, match="go together"):
        EngineProfile(**fields)
