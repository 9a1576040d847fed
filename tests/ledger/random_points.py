"""Random deployments that can be built, the same ones in every run."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ledgerkit._ledger import Ledger, ledger
from ledgerkit.catalog.hardware import records
from ledgerkit.catalog.models import load_model, model_slugs
from ledgerkit.errors import DeploymentError, HardwareError, UnsupportedDtypeError
from ledgerkit.spec.cache import KV_DTYPES
from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.precision import WEIGHT_DTYPES
from tests.costs import world

ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp")


def draw_deployment(rng: random.Random) -> Deployment:
    """A layout of up to 128 devices, and whatever else may be chosen."""
    tp, dp = rng.choice((1, 1, 2, 4, 8, 16)), rng.choice((1, 1, 1, 2, 8))
    divisors = [n for n in (1, 2, 4, 8, 16, 32) if (tp * dp) % n == 0]
    return Deployment(
        weights=rng.choice((None, None, *WEIGHT_DTYPES)),
        experts=rng.choice((None, None, None, *WEIGHT_DTYPES)),
        kv_dtype=rng.choice(("bf16", "bf16", "fp8", *KV_DTYPES)),
        tp=tp, dp_attention=dp, ep=rng.choice((1, divisors[-1], *divisors)),
        pp=rng.choice((1, 1, 1, 2, 3, 4)), engine=rng.choice(ENGINES),
        max_num_batched_tokens=rng.choice((None, None, 512, 2048, 100_000)),
        block_size=rng.choice((None, 1, 64)),
    )  # fmt: skip


def draw_workload(rng: random.Random, longest: int) -> Workload:
    """Short and long prompts, up to the model's positions."""
    total = min(longest, rng.choice((2, 300, 5000, 5000, 20_000, 20_000, 140_000)))
    prompt = rng.randint(1, total - 1)
    return Workload(
        prompt_tokens=prompt, output_tokens=rng.choice((1, total - prompt)),
        concurrency=rng.choice((1, 2, 7, 32, 300, 5000)),
        cached_tokens=rng.choice((0, 0, prompt // 2, prompt - 1)),
    )  # fmt: skip


def catalogued(count: int, seed: int) -> Iterator[Ledger]:
    """Ledgers of built-in models on built-in devices."""
    rng = random.Random(seed)
    devices = [record["slug"] for record in records()]
    found = 0
    while found < count:
        model = load_model(rng.choice(model_slugs()))
        try:
            yield ledger(
                model, rng.choice(devices), draw_deployment(rng),
                draw_workload(rng, model.max_position_embeddings),
            )  # fmt: skip
        except (DeploymentError, HardwareError, UnsupportedDtypeError):
            continue
        found += 1


def of_every_kind(count: int, seed: int) -> Iterator[Ledger]:
    """Ledgers of one model of each kind, half of them with communication hidden."""
    rng = random.Random(seed)
    models = world.every_kind()
    found = 0
    while found < count:
        model = models[found % len(models)]
        engine = world.ENGINE.model_copy(update={"overlap": rng.choice((0.0, 0.7))})
        try:
            table = world.table_of(model, draw_deployment(rng), engine=engine)
        except (DeploymentError, UnsupportedDtypeError):
            continue
        yield Ledger(table, draw_workload(rng, model.max_position_embeddings))
        found += 1
