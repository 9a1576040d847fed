"""A name for a sweep that changes whenever its numbers could."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ledgerkit import __version__
from ledgerkit._sweep.plan import UNIT_POINTS
from ledgerkit.catalog.efficiency import load_efficiencies
from ledgerkit.kernels._jit import sources_digest

if TYPE_CHECKING:
    from ledgerkit._sweep.lazy import Sweep


def fingerprint(sweep: Sweep) -> str:
    """Digest of the points, columns, conditions and prices, and of what prices them."""
    digest = hashlib.sha256()
    for part in _parts(sweep):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _parts(sweep: Sweep) -> Iterator[bytes]:
    yield f"{__version__} {sources_digest()} {UNIT_POINTS}".encode()
    yield repr(sweep.columns).encode()
    prices = sweep.prices
    yield repr((sorted((prices.given or {}).items()), prices.source)).encode()
    for condition in sweep.conditions:
        limits = (condition.column, condition.most, condition.least, condition.among)
        yield repr((condition.needs, limits)).encode()
        if condition.expression is not None:
            yield condition.expression.meta.serialize(format="json").encode()
    for device in sweep.plan.devices():
        yield load_efficiencies(device).model_dump_json().encode()
    if sweep.plan.calibration is not None:
        yield sweep.plan.calibration.model_dump_json().encode()
    yield from sweep.plan.content()
