"""Devices: peaks, memory, links, prices, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, ValidationError

from ledgerkit.errors import HardwareError, UnsupportedDtypeError
from ledgerkit.spec._base import Frozen, Size, finite_number, raise_from_validation

__all__ = ["Hardware"]

Positive = Annotated[float, Field(gt=0)]
Rate = Annotated[float, Field(ge=1, le=1e24)]
"""Per second; nothing that computes is slower than one or faster than 10²⁴."""
ComputeDtype = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp6", "fp4", "int4"]


class Hardware(Frozen):
    """One device, and how it reaches its neighbours.

    Peaks are dense. Rates of links are one direction, per device.
    """

    slug: Annotated[str, Field(min_length=1)]
    vendor: str = "unknown"
    family: str = "unknown"
    release_year: int | None = None
    form_factor: str | None = None
    memory_bytes: Size
    memory_is_lower_bound: bool = False
    """True: the vendor states whole GB only, counted as 10⁹ bytes."""
    memory_bytes_per_s: Rate
    peak_flop_per_s: Annotated[tuple[tuple[ComputeDtype, Rate], ...], Field(min_length=1)]
    """Dense matrix peaks by dtype; a dtype that is not listed does not exist on the device."""
    scaleup_bytes_per_s: Rate | None = None
    """NVLink and its kin; None = no such link (PCIe is used)."""
    scaleup_domain_size: Size | None = None
    pcie_bytes_per_s: Rate | None = None
    nic_bytes_per_s: Rate | None = None
    host_memory_bytes_per_s: Rate | None = None
    tdp_w: Positive | None = None
    usd_per_hour: Positive | None = None
    price_date: str | None = None
    price_source: str | None = None
    source: str = "given by the user"
    source2: str | None = None
    confidence: str = "unrated"
    unverified_fields: tuple[str, ...] = ()
    notes: str = ""

    def __init__(self, **fields: Any) -> None:
        if "peak_flop_per_s" in fields:
            fields["peak_flop_per_s"] = _checked_peaks(fields["peak_flop_per_s"])
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise_from_validation(error, HardwareError, "Hardware", Hardware.model_fields)

    def __repr__(self) -> str:
        return f"Hardware({self.slug!r})"

    __str__ = __repr__

    @property
    def peaks(self) -> dict[str, float]:
        """Dense peaks by dtype, FLOP/s."""
        return dict(self.peak_flop_per_s)

    def compute_dtype(self, wanted: str) -> str:
        """The dtype in which this device multiplies weights stored in ``wanted``.

        A device without the dtype computes in bf16, else fp16, as engines do (weights are
        expanded on the fly).

        Raises
        ------
        UnsupportedDtypeError
            The device has neither the dtype nor a 16-bit fallback.

        Examples
        --------
        >>> import ledgerkit as lk
        >>> lk.load_hardware("a100-sxm-80gb").compute_dtype("fp8")
        'bf16'
        """
        peaks = self.peaks
        for dtype in (wanted, "bf16", "fp16", "fp32"):
            if dtype in peaks:
                return dtype
        raise UnsupportedDtypeError(
            f"{self.slug} multiplies in none of "
            f"{', '.join(dict.fromkeys((wanted, 'bf16', 'fp16', 'fp32')))}",
            given=", ".join(peaks), allowed="peak_flop_per_s with one of them",
            fix="add 'bf16' to peak_flop_per_s, or use another device",
        )  # fmt: skip


def _checked_peaks(given: Any) -> tuple[tuple[str, Any], ...]:
    """Peaks by dtype as pairs; an error names the dtype."""
    known = ", ".join(get_args(ComputeDtype))
    pairs = given.items() if isinstance(given, Mapping) else given
    if not isinstance(given, Mapping | list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs
    ):
        raise HardwareError("Hardware.peak_flop_per_s must be a dict", given=given,
                            allowed=f"FLOP/s by dtype: {known}",
                            fix="give peak_flop_per_s={'bf16': 1e15}")  # fmt: skip
    for dtype, peak in pairs:
        if dtype not in get_args(ComputeDtype):
            raise HardwareError("Hardware.peak_flop_per_s has an unknown dtype", given=dtype,
                                allowed=known, fix="use one of these dtypes")  # fmt: skip
        finite_number(HardwareError, f"peak_flop_per_s[{dtype!r}]", peak, 1.0, 1e24)
    return tuple((str(dtype), peak) for dtype, peak in pairs)
