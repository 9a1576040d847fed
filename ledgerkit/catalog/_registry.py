"""What the catalogues share: names, near misses, and entries that other distributions register."""

from __future__ import annotations

import difflib
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["normal_name", "registered", "unknown"]


def normal_name(name: str) -> str:
    """Spell a name as the catalogues do.

    Examples
    --------
    >>> normal_name(" H100_SXM 80GB ")
    'h100-sxm-80gb'
    """
    return name.strip().lower().replace("_", "-").replace(" ", "-")


@lru_cache
def registered(group: str) -> tuple[Mapping[str, Any], ...]:
    """Descriptions that the entry points of a group return, in the order of their names.

    Each entry point names a callable without arguments that returns an iterable of mappings.

    Raises
    ------
    CatalogError
        An entry point cannot be loaded, fails, or returns something else.
    """
    found: list[Mapping[str, Any]] = []
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        try:
            described = tuple(point.load()())
        except Exception as error:
            raise CatalogError(
                f"the entry point {point.name!r} of {group} failed: {error}",
                given=point.value,
                allowed="a function that returns mappings",
                fix="repair or uninstall the distribution that registers it",
            ) from error
        for one in described:
            if not hasattr(one, "keys"):
                raise CatalogError(
                    f"the entry point {point.name!r} of {group} must return mappings", given=one,
                    allowed="mappings of fields", fix="correct or uninstall the distribution",
                )  # fmt: skip
            found.append(one)
    return tuple(found)


def unknown(noun: str, given: object, names: Iterable[str], listing: str) -> CatalogError:
    """Build the error for a name that a catalogue lacks, with the names closest to it.

    Examples
    --------
    >>> print(unknown("device", "h100-sxm", ["h100-sxm-80gb", "t4-16gb"], "lk.hardware()"))
    no device of this name (given: 'h100-sxm'; allowed: h100-sxm-80gb). Fix: lk.hardware() ...
    """
    known = list(names)
    wanted = normal_name(str(given))
    close = [name for name in known if wanted and wanted in name]
    close += [name for name in difflib.get_close_matches(wanted, known, n=5) if name not in close]
    return CatalogError(
        f"no {noun} of this name",
        given=given,
        allowed=", ".join(close[:8]) or f"the names that {listing} lists",
        fix=f"{listing} lists all names; a dict describes one that is not there",
    )
