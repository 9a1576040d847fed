"""Check predictions against published measurements and write ACCURACY.md with its charts.

Without a file of rows the small table that ships with the package is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ledgerkit import text
from ledgerkit._data import data_path

if TYPE_CHECKING:
    import argparse

    from ledgerkit._accuracy.study import Study

__all__ = ["add_arguments", "run"]

CHARTS = ("accuracy", "accuracy_groups")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``accuracy``."""
    parser.add_argument("rows", type=Path, nargs="?", help="CSV of measured rows (default: ours)")
    parser.add_argument("--out", type=Path, default=Path("ACCURACY.md"), help="page to write")
    parser.add_argument(
        "--charts", type=Path, default=Path("docs/img"), help="directory of the charts"
    )
    parser.add_argument(
        "--configs", type=Path,
        help="directory of owner__name.json configs (default: configs beside the rows)",
    )  # fmt: skip
    parser.add_argument("--check", action="store_true", help="status 1 when a gate is missed")
    parser.add_argument("--quick", action="store_true", help="no charts, no published figures")


def run(arguments: argparse.Namespace) -> int:
    """Study the rows and write the page."""
    from ledgerkit._accuracy import offloaded, published, report, servers
    from ledgerkit._accuracy.study import study

    rows = arguments.rows or data_path("accuracy_public.csv")
    configs = arguments.configs or rows.parent / "configs"
    found = study(rows, configs if configs.is_dir() else None)
    language = arguments.language
    figures, others, calibrations = [], [], []
    if not arguments.quick:
        others = [*published.published(), *offloaded.offloaded()]
        for points, across in ((1, False), (2, False), (3, False), (1, True)):
            one = servers.calibrated(found, points, across_layouts=across)
            if one is not None:
                label = f"{points}" + (text.get("accuracy.calibrate.across", language) * across)
                calibrations.append((label, one))
        figures = _draw(found, arguments.charts, arguments.out, language)
    page = report.render(
        found, language, source=f" {rows.name}" if arguments.rows else "", figures=figures,
        published=others, calibrations=calibrations,
    )  # fmt: skip
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(page, encoding="utf-8")
    print(text.get("command.accuracy.written", language, path=arguments.out))
    checks = report.gates(found, language)
    for gate in checks:
        print(f"  {'✓' if gate.met else 'x'} {gate.name}: {gate.value}")
    return int(arguments.check and not all(gate.met for gate in checks))


def _draw(found: Study, directory: Path, page: Path, language: str) -> list[str]:
    """Draw the charts; returns their paths as the page names them."""
    import os

    from ledgerkit._accuracy.frames import group_frame, row_frame
    from ledgerkit.charts import accuracy_groups, accuracy_scatter, save_figure

    directory.mkdir(parents=True, exist_ok=True)
    charts = (
        accuracy_scatter(row_frame(found), language=language),
        accuracy_groups(group_frame(found), language=language),
    )
    names = []
    for name, chart in zip(CHARTS, charts, strict=True):
        target = directory / f"{name}.{language}.svg"
        save_figure(chart, target)
        names.append(Path(os.path.relpath(target, page.parent)).as_posix())
    return names
