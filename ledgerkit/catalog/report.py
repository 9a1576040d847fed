"""``lk.read_config_report``: what the reader did with a config, for any reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ledgerkit.catalog.models import built_in_config, is_there
from ledgerkit.errors import CatalogError
from ledgerkit.readers import report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ledgerkit.readers.report import ConfigReport

__all__ = ["read_config_report"]


def read_config_report(ref: Mapping[str, Any] | str | Path) -> ConfigReport:
    """Say what was read from a config, what each field decided, and what was ignored and why.

    Parameters
    ----------
    ref : str, Path or Mapping
        A slug of ``lk.models()``, a ``config.json``, a directory that holds one, or its content.

    Returns
    -------
    ConfigReport
        Prints as text; ``to_frame`` gives one row per field.

    Raises
    ------
    CatalogError
        The reference names no built-in model and no file.
    ConfigError
        The config cannot be read; the message names the field.

    Examples
    --------
    >>> frame = read_config_report("deepseek-v3").to_frame("en")
    >>> "kv_lora_rank" in frame["path"].to_list()
    True
    """
    if isinstance(ref, str) and not is_there(ref):
        found = built_in_config(ref)
        if found is None:
            raise CatalogError("no built-in model has this name, and no file either", given=ref,
                               allowed="a slug of lk.models()",
                               fix="lk.models() lists the built-in models")  # fmt: skip
        slug, config = found
        return report.read_config_report(config, slug)
    return report.read_config_report(ref)
