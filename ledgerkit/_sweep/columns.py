"""What a sweep can compute at each point: names, units, directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ledgerkit.spec.axes import LEDGERS

__all__ = ["COLUMNS", "DEFAULT_COLUMNS", "Column"]

Kind = Literal["number", "whole", "fits", "limit", "bound", "text"]
FITS = ("yes", "no", "uncertain")
LIMITS = ("weights", "cache", "max_num_seqs")
BOUNDS = ("compute", "memory", "communicate", "host")
CATEGORIES: dict[Kind, tuple[str, ...]] = {"fits": FITS, "limit": LIMITS, "bound": BOUNDS}


@dataclass(frozen=True, slots=True)
class Column:
    """One column that a sweep can compute."""

    name: str
    unit: str
    meaning: str
    better: Literal["low", "high"] | None = None
    kind: Kind = "number"
    nullable: bool = False

    @property
    def bytes_per_point(self) -> int:
        """Size of one value in a frame."""
        return 1 if self.kind in CATEGORIES else 8


def _columns() -> list[Column]:
    found = [
        Column("ttft_s", "s", "time to the first token, one request alone", "low"),
        Column("tpot_s", "s", "time per output token", "low"),
        Column("e2e_s", "s", "time of a whole answer", "low"),
        Column("tokens_per_s", "tokens/s", "output tokens of the replica", "high"),
        Column("tokens_per_s_per_device", "tokens/s", "the same, per device", "high"),
        Column("tokens_per_s_per_user", "tokens/s", "the same, per sequence", "high"),
        Column("attention_kv_s", "s", "decode time of the ledger", "low"),
        Column("ffn_mlp_s", "s", "decode time of the ledger", "low"),
        Column("scheduling_s", "s", "decode time of the ledger", "low"),
        Column("resident_bytes_device", "B", "on the fullest device, reserve included", "low"),
        Column("free_bytes", "B", "left on the fullest device", "high"),
        Column("fits", "", "yes, no, or within the band of the reserve", kind="fits"),
        Column("max_concurrency", "sequences", "that memory holds", "high", kind="whole"),
        Column("concurrency_limit", "", "what ends concurrency first", kind="limit"),
        Column("decode_bound", "", "what takes most of the decode time", kind="bound"),
        Column("capacity_bytes", "B", "of a device that the engine may use", "high"),
        Column("devices", "", "of one replica", "low", kind="whole"),
        Column("tdp_energy_j_per_output_token", "J", "devices x rated power x time per token: "
               "an upper bound, not a measurement", "low", nullable=True),
        Column("usd_per_hour", "USD/h", "of one device", "low", nullable=True),
        Column("price_source", "", "source of the price", kind="text", nullable=True),
        Column("price_date", "", "date of the price", kind="text", nullable=True),
        Column("usd_per_million_input_tokens", "USD", "one prompt alone, cached tokens free",
               "low", nullable=True),
        Column("usd_per_million_output_tokens", "USD", "at this concurrency", "low",
               nullable=True),
    ]  # fmt: skip
    found += [
        Column("loaded_ttft_s", "s", "under load, waiting included: lk.steady_state", "low",
               nullable=True),
        Column("loaded_tpot_s", "s", "under load, prefills of others included", "low",
               nullable=True),
        Column("loaded_tokens_per_s", "tokens/s", "under load, of all answers", "high",
               nullable=True),
    ]  # fmt: skip
    for name in ("ttft_s", "tpot_s"):
        found += [Column(f"{name}_{edge}", "s", f"{edge} end of {name}", "low")
                  for edge in ("low", "high")]  # fmt: skip
    for phase in ("prefill", "decode"):
        for ledger in LEDGERS:
            for amount, unit in AMOUNTS.items():
                found.append(
                    Column(f"{phase}_{ledger}_{amount}", unit, f"{amount} of the busiest device",
                           "low")
                )  # fmt: skip
    found += [Column(f"hold_{ledger}_bytes", "B", "resident on the fullest device", "low")
              for ledger in LEDGERS]  # fmt: skip
    return found


AMOUNTS = {"flop": "FLOP", "read_bytes": "B", "write_bytes": "B", "communicate_bytes": "B",
           "s": "s"}  # fmt: skip
"""In the order of the kernels' totals."""

COLUMNS = {column.name: column for column in _columns()}
DEFAULT_COLUMNS = (
    "ttft_s", "tpot_s", "e2e_s", "tokens_per_s", "tokens_per_s_per_device", "attention_kv_s",
    "ffn_mlp_s", "scheduling_s", "resident_bytes_device", "free_bytes", "fits",
    "max_concurrency", "concurrency_limit",
)  # fmt: skip
