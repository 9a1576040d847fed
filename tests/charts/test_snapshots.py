"""Pictures as they were: every kind of chart, in both languages, on frames that never change.

A snapshot lists what stands in the SVG, one line each: words with place and colour, shapes with
colours, place, size and a checksum of their outline, all rounded to whole pixels. So a change of
one mark is one line of a diff. To accept a change that was meant:

    LEDGERKIT_SNAPSHOTS=write python -m pytest tests/charts/test_snapshots.py -n0
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
import zlib
from functools import cache
from pathlib import Path

import polars as pl
import pytest

import ledgerkit as lk
from ledgerkit import charts
from tests.charts.figures import FIGURES

FOLDER = Path(__file__).parent / "snapshots"
WRITE = os.environ.get("LEDGERKIT_SNAPSHOTS") == "write"
KINDS = (
    "triangle-zoom", "triangle-whole", "triangle-two-ledgers", "bars", "cache", "memory", "panel",
    "transfer", "transfer-arrow", "break-even", "waterfall", "taxonomy",
)  # fmt: skip
_MOVE = re.compile(r"translate\(([-\d.e]+)[, ]*([-\d.e]*)\)")
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def _speedups() -> pl.DataFrame:
    return pl.DataFrame(
        {"setting": ["dense"] * 3 + ["MoE"] * 3, "clients": [1, 16, 256] * 2,
         "speedup": [2.1, 1.6, 0.9, 1.8, 1.5, 1.2]}
    )  # fmt: skip


def _books() -> pl.DataFrame:
    return pl.DataFrame(
        {"engine": ["a"] * 3 + ["b"] * 3, "ledger": ["attention_kv", "ffn_mlp", "scheduling"] * 2,
         "account": ["core", "dense", "launch", "core", "dense", "queue"],
         "share": [0.3, 0.5, 0.2, 0.25, 0.4, 0.35]}
    )  # fmt: skip


def _curve() -> pl.DataFrame:
    return pl.DataFrame(
        {"rate_per_s": [2.0, 8.0, 16.0], "ttft_s_p50": [0.1, 0.12, 0.4],
         "ttft_s_p99": [0.15, 0.3, 2.0], "goodput_per_s": [2.0, 7.9, 6.0],
         "goodput_share": [1.0, 0.99, 0.4]}
    )  # fmt: skip


def _points() -> pl.DataFrame:
    return pl.DataFrame(
        {"device": ["x"] * 3 + ["y"] * 3, "tokens_per_s": [1.0, 4.0, 9.0, 2.0, 5.0, 8.0],
         "tokens_per_s_per_user": [90.0, 60.0, 20.0, 80.0, 70.0, 10.0]}
    )  # fmt: skip


@cache
def _load_test() -> lk.loadtest.Diagnosis:
    """Of a server that takes 6 ms a step, 0.02 ms a sequence and 50 ns a token in the cache."""
    rows = [
        {"prompt_tokens": context, "concurrency_requested": many, "run": run,
         "itl_s": (6.0 + 0.02 * many + 5e-5 * many * context) * 1e-3 * (1 + 0.01 * (run - 1))}
        for context in (1024, 8192, 32768) for many in (1, 4, 16) for run in range(3)
    ]  # fmt: skip
    return lk.loadtest.diagnose(pl.DataFrame(rows), at=(8192, 16))


def _ratios() -> pl.DataFrame:
    measured = pl.Series([0.0070, 0.0091, 0.0260])
    predicted = pl.Series([0.0074, 0.0080, 0.0130])
    bounds = {"low": 0.95, "high": 1.08}
    return pl.DataFrame({
        "cell": ["1K x 1", "8K x 4", "32K x 16"], "prompt_tokens": [1024, 8192, 32768],
        "concurrency_requested": [1, 4, 16], "measured_s": measured, "predicted_s": predicted,
        **{f"measured_{name}_s": measured * factor for name, factor in bounds.items()},
        **{f"predicted_{name}_s": predicted * factor**2 for name, factor in bounds.items()},
    })  # fmt: skip


def _agreement() -> pl.DataFrame:
    return pl.DataFrame({
        "quantity": ["tpot"] * 3 + ["ttft"] * 2, "model": ["m-8b", "m-70b", "m-moe"] + ["m-8b"] * 2,
        "group": ["m-8b on x", "m-70b on x", "m-moe on y", "m-8b on x", "m-8b on y"],
        "measured_s": [0.008, 0.031, 0.019, 0.12, 1.9],
        "predicted_s": [0.0086, 0.027, 0.025, 0.15, 1.4], "rows": [40, 8, 120, 40, 3],
        "factor": [1.2, 1.3, 1.6, 1.5, 2.1], "covered": [0.95, 0.9, 0.7, 0.88, 0.8],
    })  # fmt: skip


def _groups() -> pl.DataFrame:
    return pl.DataFrame({
        "group": ["m-8b on x, vLLM", "m-70b on x, SGLang", "m-moe on y, vLLM"],
        "model": ["m-8b", "m-70b", "m-moe"], "rows": [40, 8, 120], "low": [0.9, 0.7, 0.8],
        "median": [1.05, 0.87, 1.3], "high": [1.2, 0.95, 1.9], "factor": [1.2, 1.3, 1.9],
    })  # fmt: skip


def _run() -> pl.DataFrame:
    times = [0.5 * i for i in range(40)]
    return pl.DataFrame({
        "time_s": times, "replica": [0] * 40, "running": [min(i, 16) for i in range(40)],
        "waiting": [max(0, i - 16) // 4 for i in range(40)],
        "cache_occupancy": [min(1.0, 0.05 * i) for i in range(40)],
    })  # fmt: skip


def _requests() -> pl.DataFrame:
    steps = range(60)
    return pl.DataFrame({
        "ttft_s": [0.08 * 1.06**i for i in steps], "tpot_s": [0.01 + 1e-4 * i for i in steps]
    })  # fmt: skip


OTHERS = {
    "loadtest-verdict": lambda **how: _load_test().chart("verdict", **how),
    "loadtest-curves": lambda **how: _load_test().chart("sensitivity", **how),
    "loadtest-ratio": lambda **how: charts.loadtest_ratio(_ratios(), **how),
    "accuracy-scatter": lambda **how: charts.accuracy_scatter(_agreement(), **how),
    "accuracy-groups": lambda **how: charts.accuracy_groups(_groups(), **how),
    "simulation-timeline": lambda **how: charts.simulation_timeline(_run(), **how),
    "simulation-latency": lambda **how: charts.simulation_latency(
        _requests(), ttft_s=0.5, tpot_s=0.015, **how
    ),
    "simulation-crossover": lambda **how: charts.simulation_crossover(_speedups(), **how),
    "simulation-engines": lambda **how: charts.simulation_engines(_books(), **how),
    "simulation-books": lambda **how: charts.simulation_books(_books(), **how),
    "simulation-load": lambda **how: charts.simulation_load(_curve(), **how),
    "simulation-ablation": lambda **how: charts.simulation_ablation(
        pl.DataFrame({"without": ["nothing", "prefix_cache"], "cost": [0.0, 0.4]}), **how
    ),
    "sweep": lambda **how: charts.sweep_points(
        _points(), x="tokens_per_s", y="tokens_per_s_per_user", color="device", **how
    ),
}


def _cases() -> list[str]:
    known = [name for kind in KINDS for name in FIGURES if name == kind or _first(name, kind)]
    return [*dict.fromkeys(known), *OTHERS]


def _first(name: str, kind: str) -> bool:
    """Whether a figure is the first of its kind."""
    return next((key for key in FIGURES if key.startswith(kind)), None) == name


def described(svg: str) -> str:
    """What stands in an SVG, line by line."""
    lines: list[str] = []

    def visit(node: ET.Element, x: float, y: float) -> None:
        moved = _MOVE.search(node.get("transform", ""))
        if moved:
            x, y = x + float(moved[1]), y + float(moved[2] or 0)
        tag = node.tag.rpartition("}")[2]
        if tag in ("defs", "style", "clipPath", "title", "desc"):
            return
        paint = f"{node.get('fill', '-')} {node.get('stroke', '-')}"
        if tag == "text":
            words = "".join(node.itertext())
            lines.append(f"text {x:.0f},{y:.0f} {paint} {node.get('font-size', '-')} {words}")
            return
        if tag in ("path", "line", "rect", "circle") and paint != "none -":
            outline = " ".join(
                f"{name}={node.get(name)}"
                for name in ("d", "x1", "x2", "y1", "y2", "width", "height", "r")
                if node.get(name)
            )
            rounded = re.sub(_NUMBER, lambda n: str(round(float(n[0]))), outline)
            lines.append(f"{tag} {x:.0f},{y:.0f} {paint} {zlib.crc32(rounded.encode()):08x}")
        for child in node:
            visit(child, x, y)

    visit(ET.fromstring(svg), 0.0, 0.0)  # noqa: S314 (we drew it ourselves)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("name", _cases())
def test_the_picture_is_as_it_was(name, language, tmp_path):
    draw = OTHERS.get(name) or FIGURES[name]
    path = lk.save_figure(draw(language=language), tmp_path / "figure.svg", language=language)
    now = described(path.read_text(encoding="utf-8"))
    assert now.count("\n") > 10
    kept = FOLDER / f"{name}.{language}.txt"
    if WRITE:
        FOLDER.mkdir(exist_ok=True)
        kept.write_text(now, encoding="utf-8")
    then = kept.read_text(encoding="utf-8")
    assert now.splitlines() == then.splitlines()


def test_no_snapshot_is_left_over():
    wanted = {f"{name}.{language}.txt" for name in _cases() for language in ("zh", "en")}
    assert {path.name for path in FOLDER.glob("*.txt")} == wanted
