"""Execute the notebook of the three ledgers, print its tables and write its figures.

The notebook is the one source of the figures. Its cell tagged ``parameters`` assigns ``language``
and ``out``; this command puts its own values behind it. What cells tagged ``report`` show is
printed as plain text.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerkit import text
from ledgerkit.errors import FigureError
from ledgerkit.text import numbers

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ledgerkit.text import Language

NOTEBOOK = "01_three_ledgers.ipynb"
CELL_TIMEOUT_S = 600

_KERNEL_ENVIRONMENT = {
    # a table on a terminal shows all its rows and columns
    "POLARS_FMT_MAX_COLS": "-1",
    "POLARS_FMT_MAX_ROWS": "-1",
    "POLARS_FMT_TABLE_HIDE_COLUMN_DATA_TYPES": "1",
    "POLARS_FMT_TABLE_HIDE_DATAFRAME_SHAPE_INFORMATION": "1",
    "POLARS_TABLE_WIDTH": "160",
    # debugpy warns about frozen modules at every start of a kernel
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``figures``."""
    parser.add_argument("--out", type=Path, default=Path("out"), help="directory (default: out)")
    parser.add_argument("--notebook", type=Path, help="another notebook with the same two tags")
    parser.add_argument(
        "--all", action="store_true", help="the figures of all notebooks, not of the first one"
    )
    parser.add_argument(
        "--themes", nargs="+", choices=("slide", "dark"), default=[], metavar="THEME",
        help="draw every figure in these themes as well: slide, dark",
    )  # fmt: skip
    parser.add_argument(
        "--html", type=Path, help="write the explorer page instead: one file, no kernel, no network"
    )


def run(arguments: argparse.Namespace) -> int:
    """Execute the notebook, or write the page, and say what came out."""
    if arguments.html is not None:
        return _write_page(arguments.html, arguments.language)
    if arguments.all:
        sources = _notebooks_with_figures()
    else:
        sources = [arguments.notebook or bundled_notebook()]
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    before = _stamps(out)
    for source in sources:
        notebook = execute(source, language=arguments.language, out=out)
        for shown in reports(notebook):
            print(shown)
            print()
    _surround(out, before, sources, arguments)
    print(text.get("command.figures.written", arguments.language, path=_near(out)))
    for path in _changed(out, before):
        print(f"  {_near(path)}")
    return 0


def _surround(
    out: Path, before: Mapping[Path, int], sources: list[Path], arguments: argparse.Namespace
) -> None:
    """Add themes, captions and the manifest to what the notebooks wrote."""
    from ledgerkit._commands import _figure_set

    _figure_set.draw_themes(out, arguments.themes)
    _figure_set.write_captions(out)
    suffixes = (*_figure_set.FIGURES, ".md")
    made = [
        path
        for path in _changed(out, before)
        if path.suffix in suffixes and path.name != _figure_set.MANIFEST
    ]
    options = {"language": arguments.language, "themes": sorted(arguments.themes)}
    _figure_set.write_manifest(out, made, sources=sources, options=options)


def _notebooks_with_figures() -> list[Path]:
    """All bundled notebooks that write figures, each once whatever its languages."""
    found = []
    for path in sorted(bundled_notebook().parent.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = ["".join(cell["source"]) for cell in cells if "parameters" in _tags(cell)]
        if not path.stem.endswith(".zh") and any("out = None" in source for source in tagged):
            found.append(path)
    return found


def _write_page(path: Path, language: Language) -> int:
    """Write the explorer page."""
    from ledgerkit._commands.explore import write_page

    if path.suffix.lower() != ".html":
        raise FigureError("the page is an HTML file", given=path.name, allowed="a name in .html",
                          fix=f"use --html {path.stem}.html")  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    write_page(path, language=language)
    size = numbers.byte_size(path.stat().st_size)
    print(text.get("command.figures.page", language, path=_near(path.resolve()), size=size))
    return 0


def bundled_notebook() -> Path:
    """Find the notebook: inside an installed wheel, else at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    for directory in (package / "_notebooks", package.parent / "notebooks"):
        if (directory / NOTEBOOK).is_file():
            return directory / NOTEBOOK
    raise FigureError(
        "the notebook of the figures is missing from this installation",
        given=NOTEBOOK,
        allowed="an installation with its notebooks",
        fix="reinstall ledgerkit, or name a notebook with --notebook",
    )


def execute(source: Path, *, language: str, out: Path) -> Any:
    """Run a notebook with its parameters set and keep the executed copy in ``out``."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    if not source.is_file():
        raise FigureError("there is no such notebook", given=str(source),
                          allowed="a notebook that is there", fix="correct the path")  # fmt: skip
    notebook = _read(source)
    tagged = [i for i, cell in enumerate(notebook.cells) if "parameters" in _tags(cell)]
    if len(tagged) != 1:
        raise FigureError(
            "the notebook needs exactly one cell tagged 'parameters'",
            given=f"{len(tagged)} such cells in {source.name}",
            allowed="one",
            fix="tag the cell that assigns language and out",
        )
    assigned = f"language = {language!r}\nout = {str(out)!r}"
    notebook.cells.insert(tagged[0] + 1, nbformat.v4.new_code_cell(assigned))
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        # its warning about sockets on this machine is not for who wants a figure
        extra_arguments=["--IPKernelApp.log_level=40"],
        resources={"metadata": {"path": str(out)}},
    )
    try:
        client.execute(env=os.environ | _KERNEL_ENVIRONMENT)
    except CellExecutionError as error:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        raise FigureError(f"a cell of {source.name} failed:\n{plain}", given=str(source),
                          allowed="a notebook that runs",
                          fix="run it in Jupyter") from error  # fmt: skip
    nbformat.write(notebook, out / source.name)
    return notebook


def _read(source: Path) -> Any:
    """Read a notebook; what is none is an error, whatever nbformat makes of it."""
    import nbformat

    try:
        notebook = nbformat.read(source, as_version=4)
        nbformat.validate(notebook)
    except OSError:
        raise  # told as a place that cannot be read
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError,
            nbformat.ValidationError) as error:  # fmt: skip
        raise FigureError("this file is no valid notebook", given=str(source),
                          allowed="a Jupyter notebook in JSON, of format 4",
                          fix="name an .ipynb file with --notebook") from error  # fmt: skip
    return notebook


def reports(notebook: Any) -> list[str]:
    """Collect the plain text that cells tagged ``report`` show, in order."""
    shown: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type != "code" or "report" not in _tags(cell):
            continue
        for output in cell.outputs:
            plain = output.get("text") or output.get("data", {}).get("text/plain", "")
            shown.append(plain.rstrip())
    return shown


def _tags(cell: Any) -> list[str]:
    return list(cell["metadata"].get("tags", ()))


def _stamps(directory: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in directory.rglob("*") if path.is_file()}


def _changed(directory: Path, before: Mapping[Path, int]) -> list[Path]:
    return [path for path, stamp in sorted(_stamps(directory).items()) if before.get(path) != stamp]


def _near(path: Path) -> Path:
    """Name a path from here when it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
