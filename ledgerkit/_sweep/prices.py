"""Prices in a sweep: of one source, or the user's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ledgerkit._sweep.plan import Plan
from ledgerkit._sweep.task import Prices
from ledgerkit.errors import SweepError


def checked_prices(plan: Plan, given: Mapping[str, Any] | None, source: str | None) -> Prices:
    """Check the user's prices.

    Raises
    ------
    SweepError
        A device is not in the sweep, a price is no positive number, a source prices nothing, or
        both options are given.
    """
    if given is None:
        _check_source(plan, source)
        return Prices(None, source)
    if not isinstance(given, Mapping):
        raise SweepError("prices are USD per hour by device", given=given,
                         allowed='{"h100-sxm-80gb": 2.5}')  # fmt: skip
    if source is not None:
        raise SweepError("give prices of your own or a price_source, not both", given=source,
                         allowed="one of them", fix="leave price_source out")  # fmt: skip
    devices = plan.names("hardware")
    for slug, price in given.items():
        if slug not in devices:
            raise SweepError("prices name a device that is not in the sweep", given=slug,
                             allowed=", ".join(devices))  # fmt: skip
        number = isinstance(price, int | float) and not isinstance(price, bool)
        if not number or not math.isfinite(price) or price <= 0:
            raise SweepError(
                f"the price of {slug} must be a positive number",
                given=price,
                allowed="a number above 0",
            )
    return Prices(dict(given), None)


def _check_source(plan: Plan, source: str | None) -> None:
    """Refuse a source that prices no device of the sweep."""
    known = {d.price_source or d.source for d in plan.devices() if d.usd_per_hour is not None}
    if source is not None and source not in tuple(known):
        raise SweepError("no device of this sweep has a price of this source", given=source,
                         allowed="; ".join(sorted(known)) or "none: give prices=")  # fmt: skip


def check_one_source(plan: Plan, prices: Prices, columns: Sequence[str]) -> None:
    """Refuse to compare prices of different sources with each other."""
    if not any(name.startswith("usd_") for name in columns):
        return
    if prices.given is not None or prices.source is not None:
        return
    found: dict[str, list[str]] = {}
    for device in plan.devices():
        if device.usd_per_hour is not None:
            found.setdefault(device.price_source or device.source, []).append(device.slug)
    if len(found) > 1:
        raise SweepError(
            "prices of different sources cannot be compared",
            given="; ".join(f"{', '.join(slugs)}: {source}" for source, slugs in found.items()),
            allowed="prices of one source",
            fix="choose one with price_source=, or give your own with prices={slug: usd_per_hour}",
        )
    if not found:
        raise SweepError(
            "no device of this sweep has a price",
            given=", ".join(plan.names("hardware")),
            allowed="devices with a price",
            fix="give your own with prices={slug: usd_per_hour}",
        )
