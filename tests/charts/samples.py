"""Small synthetic frames with the columns that results have. Their numbers mean nothing."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

CONTEXTS = tuple(1024 * 2**power for power in range(8))


@dataclass(frozen=True)
class Path:
    """A deployment whose shares move from the first pair to the second."""

    label: str
    model: str
    attention: tuple[float, float]
    scheduling: tuple[float, float]
    milliseconds: float = 20.0
    fits_to: float = 1e9
    concurrency: int = 32
    zh: str = "8×H200 SXM（TP8），fp8，bf16 KV cache"
    en: str = "8×H200 SXM (TP8), fp8, bf16 KV cache"


def scaled(paths: list[Path], factor: float) -> list[Path]:
    """The same paths with other scheduling shares."""
    return [
        Path(**(vars(path) | {"scheduling": tuple(factor * s for s in path.scheduling)}))
        for path in paths
    ]


DEEPSEEK = Path("DeepSeek-V3", "deepseek-v3", (0.17, 0.46), (0.14, 0.09))
GEMMA = Path("Gemma 4 26B A4B", "gemma-4-26b-a4b", (0.17, 0.67), (0.07, 0.03), fits_to=40000)
KIMI = Path("Kimi-K2.6", "kimi-k2.6", (0.18, 0.45), (0.18, 0.12))
MIMO = Path("MiMo-V2.5-Pro", "mimo-v2.5-pro", (0.28, 0.39), (0.23, 0.195))
FOUR = [DEEPSEEK, GEMMA, KIMI, MIMO]
LONG_NAME = "Qwen3-235B-A22B-Instruct-2507"
LONG_ZH = "16×H200 SXM 141 GB（TP8 PP2 EP16），专家 int4 g32，其余 bf16，fp8_ds_mla KV cache"
LONG_EN = "16×H200 SXM 141 GB (TP8 PP2 EP16), int4 g32 experts, bf16 otherwise, fp8_ds_mla cache"
SIX = [
    Path("DeepSeek-V3.2-Exp-Base", "deepseek-v3.2", (0.17, 0.46), (0.14, 0.09), zh=LONG_ZH,
         en=LONG_EN),
    Path(LONG_NAME, "qwen3-235b-a22b", (0.25, 0.55), (0.16, 0.10), zh=LONG_ZH, en=LONG_EN),
    Path("Gemma-4-26B-A4B-it-assistant", "gemma-4-26b-a4b", (0.17, 0.67), (0.07, 0.03),
         fits_to=40000),
    KIMI,
    MIMO,
    Path("Llama-4-Maverick-17B-128E", "llama-4", (0.18, 0.45), (0.15, 0.1)),
]  # fmt: skip
TWINS = [DEEPSEEK, Path("Kimi-K2.6", "kimi-k2.6", (0.17, 0.46), (0.14, 0.09))]
CORNERS = [
    Path("All attention", "a", (1.0, 1.0), (0.0, 0.0)),
    Path("All FFN", "b", (0.0, 0.0), (0.0, 0.0)),
    Path("All scheduling", "c", (0.0, 0.0), (1.0, 1.0)),
]


def comparison(
    paths: list[Path],
    *,
    axis: str = "prompt_tokens",
    values: tuple[int, ...] = CONTEXTS,
    operating: int = 8192,
) -> pl.DataFrame:
    """A frame like ``Comparison.table``."""
    rows = []
    for order, path in enumerate(paths):
        for value in sorted({*values, operating}):
            part = (value - values[0]) / max(1, values[-1] - values[0])
            attention, scheduling = (
                first + (last - first) * part**0.5
                for first, last in (path.attention, path.scheduling)
            )
            shares = (attention, 1 - attention - scheduling, scheduling)
            seconds = path.milliseconds / 1e3 * (1 + part)
            workload = {
                "prompt_tokens": 8192,
                "output_tokens": 512,
                "concurrency": path.concurrency,
            } | {axis: value}
            rows.append(
                {
                    "label": path.label,
                    "model": path.model,
                    "hardware": "h200-sxm-141gb",
                    "devices": 8,
                    **workload,
                    "is_operating_point": value == operating,
                    "fits": "yes" if value <= path.fits_to else "no",
                    "decode_time_s": seconds,
                    "attention_kv_share": shares[0],
                    "ffn_mlp_share": shares[1],
                    "scheduling_share": shares[2],
                    "ttft_s": 0.353,
                    "ttft_s_low": 0.264,
                    "ttft_s_high": 0.455,
                    "tpot_s": seconds,
                    "tpot_s_low": seconds * 0.8,
                    "tpot_s_high": seconds * 1.2,
                    "tokens_per_s": path.concurrency / seconds,
                    "deployment_text_zh": path.zh,
                    "deployment_text_en": path.en,
                    "order": order,
                }
            )
    return pl.DataFrame(rows)


BOOKED = {
    ("decode", "time"): [
        ("attention_kv", "core", 0.4),
        ("attention_kv", "cache", 3.0),
        ("attention_kv", "projections", 1.5),
        ("attention_kv", "norms", 0.1),
        ("ffn_mlp", "routed_experts", 12.0),
        ("ffn_mlp", "shared_experts", 0.6),
        ("ffn_mlp", "dense", 0.3),
        ("ffn_mlp", "vocab", 0.2),
        ("ffn_mlp", "router", 0.1),
        ("ffn_mlp", "residual", 0.1),
        ("scheduling", "tp", 1.0),
        ("scheduling", "ep", 1.5),
        ("scheduling", "launch", 2.0),
        ("scheduling", "host", 0.5),
    ],
    ("decode", "read"): [
        ("attention_kv", "cache", 147.0),
        ("attention_kv", "projections", 98.0),
        ("ffn_mlp", "routed_experts", 280.0),
        ("ffn_mlp", "vocab", 2.0),
    ],
    ("hold", "resident"): [
        ("attention_kv", "cache", 147.0),
        ("attention_kv", "projections", 98.0),
        ("ffn_mlp", "routed_experts", 571.0),
        ("scheduling", "padding", 20.0),
        ("scheduling", "fragmentation", 3.0),
    ],
    ("prefill", "time"): [("ffn_mlp", "dense", 900.0)],
}


def entries(labels: list[str], *, only: tuple[str, ...] = ()) -> pl.DataFrame:
    """A frame like ``Comparison.entries``, in ms and GB made SI."""
    rows = []
    for label in labels:
        for (phase, resource), booked in BOOKED.items():
            if only and resource not in only:
                continue
            factor = 1e-3 if resource == "time" else 1e9
            for ledger, account, amount in booked:
                rows.append(
                    {
                        "label": label,
                        "phase": phase,
                        "resource": resource,
                        "ledger": ledger,
                        "account": account,
                        "amount_device": amount * factor / (1 if resource == "time" else 8),
                        "amount_replica": None if resource == "time" else amount * factor,
                    }
                )
    return pl.DataFrame(rows, infer_schema_length=None)


def caches(*, twins: bool = True, capacity: float | None = 4.82e9) -> pl.DataFrame:
    """A frame of cache sizes: a reference, twins, windows, a constant and a long name."""
    # label, model, bytes per token, fixed bytes per token of the window, window, capacity
    laws = [
        ("MHA", "mha", 5e6, 0, 1, 308e9),
        ("DeepSeek-V3", "deepseek-v3", 70272, 0, 1, capacity),
        ("MiMo-V2.5-Pro", "mimo-v2.5-pro", 51200, 307200, 128, None),
        ("Gemma 4 26B A4B", "gemma-4-26b-a4b", 20480, 204800, 1024, None),
        (LONG_NAME, "qwen3-235b-a22b", 192512, 0, 1, 2e9),
        ("Mamba-2.8B", "mamba-2.8b", 0, 1.2e8, 1, None),
    ]
    if twins:
        laws.insert(2, ("Kimi-K2.6", "kimi-k2.6", 70272, 0, 1, None))
    return pl.DataFrame(
        [
            {
                "label": label,
                "model": model,
                "context_tokens": context,
                "cache_bytes": float(slope * context + fixed * min(context, window)),
                "mechanism_zh": "10 层全局 + 60 层窗口 128",
                "mechanism_en": "10 global layers + 60 with window 128",
                "law_zh": "51.2 kB/token + 39.3 MB",
                "law_en": "51.2 kB/token + 39.3 MB",
                "capacity_bytes": most,
                "is_reference": label == "MHA",
            }
            for label, model, slope, fixed, window, most in laws
            for context in CONTEXTS
        ],
        infer_schema_length=None,
    )


def memory(*cases: tuple[str, tuple[float, float, float, float], float, int]) -> pl.DataFrame:
    """A frame like ``Comparison.memory``: label, GB of the four parts, GB of the device, seats."""
    names = ("attention_weights", "ffn_weights", "cache", "reserve")
    return pl.DataFrame(
        [
            {
                "label": label,
                "component": name,
                "bytes_device": size * 1e9,
                "capacity_bytes": device * 1e9,
                "limit_bytes": device * 0.92e9,
                "max_concurrency": seats,
                "binds_zh": "先碰顶的是 KV cache：每条序列 2.35 GB，还能加 66 条",
                "binds_en": "KV cache binds first: 2.35 GB per sequence, room for 66 more",
                "deployment_text_zh": LONG_ZH if len(label) > 20 else "8×H200",
                "deployment_text_en": LONG_EN if len(label) > 20 else "8×H200",
            }
            for label, parts, device, seats in cases
            for name, size in zip(names, parts, strict=True)
        ]
    )


CASES = (
    ("DeepSeek-V3", (11.3, 85.1, 18.4, 4.27), 150.8, 130),
    ("Gemma 4 26B A4B", (2.1, 48.2, 28.2, 2.6), 84.9, 28),
    (LONG_NAME, (21.5, 263.0, 13.5, 4.2), 150.8, 0),
    ("Only cache", (0.0, 0.0, 138.7, 0.0), 150.8, 1),
)
