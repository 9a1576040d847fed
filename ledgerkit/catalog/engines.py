"""The engine catalogue: one small file per engine and version under ``data/engines``.

Other distributions add engines through the entry-point group ``ledgerkit.engines``: a callable
without arguments that returns mappings with the fields of ``EngineProfile``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ledgerkit._data import data_path
from ledgerkit.catalog._registry import normal_name, registered, unknown
from ledgerkit.errors import CatalogError, DeploymentError
from ledgerkit.spec._base import named_fields
from ledgerkit.spec.engine import UNLIMITED, EngineProfile

if TYPE_CHECKING:
    import polars as pl

__all__ = ["engines", "load_engine"]

GROUP = "ledgerkit.engines"


@lru_cache(maxsize=1)
def _profiles() -> dict[str, EngineProfile]:
    """Every profile by its slug, the built-in ones first."""
    described: list[Mapping[str, Any]] = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(data_path("engines").glob("*.json"))
    ]
    described += registered(GROUP)
    found: dict[str, EngineProfile] = {}
    for fields in described:
        profile = EngineProfile(**fields)
        if profile.slug in found:
            raise CatalogError(
                "two engine profiles have one name", given=profile.slug,
                fix=f"rename the one that the entry-point group {GROUP} adds",
            )  # fmt: skip
        found[profile.slug] = profile
    return found


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Slug for each slug and alias."""
    profiles = _profiles()
    names = {alias: slug for slug, profile in profiles.items() for alias in profile.aliases}
    return names | {slug: slug for slug in profiles}


def load_engine(ref: str | Mapping[str, Any] | EngineProfile) -> EngineProfile:
    """Load the profile of an engine.

    Parameters
    ----------
    ref : str, mapping or EngineProfile
        A name or alias of ``lk.engines()``, or the fields of an ``EngineProfile``. A profile is
        returned as it is.

    Returns
    -------
    EngineProfile
        Defaults for a device with 80 GB; ``for_device`` turns them into those for another.

    Raises
    ------
    CatalogError
        No engine has this name.
    DeploymentError
        The description is incomplete, has unknown fields or absurd values.

    Examples
    --------
    >>> load_engine("trtllm").slug, load_engine("vllm").block_size
    ('tensorrt-llm', 16)
    """
    if isinstance(ref, EngineProfile):
        return ref
    if isinstance(ref, Mapping):
        return EngineProfile(**named_fields(ref, DeploymentError, "engine"))
    if not isinstance(ref, str):
        raise CatalogError(
            "an engine is a name, a dict or an EngineProfile", given=ref,
            allowed="a name of lk.engines(), a dict, an EngineProfile",
            fix="see lk.engines() for the names",
        )  # fmt: skip
    slug = _names().get(normal_name(ref))
    if slug is None:
        raise unknown("engine", ref, _names(), "lk.engines()")
    return _profiles()[slug]


def engines() -> pl.DataFrame:
    """List every engine profile, one row each; a limit that an engine does not have is null.

    Returns
    -------
    polars.DataFrame
        Columns are the scalar fields of ``EngineProfile`` and, as lists, its names and sizes.

    Examples
    --------
    >>> engines().filter(slug="sglang").select("mixed_prefill", "memory_fraction_covers").row(0)
    (False, 'weights_and_cache')
    """
    import polars as pl

    rows = [
        {
            name: None if value == UNLIMITED else value
            for name, value in profile.model_dump(exclude={"tiers"}).items()
        }
        for profile in _profiles().values()
    ]
    return pl.DataFrame(rows, infer_schema_length=None)
