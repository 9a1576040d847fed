"""Code of the figures in the gallery; charts without an entry show the example of their docstring.

Each is run as it stands and leaves the figure in ``figure``.
"""

from __future__ import annotations

from typing import Final

__all__ = ["EXAMPLES"]

_COMPARISON: Final = """
import ledgerkit as lk

work = lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=32)
eight = {"hardware": "h200-sxm-141gb", "deployment": lk.Deployment(dp_attention=8, ep=8)}
points = [
    {"model": "deepseek-v3", "workload": work, **eight},
    {"model": "kimi-k2.6", "workload": work, **eight},
    {"model": "gemma-4-26b-a4b", "workload": work, "hardware": "h100-sxm-80gb"},
]
comparison = lk.compare(points, trail=("prompt_tokens", [1024 * 2**i for i in range(8)]))
"""

_DIAGNOSIS: Final = """
import ledgerkit as lk
import polars as pl

# three runs of each of four cells, as a load test would measure them
rows = [
    {
        "prompt_tokens": context,
        "concurrency_requested": batch,
        "run": run,
        "itl_s": (6.0 + 0.02 * batch + 5e-5 * batch * context) * 1e-3 * (1 + 0.01 * (run - 1)),
    }
    for context in (1024, 8192, 32768)
    for batch in (1, 4, 16)
    for run in range(3)
]
diagnosis = lk.loadtest.diagnose(
    pl.DataFrame(rows), model="llama-3.1-8b", hardware="h100-sxm-80gb", at=(32768, 16)
)
"""

EXAMPLES: Final[dict[str, str]] = {
    "ledger_triangle": _COMPARISON + "figure = lk.charts.ledger_triangle(comparison.table)",
    "ledger_bars": _COMPARISON + "figure = lk.charts.ledger_bars(comparison.entries)",
    "memory_bars": _COMPARISON + "figure = lk.charts.memory_bars(comparison.memory)",
    "explorer_panel": _COMPARISON
    + """figure = lk.charts.explorer_panel(
    comparison.table, comparison.entries, comparison.memory, focus="Kimi-K2.6"
)""",
    "cache_curves": """
import ledgerkit as lk

models = ["deepseek-v3", "gemma-4-26b-a4b", "mimo-v2.5-pro", "llama-3.1-70b"]
cache = lk.cache_table(models, [1024 * 2**i for i in range(8)])
figure = lk.charts.cache_curves(cache)
""",
    "accuracy_scatter": """
import ledgerkit as lk
from ledgerkit._accuracy.frames import row_frame
from ledgerkit._accuracy.study import study
from ledgerkit._data import data_path

figure = lk.charts.accuracy_scatter(row_frame(study(data_path("accuracy_public.csv"))))
""",
    "accuracy_groups": """
import ledgerkit as lk
from ledgerkit._accuracy.frames import group_frame
from ledgerkit._accuracy.study import study
from ledgerkit._data import data_path

figure = lk.charts.accuracy_groups(group_frame(study(data_path("accuracy_public.csv"))))
""",
    **{
        f"loadtest_{name}": _DIAGNOSIS + f'figure = diagnosis.chart("{kind}", language="en")'
        for name, kind in (
            ("verdict", "verdict"),
            ("ratio", "ratio"),
            ("curves", "sensitivity"),
        )
    },
}
