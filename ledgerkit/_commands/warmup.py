"""Fill the caches, so that the first ledger and the first widget of the next process are fast."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ledgerkit import text

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``warmup``: none of its own."""
    del parser


def run(arguments: argparse.Namespace) -> int:
    """Run one steady state, one sweep and one simulation, and say how long it took."""
    import ledgerkit as lk
    from ledgerkit.widgets._figure import renderer

    started = time.perf_counter()
    lk.steady_state(
        "llama-3.1-8b",
        "h100-sxm-80gb",
        lk.Deployment(),
        lk.Workload(prompt_tokens=1024, output_tokens=128),
    )
    for concurrency in (1, [1, 2]):
        points = lk.sweep(
            model="llama-3.1-8b",
            hardware="h100-sxm-80gb",
            prompt_tokens=1024,
            output_tokens=128,
            concurrency=concurrency,
            progress=False,
        )
        points.collect()
        points.select("decode_bound", "prefill_ffn_mlp_flop").collect()
        points.pareto("tpot_s", "tokens_per_s")
        points.best("tokens_per_s", subject_to={"tpot_s": 1.0})
        points.histogram("tpot_s", bins=2)
    loop = lk.Arrivals.closed_loop(1, requests=2, prompt_tokens=64, output_tokens=4)
    lk.simulate("llama-3.1-8b", "h100-sxm-80gb", arrivals=loop)
    # what widgets send to the page
    renderer()
    elapsed_s = time.perf_counter() - started
    print(text.get("command.warmup.done", arguments.language, seconds=f"{elapsed_s:.1f}"))
    return 0
