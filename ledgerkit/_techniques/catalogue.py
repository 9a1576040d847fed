"""``lk.techniques``: every technique of the three ledgers, with what it saves and what it costs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ledgerkit._techniques.point import settings_of
from ledgerkit._techniques.reference import REFERENCES
from ledgerkit._techniques.registry import RECIPES
from ledgerkit._techniques.stated import stated

if TYPE_CHECKING:
    import polars as pl

__all__ = ["technique_rows", "techniques"]


@lru_cache(maxsize=1)
def technique_rows() -> tuple[dict[str, Any], ...]:
    """Rows of the table of techniques, in the order of the ledgers."""
    rows = [dict(row) for row in stated().values()]
    for row in rows:
        recipe, reference = RECIPES[row["id"]], REFERENCES.get(row["id"])
        row |= {
            "can_apply": recipe.apply is not None,
            "can_remove": recipe.remove is not None,
            "settings": sorted(
                {
                    f"{name}={value!r}"
                    for change in (recipe.apply, recipe.remove)
                    if change is not None
                    for name, value in settings_of(change).items()
                }
            ),
            "reference_model": reference.model if reference else None,
            "reference_hardware": reference.hardware if reference else None,
        }
    return tuple(rows)


def techniques() -> pl.DataFrame:
    """List every technique that ``lk.transfer`` knows, one row each.

    Returns
    -------
    polars.DataFrame
        Columns: id, name_zh, name_en, ledger (the one it works on), kind (``baseline`` or
        ``technique``), saves (verbs), pays (``verb:ledger that pays``), both as computed on the
        reference deployment; cost (where the cost goes), risk (what cannot be computed) with its
        risk_source, needs (of engine and hardware), in both languages; can_apply, can_remove,
        settings (``name=default``), reference_model, reference_hardware.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> lk.techniques().filter(id="mla").select("ledger", "saves").row(0)
    ('attention_kv', ['read_less', 'store_less'])
    """
    import polars as pl

    return pl.DataFrame(list(technique_rows()), infer_schema_length=None)
