"""From a measured row to a model, a device, a deployment and a load."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ledgerkit._accuracy.rows import Layout, Row
from ledgerkit._refs import resolve
from ledgerkit.catalog.hardware import load_hardware, records
from ledgerkit.catalog.models import load_model, model_slugs
from ledgerkit.costs.table import CostTable, build
from ledgerkit.errors import CatalogError, LedgerError
from ledgerkit.readers.config import read_config
from ledgerkit.spec.attention import LatentAttention, StateAttention
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.feed_forward import MoeFfn
from ledgerkit.spec.hardware import Hardware
from ledgerkit.spec.model import Model

__all__ = ["BURST_LENGTH", "BURST_VARIATION", "Setup", "Setups"]

BURST_LENGTH, BURST_VARIATION = 0.9, 0.064
"""Mean and coefficient of variation of lengths drawn evenly from 0.8 to 1.0 of the nominal."""
MEMORY_FRACTION = 0.95
"""Benchmarks start servers with nearly all memory; what a row leaves open is assumed here."""

_FORMS = ("sxm", "pcie", "oam")
_SUFFIX = re.compile(
    r"-(instruct|base|it|chat|fp8|nvfp4|fp4|mxfp4|bf16|hf|\d{4}|fp8-dynamic|thinking|quantized)$"
)
_SAME = {
    "llama-3.3-70b": "llama-3.1-70b", "deepseek-v3.1": "deepseek-v3",
    "deepseek-r1-distill-llama-70b": "llama-3.1-70b",
    "deepseek-r1-distill-llama-8b": "llama-3.1-8b", "qwen3-coder-30b-a3b": "qwen3-30b-a3b",
    "minimax-m2": "minimax-m2.7", "minimax-m2.1": "minimax-m2.7", "minimax-m2.5": "minimax-m2.7",
}  # fmt: skip
"""Checkpoints with the architecture of another one that is known."""
_FP4, _FP8 = ("nvfp4", "mxfp4"), ("fp8", "fp8_channel", "fp8_block128", "mxfp8")


@dataclass(frozen=True, slots=True)
class Setup:
    """What a row says, in our terms; tables are built where they are needed."""

    model: Model
    hardware: Hardware
    deployment: Deployment
    workload: Workload
    prefill: Deployment | None = None

    def table(self) -> CostTable:
        """Cost table of the replica, or of a decode worker."""
        model, hardware, deployment, profile, efficiencies = resolve(
            self.model, self.hardware, self.deployment
        )
        return build(model, deployment, hardware, efficiencies, profile)


class Setups:
    """Resolves the names of a file of rows.

    Parameters
    ----------
    configs : Path, optional
        Directory with ``owner__name.json`` configs of models that are not built in.
    """

    def __init__(self, configs: Path | None = None) -> None:
        self.configs = configs
        self._models = lru_cache(maxsize=None)(self._find_model)

    def model(self, path: str) -> Model:
        """Load a model by the name in a row.

        Raises
        ------
        CatalogError
            Neither built in nor among the configs.
        """
        return self._models(path)

    def _find_model(self, path: str) -> Model:
        files = sorted(self.configs.glob("*.json")) if self.configs is not None else []
        stems = {f.stem.rsplit("__", 1)[-1].lower().removeprefix("meta-"): f for f in files}
        names = _spellings(path.rsplit("/", 1)[-1].lower())
        for name in names:
            if name in model_slugs():
                return load_model(name)
            if name in stems:
                return read_config(stems[name])
        for slug in model_slugs():
            if _spellings(slug)[-1] == names[-1]:
                return load_model(slug)
        for stem, file in stems.items():
            if _spellings(stem)[-1] == names[-1]:
                return read_config(file)
        raise CatalogError("no model of this name", given=path,
                           fix="put its config.json into the directory of --configs")  # fmt: skip

    def identity(self, row: Row) -> Hashable:
        """Equal for rows of one architecture, whatever the checkpoint is called."""
        try:
            return self._architecture(row.model_path)
        except LedgerError:
            return row.model_path

    def _architecture(self, path: str) -> Hashable:
        model = self.model(path)
        layers = tuple((g.layers, g.attention, g.ffn) for g in model.groups)
        return (model.hidden_size, model.vocab_size, layers)

    def setup(self, row: Row) -> Setup:
        """Fill in what the row leaves open, and build its deployment.

        Raises
        ------
        LedgerError
            The model, the device, the precision or the layout is not known.
        """
        model, hardware = self.model(row.model_path), device(row.system)
        scale = 1.0 if row.fixed_lengths else BURST_LENGTH
        workload = Workload(
            prompt_tokens=max(1, round(row.prompt_tokens * scale)),
            output_tokens=max(1, round(row.output_tokens * scale)),
            concurrency=row.concurrency,
        )

        experts = any(isinstance(group.ffn, MoeFfn) for group in model.groups)

        def deployed(layout: Layout) -> Deployment:
            return Deployment(
                tp=layout.tp, dp_attention=layout.dp_attention, pp=layout.pp,
                # a dense model has no experts to spread, whatever the row says
                ep=layout.ep if experts else 1,
                engine=row.engine, memory_fraction=MEMORY_FRACTION,
                kv_dtype=cache_dtype(row, hardware), **formats(row, model),
            )  # fmt: skip

        prefill = deployed(row.prefill_layout) if row.prefill_layout is not None else None
        return Setup(model, hardware, deployed(row.layout), workload, prefill)


def _spellings(name: str) -> list[str]:
    """Names to try: as it stands, then without what only says the variant or the format."""
    found = [name]
    while (shorter := _SUFFIX.sub("", found[-1])) != found[-1]:
        found.append(shorter)
    if found[-1] in _SAME:
        found.append(_SAME[found[-1]])
    return found


def device(system: str) -> Hardware:
    """Device of a row: a slug or words of one (``h100_sxm``); the largest memory if several.

    Raises
    ------
    CatalogError
        No device has this name.
    """
    words = system.lower().replace("_", "-").split("-")
    slugs = [str(record["slug"]) for record in records()]
    for wanted in (words, [word for word in words if word not in _FORMS]):
        found = [slug for slug in slugs if wanted and set(wanted) <= set(slug.split("-"))]
        if found:
            return max(map(load_hardware, found), key=lambda one: one.memory_bytes)
    raise CatalogError("no device of this name", given=system, fix="see lk.hardware()")


def formats(row: Row, model: Model) -> dict[str, str | None]:
    """Storage formats of a row's precision.

    A checkpoint that has the precision already is taken as it is. An fp4 version of a model with
    latent or linear attention keeps attention in 16 bits, as published ones do.

    Raises
    ------
    CatalogError
        The precision is not known.
    """
    stored = {
        weight.dtype
        for group in model.groups
        for weight in group.weights
        if weight.account in ("dense", "routed_experts") and weight.use == "linear"
    }
    precision = row.precision
    native = {
        "": True,
        "bf16": not any(name.startswith(("fp8", "int", "mxfp", "nvfp")) for name in stored),
        "fp8": any(name in _FP8 for name in stored),
        "fp4": any(name in _FP4 for name in stored),
        "int4": any(name.startswith("int4") for name in stored),
    }
    if precision not in native:
        raise CatalogError("no such precision", given=precision, allowed=", ".join(native))
    if native[precision]:
        return {"weights": None, "experts": None}
    if precision == "fp4":
        delicate = any(
            isinstance(g.attention, LatentAttention | StateAttention) for g in model.groups
        )
        return {"weights": "bf16" if delicate else "nvfp4",
                "experts": "nvfp4" if delicate else None}  # fmt: skip
    fp8 = "fp8_block128" if row.block_scales else "fp8"
    return {
        "weights": {"bf16": "bf16", "fp8": fp8, "int4": "int4_g128"}[precision],
        "experts": None,
    }


def cache_dtype(row: Row, hardware: Hardware) -> str:
    """Cache dtype that a row leaves open.

    fp8 with quantized weights under TensorRT-LLM, and on devices with fp4 units; else bf16.
    """
    quantized = row.precision not in ("", "bf16")
    if row.engine == "trtllm":
        return "fp8" if quantized else "bf16"
    return "fp8" if "fp4" in hardware.peaks else "bf16"
