"""Measured serving rows: one format, read strictly."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ledgerkit.errors import LoadTestError

__all__ = ["Layout", "Row", "read_rows"]

COLUMNS = (
    "model_path", "system", "backend", "backend_version", "precision", "gemm_quant_mode",
    "moe_quant_mode", "mode", "isl", "osl", "concurrency", "batch_size", "tp_size", "pp_size",
    "attention_dp_size", "moe_tp_size", "moe_ep_size", "prefill_num_workers", "prefill_tp_size",
    "prefill_attention_dp_size", "prefill_moe_ep_size", "decode_num_workers", "decode_tp_size",
    "decode_attention_dp_size", "decode_moe_ep_size", "silicon_ttft_ms", "silicon_tpot_ms",
    "measured", "origin",
)  # fmt: skip
"""Columns that a file of rows must have; further ones are ignored."""

OWN_COLUMNS = (
    "model", "device", "engine", "version", "precision", "block_scales", "prompt_tokens",
    "output_tokens", "lengths", "clients", "tp", "dp_attention", "ep", "prefill_workers",
    "prefill_tp", "prefill_dp_attention", "prefill_ep", "decode_workers", "tpot_s", "ttft_s",
    "measured", "source",
)  # fmt: skip
"""Columns of our own files: sizes as they were, seconds, one source for each row."""

_SQUARES = (16, 64)


@dataclass(frozen=True, slots=True)
class Layout:
    """Ranks of one worker."""

    tp: int
    dp_attention: int
    ep: int
    pp: int = 1

    @property
    def devices(self) -> int:
        """Devices of the worker."""
        return self.tp * self.dp_attention * self.pp


@dataclass(slots=True)
class Row:
    """One measured point."""

    line: int
    model_path: str
    system: str
    engine: str
    version: str
    precision: str
    block_scales: bool
    """Quantized matrices with one scale per 128 × 128 block."""
    disaggregated: bool
    prompt_tokens: int
    output_tokens: int
    concurrency: int
    """Clients of one replica, or of all workers of a disaggregated row."""
    layout: Layout
    """Of the replica, or of a decode worker."""
    layout_key: tuple[int | None, ...]
    repaired: bool
    measured: str
    origin: str
    ttft_s: float
    tpot_s: float
    prefill_layout: Layout | None = None
    prefill_workers: int | None = None
    decode_workers: int | None = None
    curated: bool = False
    """From a file of ours, whose rows are all to be judged."""
    names: set[str] = field(default_factory=set)
    """Model names under which the same measurement is listed."""
    duplicates: int = 0
    judged: str = ""
    """The rule that keeps it from being judged; empty = judged."""
    ttft_judged: bool = True

    fixed_lengths: bool = False
    """Whether the client sent equal lengths; other clients drew 0.8 to 1.0 of the nominal."""

    @property
    def client(self) -> Literal["burst", "fixed"]:
        """Kind of load generator."""
        return "fixed" if self.fixed_lengths else "burst"


def _whole(text: str) -> int | None:
    return int(float(text)) if text.strip() else None


def _layout(cells: dict[str, str]) -> tuple[Layout, tuple[int | None, ...], bool]:
    """Ranks of an aggregated row; undo sizes that were multiplied twice.

    GPUs are tp × attention_dp. Where one of them is 16 or 64 and both expert sizes are its square
    root, the product of the two expert sizes was written into it: experts are not divided by tp.
    """
    tp, moe_tp, ep, pp = (
        _whole(cells[name]) or 1 for name in ("tp_size", "moe_tp_size", "moe_ep_size", "pp_size")
    )
    dp = _whole(cells["attention_dp_size"]) or 1
    repaired = False
    if moe_tp == ep > 1:
        if tp in _SQUARES and tp == moe_tp * ep:
            tp, moe_tp, repaired = ep, 1, True
        elif dp in _SQUARES and dp == moe_tp * ep:
            dp, moe_tp, repaired = ep, 1, True
    return Layout(tp, dp, ep, pp), (tp, dp, moe_tp, ep), repaired


def _worker(cells: dict[str, str], side: str) -> Layout | None:
    tp = _whole(cells[f"{side}_tp_size"])
    if tp is None:
        return None
    dp = _whole(cells[f"{side}_attention_dp_size"]) or 1
    return Layout(tp, dp, _whole(cells[f"{side}_moe_ep_size"]) or 1)


def _row(line: int, cells: dict[str, str]) -> Row:
    disaggregated = cells["mode"] == "disagg"
    clients, batch = _whole(cells["concurrency"]), _whole(cells["batch_size"])
    prefill = None
    if disaggregated:
        layout, repaired = _worker(cells, "decode") or Layout(1, 1, 1), False
        prefill = _worker(cells, "prefill")
        if clients is None:
            each = _whole(cells.get("decode_batch_size", "")) or 1
            clients = each * layout.dp_attention * (_whole(cells["decode_num_workers"]) or 1)
        key = tuple(
            _whole(cells[name]) for name in COLUMNS if name.startswith(("prefill_", "decode_"))
        )
    else:
        layout, key, repaired = _layout(cells)
        if clients is None:
            clients = (batch or 1) * layout.dp_attention
        elif batch and layout.dp_attention == 1 and clients > batch and clients % batch == 0:
            # the client's load went to several replicas
            clients = batch
    return Row(
        line=line, model_path=cells["model_path"], system=cells["system"], engine=cells["backend"],
        version=cells["backend_version"], precision=cells["precision"],
        block_scales="fp8_block" in (cells["gemm_quant_mode"], cells["moe_quant_mode"]),
        disaggregated=disaggregated, prompt_tokens=int(float(cells["isl"])),
        output_tokens=int(float(cells["osl"])), concurrency=clients or 1, layout=layout,
        layout_key=key, repaired=repaired, measured=cells["measured"], origin=cells["origin"],
        ttft_s=float(cells["silicon_ttft_ms"]) / 1e3, tpot_s=float(cells["silicon_tpot_ms"]) / 1e3,
        prefill_layout=prefill, prefill_workers=_whole(cells["prefill_num_workers"]),
        decode_workers=_whole(cells["decode_num_workers"]), names={cells["model_path"]},
        fixed_lengths=cells["origin"].startswith("aic-gap/"),
    )  # fmt: skip


def _own_row(line: int, cells: dict[str, str]) -> Row:
    sizes = {name: _whole(cells[name]) for name in OWN_COLUMNS if name.endswith(("tp", "ep"))}
    layout = Layout(sizes["tp"] or 1, _whole(cells["dp_attention"]) or 1, sizes["ep"] or 1)
    workers = _whole(cells["decode_workers"])
    prefill = None
    if workers:
        ranks = _whole(cells["prefill_dp_attention"]) or 1
        prefill = Layout(sizes["prefill_tp"] or 1, ranks, sizes["prefill_ep"] or 1)
    return Row(
        line=line, model_path=cells["model"], system=cells["device"], engine=cells["engine"],
        version=cells["version"], precision=cells["precision"],
        block_scales=cells["block_scales"] == "1", disaggregated=workers is not None,
        prompt_tokens=int(cells["prompt_tokens"]), output_tokens=int(cells["output_tokens"]),
        concurrency=int(cells["clients"]), layout=layout,
        layout_key=(layout.tp, layout.dp_attention, layout.ep, workers), repaired=False,
        measured=cells["measured"], origin=cells["source"], ttft_s=float(cells["ttft_s"]),
        tpot_s=float(cells["tpot_s"]), prefill_layout=prefill,
        prefill_workers=_whole(cells["prefill_workers"]), decode_workers=workers,
        names={cells["model"]}, fixed_lengths=cells["lengths"] == "equal", curated=True,
    )  # fmt: skip


def read_rows(path: Path) -> list[Row]:
    """Read a file of measured rows.

    Raises
    ------
    LoadTestError
        The file is missing, lacks a column, or a cell is not a number.
    """
    if not path.is_file():
        raise LoadTestError(
            "no such file of measured rows", given=str(path), allowed="a file that exists"
        )
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        names = reader.fieldnames or ()
        needed, make = (OWN_COLUMNS, _own_row) if "clients" in names else (COLUMNS, _row)
        missing = [name for name in needed if name not in names]
        if missing:
            raise LoadTestError("columns are missing", given=", ".join(missing),
                                allowed=", ".join(needed))  # fmt: skip
        found = []
        for line, cells in enumerate(reader, 2):
            try:
                found.append(make(line, cells))
            except ValueError as error:
                raise LoadTestError(
                    f"line {line} is not a measured row: {error}",
                    given=str(path),
                    allowed="rows as data/measured_serving.csv has them",
                ) from error
    return found
