"""``lk.compare``: several deployments side by side, each with a trail over one axis."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ledgerkit._ledger import Ledger, ledger
from ledgerkit._memory import memory_rows
from ledgerkit.costs.linear import served_dtype
from ledgerkit.errors import LedgerError, WorkloadError
from ledgerkit.spec._base import LARGEST
from ledgerkit.spec.axes import LEDGERS
from ledgerkit.spec.deployment import Deployment, Workload

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

__all__ = ["Comparison", "compare"]

TRAIL_AXES = ("prompt_tokens", "concurrency", "output_tokens")
_POINT_FIELDS = ("model", "hardware", "deployment", "workload", "label")


class Comparison:
    """Ledgers side by side, and how each moves along a trail."""

    def __init__(
        self,
        labels: Sequence[str],
        ledgers: Sequence[Ledger],
        trail: tuple[str, tuple[int, ...]] | None,
        notes: tuple[str, ...],
    ) -> None:
        self.labels = tuple(labels)
        self.ledgers = tuple(ledgers)
        self.trail = trail
        self.notes = notes

    def __repr__(self) -> str:
        axis = f", trail over {self.trail[0]}" if self.trail else ""
        return f"Comparison({', '.join(self.labels)}{axis})"

    def _points(self) -> Iterable[tuple[int, str, Ledger, bool]]:
        for order, (label, books) in enumerate(zip(self.labels, self.ledgers, strict=True)):
            own = getattr(books.workload, self.trail[0]) if self.trail else None
            values = sorted({own, *self.trail[1]}) if self.trail and own is not None else [None]
            for value in values:
                if value == own:
                    yield order, label, books, True
                    continue
                moved = books.workload.model_dump() | {self.trail[0]: value}  # type: ignore[index]
                try:
                    point = books.at(Workload(**moved))
                except WorkloadError:
                    # beyond what model or engine take: the trail ends there, and a note says so
                    continue
                yield order, label, point, False

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per deployment and trail value.

        Columns: label, model, hardware, devices, prompt_tokens, output_tokens, concurrency,
        is_operating_point, fits, decode_time_s, attention_kv_s, ffn_mlp_s, scheduling_s (decode
        time by ledger), *_share (0 to 1), ttft_s, tpot_s with _low and _high, tokens_per_s,
        resident_bytes_device, capacity_bytes, free_bytes, max_concurrency, deployment_text_zh,
        deployment_text_en, order.
        """
        import polars as pl  # heavy

        return pl.DataFrame([self._row(*point) for point in self._points()])

    def _row(self, order: int, label: str, books: Ledger, is_point: bool) -> dict[str, Any]:  # noqa: FBT001
        seconds, share = books.by_ledger(), books.share()
        zh, en = deployment_text(books)
        return {
            "label": label,
            "model": books.model.slug,
            "hardware": books.hardware.slug,
            "devices": books.deployment.devices,
            "prompt_tokens": books.workload.prompt_tokens,
            "output_tokens": books.workload.output_tokens,
            "concurrency": books.workload.concurrency,
            "is_operating_point": is_point,
            "fits": books.fits,
            "decode_time_s": books.tpot_s,
            **{f"{name}_s": seconds[name] for name in LEDGERS},
            **{f"{name}_share": share[name] for name in LEDGERS},
            "ttft_s": books.ttft_s,
            "ttft_s_low": books.ttft_s_low,
            "ttft_s_high": books.ttft_s_high,
            "tpot_s": books.tpot_s,
            "tpot_s_low": books.tpot_s_low,
            "tpot_s_high": books.tpot_s_high,
            "tokens_per_s": books.tokens_per_s,
            "resident_bytes_device": books.resident_bytes_device,
            "capacity_bytes": books.capacity_bytes,
            "free_bytes": books.free_bytes,
            "max_concurrency": books.max_concurrency,
            "deployment_text_zh": zh,
            "deployment_text_en": en,
            "order": order,
        }

    @cached_property
    def entries(self) -> pl.DataFrame:
        """Entries of all ledgers at their operating points.

        Columns: label, then those of ``Ledger.entries``.
        """
        import polars as pl  # heavy

        return pl.concat(
            [
                books.entries.select(pl.lit(label).alias("label"), pl.all())
                for label, books in zip(self.labels, self.ledgers, strict=True)
            ]
        )

    @cached_property
    def memory(self) -> pl.DataFrame:
        """What fills the fullest device of each deployment.

        Columns: label, component (attention_weights, ffn_weights, cache, reserve, free),
        bytes_device, capacity_bytes, limit_bytes, max_concurrency, binds_zh, binds_en.
        """
        import polars as pl

        return pl.DataFrame(
            [
                row
                for label, books in zip(self.labels, self.ledgers, strict=True)
                for row in memory_rows(label, books)
            ]
        )

    def chart(self, **options: Any) -> alt.TopLevelMixin:
        """Draw the ledger triangle; options as in ``lk.charts.ledger_triangle``."""
        from ledgerkit import _plot  # the one allowed upward call

        return _plot.comparison_chart(self, **options)  # type: ignore[no-any-return]


def deployment_text(books: Ledger) -> tuple[str, str]:
    """Describe machine and precision in a few words: (zh, en)."""
    layout = books.deployment
    parallel = " ".join(
        f"{name}{value}"
        for name, value in (
            ("TP ", layout.tp), ("PP ", layout.pp), ("EP ", layout.ep),
            ("DP-attn ", layout.dp_attention),
        )
        if value > 1
    )  # fmt: skip
    machine = f"{layout.devices}×{device_name(books.hardware.slug)}"
    if parallel:
        machine += f" ({parallel})"
    experts, others = _dtypes(books, layout)
    if experts and experts != others:
        zh = f"{machine}，专家 {experts}，其余 {others}"
        en = f"{machine}, {experts} experts, {others} otherwise"
    else:
        zh, en = f"{machine}，{others}", f"{machine}, {others}"
    return f"{zh}，{layout.kv_dtype} KV cache", f"{en}, {layout.kv_dtype} KV cache"


def device_name(slug: str) -> str:
    """Write a device's slug as people write its name.

    Examples
    --------
    >>> device_name("h200-sxm-141gb"), device_name("apple-m3-ultra")
    ('H200 SXM 141 GB', 'Apple M3 Ultra')
    """
    parts = []
    for part in slug.split("-"):
        size = part.removesuffix("gb")
        if size.isdecimal() and size != part:
            parts.append(f"{size} GB")
        else:
            parts.append(part.capitalize() if part.isalpha() and len(part) > 4 else part.upper())
    return " ".join(parts)


def _short_dtype(name: str) -> str:
    """Name a storage format in a caption: the block shape is in the table, not here."""
    return name.removesuffix("_block128").replace("_", " ")


def _dtypes(books: Ledger, layout: Deployment) -> tuple[str, str]:
    """Storage formats that hold most of the experts and most of the other layer matrices."""
    sizes: dict[tuple[bool, str], float] = {}
    for group in books.model.groups:
        for weight in group.weights:
            if weight.use != "linear":
                continue
            key = (weight.routed, served_dtype(weight, layout))
            sizes[key] = sizes.get(key, 0.0) + weight.elements * group.count

    def largest(routed: bool) -> str:  # noqa: FBT001
        found = {name: size for (is_routed, name), size in sizes.items() if is_routed == routed}
        return _short_dtype(max(found, key=found.__getitem__)) if found else ""

    return largest(True), largest(False)


def compare(
    points: Iterable[Ledger | Mapping[str, Any]],
    trail: tuple[str, Iterable[int]] | None = None,
) -> Comparison:
    """Put deployments side by side, each on a machine and at a workload of its own.

    Parameters
    ----------
    points : iterable of Ledger or dict
        A dict has ``model``, ``hardware``, ``deployment``, ``workload`` and, if wished, ``label``.
    trail : (axis, values), optional
        Axis: ``prompt_tokens``, ``concurrency`` or ``output_tokens``. Values beyond a model's
        positions are left out of its trail, and ``notes`` says so.

    Returns
    -------
    Comparison

    Raises
    ------
    LedgerError
        No points, an unknown key, two equal labels, or an unknown axis.

    Examples
    --------
    >>> import ledgerkit as lk
    >>> work = lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=8)
    >>> both = lk.compare(
    ...     [
    ...         {"model": slug, "hardware": "h100-sxm-80gb", "workload": work}
    ...         for slug in ("llama-3.1-8b", "qwen3-8b")
    ...     ],
    ...     trail=("prompt_tokens", [1024, 8192, 32768]),
    ... )
    >>> both.table.height
    6
    """
    labels: list[str] = []
    ledgers: list[Ledger] = []
    try:
        given = list(points)
    except TypeError:
        raise LedgerError("compare takes a list of points", given=points, allowed="1 or more",
                          fix="pass ledgers, or dicts as for lk.ledger") from None  # fmt: skip
    for point in given:
        label, books = _open(point)
        if label in labels:
            raise LedgerError("two points have the same label", given=label, allowed="other labels",
                              fix="give each point a label of its own")  # fmt: skip
        labels.append(label)
        ledgers.append(books)
    if not ledgers:
        raise LedgerError("compare needs at least one point", given=points, allowed="1 or more",
                          fix="pass ledgers or dicts of what lk.ledger takes")  # fmt: skip
    checked = None if trail is None else _read_trail(trail)
    notes = [] if checked is None else list(_cut_short(labels, ledgers, *checked))
    notes += _crowded(labels, ledgers, checked)
    return Comparison(labels, ledgers, checked, tuple(notes))


def _read_trail(trail: tuple[str, Iterable[int]]) -> tuple[str, tuple[int, ...]]:
    """Check the axis of a trail and its values."""
    try:
        axis, given = trail
        values = tuple(-1 if isinstance(v, bool) else operator.index(v) for v in given)
    except (TypeError, ValueError):
        raise LedgerError(
            "a trail is an axis and whole numbers along it", given=trail,
            allowed=", ".join(TRAIL_AXES), fix='pass ("prompt_tokens", [1024, 8192])',
        ) from None  # fmt: skip
    if axis not in TRAIL_AXES:
        raise LedgerError("unknown trail axis", given=axis, allowed=", ".join(TRAIL_AXES),
                          fix="use trail=('prompt_tokens', values)")  # fmt: skip
    if not values or not 1 <= min(values) <= max(values) <= LARGEST:
        raise LedgerError("a trail needs values of at least 1", given=trail[1],
                          allowed=f"1 to {LARGEST}",
                          fix="leave smaller values out")  # fmt: skip
    return axis, values


def _open(point: Ledger | Mapping[str, Any]) -> tuple[str, Ledger]:
    if isinstance(point, Ledger):
        return point.model.name, point
    if not isinstance(point, Mapping):
        raise LedgerError("a point is a Ledger or a dict", given=point,
                          allowed=", ".join(_POINT_FIELDS), fix="see lk.ledger")  # fmt: skip
    unknown = [key for key in point if key not in _POINT_FIELDS]
    if unknown:
        raise LedgerError("a point has unknown keys", given=unknown,
                          allowed=", ".join(_POINT_FIELDS), fix="leave them out")  # fmt: skip
    for needed in ("model", "hardware", "workload"):
        if needed not in point:
            raise LedgerError(f"a point needs {needed!r}", given=list(point),
                              allowed=", ".join(_POINT_FIELDS), fix=f"give {needed!r}")  # fmt: skip
    books = ledger(point["model"], point["hardware"], point.get("deployment"), point["workload"])
    label = point.get("label")
    return books.model.name if label is None else str(label), books


def _cut_short(
    labels: list[str], ledgers: list[Ledger], axis: str, values: tuple[int, ...]
) -> Iterable[str]:
    for label, books in zip(labels, ledgers, strict=True):
        limit = books.deployment.max_model_len or books.model.max_position_embeddings
        work = books.workload
        seats = books.deployment.max_num_seqs
        longest, why = {
            "prompt_tokens": (limit - work.output_tokens, f"{limit} positions are"),
            "output_tokens": (limit - work.prompt_tokens, f"{limit} positions are"),
            "concurrency": (
                seats * books.deployment.dp_attention if seats else None, "max_num_seqs is",
            ),
        }[axis]  # fmt: skip
        if longest is not None and max(values) > longest:
            yield f"{label}: the trail ends at {longest} {axis}, {why} its limit"
        if axis == "prompt_tokens" and min(values) <= work.cached_tokens:
            yield f"{label}: the trail begins above its {work.cached_tokens} cached_tokens"


def _crowded(
    labels: list[str], ledgers: list[Ledger], trail: tuple[str, tuple[int, ...]] | None
) -> Iterable[str]:
    """Say at which points an engine's default would let sequences wait."""
    for label, books in zip(labels, ledgers, strict=True):
        most = books.workload.concurrency
        if trail is not None and trail[0] == "concurrency":
            most = max(most, *trail[1])
        yield from (f"{label}: {note}" for note in books._table.crowded(most))  # noqa: SLF001
