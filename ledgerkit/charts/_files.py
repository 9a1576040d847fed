"""The renderer that goes into pages, and how a file is replaced as a whole."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

from ledgerkit.errors import FigureError

__all__ = ["renderer", "replace_file"]


@cache
def renderer() -> str:
    """Vega, Vega-Lite and vega-embed as one script, to be put into a page.

    Returns
    -------
    str

    Examples
    --------
    >>> "window.vegaEmbed=" in renderer()
    True
    """
    import vl_convert

    # the stub asks for a snippet that the function makes optional
    return str(vl_convert.javascript_bundle())  # type: ignore[call-arg]


def replace_file(target: Path, content: bytes) -> None:
    """Write beside the target and move into place, so that no half file is ever seen.

    Parameters
    ----------
    target : pathlib.Path
        Where.
    content : bytes
        What.

    Raises
    ------
    FigureError
        If the directory is missing or not writable.

    Examples
    --------
    >>> replace_file(Path("nowhere/page.html"), b"")
    Traceback (most recent call last):
    ledgerkit.errors.FigureError: there is no such directory (given: 'nowhere'; ...
    """
    directory = target.parent
    if not directory.is_dir():
        raise FigureError("there is no such directory", given=str(directory),
                          allowed="a directory that is there", fix="create it first")  # fmt: skip
    try:
        handle, name = tempfile.mkstemp(dir=directory, prefix=f".{target.name}.")
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # mkstemp makes private files; a figure gets the permissions of any new file
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise _unwritable(target, error) from error


def _unwritable(target: Path, error: OSError) -> FigureError:
    return FigureError(
        f"cannot write there: {error.strerror}", given=str(target),
        allowed="a place that may be written", fix="name another place",
    )  # fmt: skip
