"""Read a model by the five steps and print the report as Markdown, or write it to a file.

The ending of the file decides: ``.html`` is a page that opens without network, ``.json`` is data.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerkit import text

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``report``."""
    parser.add_argument(
        "model", help="name of lk.models(), config.json, directory, .gguf or hub id"
    )
    parser.add_argument("--hardware", help="device (default: H200)")
    parser.add_argument("--tp", type=int, help="tensor-parallel ranks (default: as few as hold it)")
    parser.add_argument("--out", type=Path, help="file to write: .md, .html or .json")


def run(arguments: argparse.Namespace) -> int:
    """Read the model, print or write the report."""
    from ledgerkit._reading import read_model

    layout = None if arguments.tp is None else {"tp": arguments.tp}
    reading = read_model(arguments.model, hardware=arguments.hardware, deployment=layout)
    language = arguments.language
    if arguments.out is None:
        print(reading.to_markdown(language))
        return 0
    if arguments.out.suffix == ".html":
        made = reading.to_html(language)
    elif arguments.out.suffix == ".json":
        made = json.dumps(reading.to_dict(language), ensure_ascii=False, indent=1) + "\n"
    else:
        made = reading.to_markdown(language)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(made, encoding="utf-8")
    print(text.get("command.report.written", language, path=arguments.out))
    return 0
