"""``python -m ledgerkit``: the commands a shell can reach."""

from __future__ import annotations

import argparse
import io
import sys
from typing import TYPE_CHECKING

from ledgerkit import __version__, text
from ledgerkit._commands import accuracy, doctor, figures, report, warmup
from ledgerkit.errors import FigureError, LedgerError

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS = {
    "figures": figures, "report": report, "accuracy": accuracy, "doctor": doctor, "warmup": warmup,
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands.

    Returns
    -------
    argparse.ArgumentParser

    Examples
    --------
    >>> parser().parse_args(["figures", "--language", "zh"]).language
    'zh'
    """
    top = argparse.ArgumentParser(prog="python -m ledgerkit", description=__doc__)
    top.add_argument("--version", action="version", version=f"ledgerkit {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        summary = text.get(f"command.{name}.summary", "en")
        command = commands.add_parser(name, help=summary, description=module.__doc__)
        command.add_argument(
            "--language", choices=text.LANGUAGES, default="en", help="of all texts (default: en)"
        )
        module.add_arguments(command)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        As in a shell, without the program's name. Default: those of this process.

    Returns
    -------
    int
        Exit status: 0 when all is well, 1 when a check failed, 2 after a ``LedgerError`` or where a
        file cannot be used (the text goes to standard error).

    Examples
    --------
    >>> main(["figures", "--notebook", "nowhere.ipynb"])
    2
    """
    given = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a sign that a terminal cannot show is no reason to end
        sys.stdout.reconfigure(errors="replace")
    try:
        return int(_COMMANDS[given.command].run(given))
    except LedgerError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        if error.filename is None:
            raise
        told = FigureError(
            f"cannot read or write there: {error.strerror}", given=str(error.filename),
            allowed="a place that exists, or can be made, and may be used",
            fix="name another place",
        )  # fmt: skip
        sys.stderr.write(f"{told}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
