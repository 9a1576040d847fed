"""Which fraction of its peaks a device reaches, from ``data/efficiency.csv``.

The table holds evidence: measured medians with their spread per device, constants fitted to kernel
measurements, a few stated judgements; each row with its source. No row is fitted to the serving
measurements that accuracy is judged by, except the host constants, which say so.

What is looked up for a device, in this order:

1. a row of the **device** itself, as it stands;
2. its **family**: a row that names the family, else the median over the family's device rows;
   band × / ÷ 1.25;
3. its **vendor**: the median over the vendor's device rows; band × / ÷ 1.4;
4. **global**: a row for all, else the median over all device rows; band × / ÷ 1.6.

Of the measured fractions, nine in ten lie in the band that their device would get without its own
rows (a test counts it). Operations other than GEMM stop after the family: beyond it they are GEMM
times a measured ratio (rows ``..._over_gemm``), because a device whose GEMM is slow seldom has fast
attention. A format without a row of its own takes that of the format in which the device multiplies
it: int8 like fp8, int4 and what a device lacks in 16 bits.

Columns of the table: ``scope`` and ``key`` say for whom, ``quantity``, ``op_class`` (or the kind of
link) and ``dtype`` for what; ``low``, ``mid``, ``high`` are fractions of the peaks of the device
table, or seconds; ``n`` counts the kernel tables, devices or rows behind it (0 = not counted);
``basis`` is measured, fitted, derived (by a stated step) or judgement.
"""

from __future__ import annotations

import csv
import statistics
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from ledgerkit._data import data_path
from ledgerkit.catalog.hardware import records
from ledgerkit.errors import CatalogError
from ledgerkit.spec.cache import KV_DTYPES
from ledgerkit.spec.efficiency import Band, Efficiencies, LinkEfficiency, OpClass, OpEfficiency

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ledgerkit.spec.hardware import Hardware

__all__ = ["WIDENING", "load_efficiencies"]

Scope = Literal["device", "family", "vendor", "global"]

WIDENING: dict[Scope, float] = {"device": 1.0, "family": 1.25, "vendor": 1.4, "global": 1.6}
"""Factor on both ends of a band that was found at this distance from the device."""

_SCOPES: tuple[Scope, ...] = ("device", "family", "vendor", "global")
_MATRIX_CLASSES: tuple[OpClass, ...] = ("gemm", "grouped_gemm", "attention_prefill")
_CACHE_CLASSES: tuple[OpClass, ...] = ("attention_decode", "latent_decode")
# the format whose rows speak for a compute dtype
_EVIDENCE = {
    "fp32": "bf16", "tf32": "bf16", "fp16": "bf16", "bf16": "bf16", "fp8": "fp8", "int8": "fp8",
    "fp6": "fp8", "fp4": "fp4", "int4": "bf16",
}  # fmt: skip
_WIDE_CACHES = ("bf16", "fp16", "fp32")


class _Row(NamedTuple):
    scope: Scope
    keys: frozenset[str]
    band: tuple[float, float, float]
    source: str


class _Found(NamedTuple):
    """Evidence for one quantity: its band, how far from the device it was found, and where."""

    band: tuple[float, float, float]
    scope: Scope
    source: str

    def widened(self, *, fraction: bool) -> Band:
        low, mid, high = self.band
        factor = WIDENING[self.scope]
        # nothing streams or multiplies faster than its peak, unless it was measured to
        ceiling = max(1.0, high) if fraction else float("inf")
        return Band(low=low / factor, mid=mid, high=min(high * factor, ceiling))


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str, str], list[_Row]]:
    """Rows by quantity, operation class (or link kind) and dtype."""
    rows: dict[tuple[str, str, str], list[_Row]] = {}
    with data_path("efficiency.csv").open(encoding="utf-8", newline="") as file:
        for cell in csv.DictReader(file):
            keys = cell["key"].split("; ") if cell["scope"] == "family" else cell["key"].split()
            row = _Row(
                scope=cell["scope"],  # type: ignore[arg-type]
                keys=frozenset(keys),
                band=(float(cell["low"]), float(cell["mid"]), float(cell["high"])),
                source=cell["source"],
            )
            rows.setdefault((cell["quantity"], cell["op_class"], cell["dtype"]), []).append(row)
    return rows


@lru_cache(maxsize=1)
def _homes() -> dict[str, tuple[str, str]]:
    """Family and vendor of each built-in device."""
    return {record["slug"]: (record["family"], record["vendor"]) for record in records()}


def _median(rows: Sequence[tuple[_Row, str]]) -> tuple[tuple[float, float, float], str]:
    """Median of the rows' bands, low, mid and high apart; each device counts once."""
    bands = [row.band for row, _ in rows]
    low, mid, high = (statistics.median(band[i] for band in bands) for i in range(3))
    sources = dict.fromkeys(row.source for row, _ in rows)
    return (low, mid, high), f"median of {len(rows)} devices: " + "; ".join(sources)


class _Evidence:
    """The rows of the table, seen from one device."""

    def __init__(self, device: Hardware) -> None:
        self.slug, self.family, self.vendor = device.slug, device.family, device.vendor
        self._seen: dict[tuple[Scope, str, str, str], _Found | None] = {}

    def _at(self, scope: Scope, quantity: str, op_class: str, dtype: str) -> _Found | None:
        key = (scope, quantity, op_class, dtype)
        if key not in self._seen:
            rows = _table().get((quantity, op_class, dtype), ())
            self._seen[key] = self._look_up(scope, rows)
        return self._seen[key]

    def _look_up(self, scope: Scope, rows: Sequence[_Row]) -> _Found | None:
        if scope in ("device", "global", "family"):
            key = {"device": self.slug, "family": self.family, "global": "*"}[scope]
            for row in rows:
                if row.scope == scope and key in row.keys:
                    return _Found(row.band, scope, row.source)
        if scope == "device":
            return None
        homes = _homes()
        devices = [
            (row, slug)
            for row in rows
            if row.scope == "device"
            for slug in sorted(row.keys)
            if scope == "global"
            or (scope == "family" and homes[slug][0] == self.family)
            or (scope == "vendor" and homes[slug][1] == self.vendor)
        ]
        if not devices:
            return None
        band, source = _median(devices)
        return _Found(band, scope, source)

    def find(
        self,
        quantity: str,
        op_class: str = "",
        dtypes: Sequence[str] = ("",),
        scopes: Sequence[Scope] = _SCOPES,
    ) -> _Found | None:
        """Evidence nearest to the device; at equal distance the first dtype wins."""
        for scope in scopes:
            for dtype in dtypes:
                found = self._at(scope, quantity, op_class, dtype)
                if found is not None:
                    return found
        return None

    def need(self, quantity: str, op_class: str = "", dtypes: Sequence[str] = ("",)) -> _Found:
        found = self.find(quantity, op_class, dtypes)
        if found is None:
            raise CatalogError(
                f"the efficiency table has no {quantity} of {op_class or 'any operation'}",
                given=self.slug, fix="add a row to data/efficiency.csv",
            )  # fmt: skip
        return found

    def fraction(
        self, quantity: str, op_class: str, dtypes: Sequence[str], gemm_dtypes: Sequence[str]
    ) -> _Found:
        """Evidence of the class itself near the device, else GEMM times its ratio."""
        if op_class == "gemm":
            return self.need(quantity, op_class, dtypes)
        near = self.find(quantity, op_class, dtypes, ("device", "family"))
        if near is not None:
            return near
        gemm = self.need(quantity, "gemm", gemm_dtypes)
        ratio = self.need(f"{quantity}_over_gemm", op_class, (*dtypes, "bf16"))
        low, mid, high = (min(a * b, 1.0) for a, b in zip(gemm.band, ratio.band, strict=True))
        return _Found(
            (low, mid, high), gemm.scope, f"gemm × {op_class}/gemm: {gemm.source}; {ratio.source}"
        )


def _operation(op_class: OpClass, dtype: str, compute: _Found, memory: _Found) -> OpEfficiency:
    wider = max(compute.scope, memory.scope, key=_SCOPES.index)
    sources = dict.fromkeys((compute.source, memory.source))
    return OpEfficiency(
        op_class=op_class,
        dtype=dtype,
        eta_compute=compute.widened(fraction=True),
        eta_memory=memory.widened(fraction=True),
        source=" | ".join(sources),
        scope=wider,
    )


def _matrix_operations(device: Hardware, evidence: _Evidence) -> Iterable[OpEfficiency]:
    for dtype, stored in _EVIDENCE.items():
        # a device without the dtype expands the weights and multiplies in 16 bits
        multiplied = _EVIDENCE[device.compute_dtype(dtype)]
        reads = (stored, "bf16")
        for op_class in _MATRIX_CLASSES:
            compute = evidence.fraction("eta_compute", op_class, (multiplied,), (multiplied,))
            # the memory side of prefill attention reads like a matrix product
            reader = "gemm" if op_class == "attention_prefill" else op_class
            memory = evidence.fraction("eta_memory", reader, reads, reads)
            yield _operation(op_class, dtype, compute, memory)


def _cache_operations(evidence: _Evidence) -> Iterable[OpEfficiency]:
    for layout in KV_DTYPES:
        stored = "bf16" if layout in _WIDE_CACHES else "fp8"
        memory = evidence.fraction(
            "eta_memory", "attention_decode", (stored, "bf16"), (stored, "bf16")
        )
        # caches are expanded when they are read: decode multiplies in 16 bits
        latent = ("fp8_ds_mla", "bf16") if layout == "fp8_ds_mla" else ("bf16",)
        for op_class in _CACHE_CLASSES:
            dtypes = latent if op_class == "latent_decode" else ("bf16",)
            compute = evidence.fraction("eta_compute", "latent_decode", dtypes, ("bf16",))
            yield _operation(op_class, layout, compute, memory)


def _link(device: Hardware, evidence: _Evidence) -> LinkEfficiency:
    # what is no faster than the slot goes through it
    scaleup, slot = device.scaleup_bytes_per_s, device.pcie_bytes_per_s
    kind = "pcie" if scaleup is None or scaleup <= (slot or 0.0) else "scaleup"
    eta = evidence.need("eta_link", kind)
    alpha = evidence.need("alpha_s", kind)
    two_shot = evidence.need("alpha_two_shot_s", kind)
    card = evidence.need("eta_link", "nic")
    found = (eta, alpha, two_shot, card)
    return LinkEfficiency(
        eta_link=eta.widened(fraction=True),
        alpha_s=alpha.widened(fraction=False),
        alpha_two_shot_s=two_shot.widened(fraction=False),
        source=" | ".join(dict.fromkeys(one.source for one in found)),
        # one kind of card, whatever the device behind it
        eta_scale_out=Band(low=card.band[0], mid=card.band[1], high=card.band[2]),
    )


@lru_cache(maxsize=256)
def load_efficiencies(hardware: Hardware) -> Efficiencies:
    """Fractions of peak, latencies and host times of a device, each with a band.

    Parameters
    ----------
    hardware : Hardware
        A device of the catalogue or a described one; family and vendor decide what stands in where
        nothing was measured on it.

    Returns
    -------
    Efficiencies
        Fractions per operation class and dtype, times in seconds.

    Raises
    ------
    CatalogError
        The table lacks a quantity (a defect of the table).

    Examples
    --------
    >>> from ledgerkit.catalog.hardware import load_hardware
    >>> h100 = load_efficiencies(load_hardware("h100-sxm-80gb"))
    >>> h100.op("gemm", "bf16").eta_memory
    Band(low=0.79, mid=0.82, high=0.87)
    >>> h100.op("gemm", "fp8").eta_compute.mid, h100.kernel_latency_s.mid
    (0.5, 4e-06)
    >>> load_efficiencies(load_hardware("tpu-v5e")).op("gemm", "bf16").scope
    'global'
    """
    evidence = _Evidence(hardware)
    streams = evidence.need("eta_memory", "gemm", ("bf16",))
    # elementwise work is priced by its bytes; its arithmetic never binds
    elementwise = _operation(
        "elementwise", "bf16", evidence.need("eta_compute", "gemm", ("bf16",)), streams
    )
    link = _link(hardware, evidence)
    times = {
        name: evidence.need(name)
        for name in ("kernel_latency_s", "host_step_s", "host_sequence_s", "host_prefill_kernel_s")
    }
    return Efficiencies(
        ops=(*_matrix_operations(hardware, evidence), *_cache_operations(evidence), elementwise),
        link=link,
        **{name: found.widened(fraction=False) for name, found in times.items()},
        source=" | ".join(f"{name}: {found.source}" for name, found in times.items()),
    )
