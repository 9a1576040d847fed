"""Published series against what people said of them.

First comes the mapping: what each published case claims, in our own words, and the class of
``lk.loadtest.diagnose_series`` (or ``diagnose``) that such a claim corresponds to. It was written
before the verdicts were computed. Then the verdicts are computed and compared, and where they
differ the reason is stated. The measurements are reference data that do not ship:

    python benchmarks/loadtest_cases.py --shared ../shared
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import ledgerkit as lk
from ledgerkit.errors import LedgerError
from ledgerkit.loadtest._basis import Basis
from ledgerkit.spec.attention import SoftmaxAttention

NO_SERIES = "no series"
"""What ``diagnose_series`` must refuse: neither context nor concurrency varies alone."""


@dataclass(frozen=True)
class Claim:
    """What a source says, in our words, the class it maps to, and where it is published."""

    says: str
    expected: str
    source: str
    reason: str = ""
    """Why the verdict differs, where it does."""


MAC = "ggml-org/llama.cpp: benches/mac-m2-ultra"
SPARK = "ggml-org/llama.cpp: benches/dgx-spark"
SILICON = "ai-dynamo/aiconfigurator: measured end-to-end tables"
KTRANSFORMERS = "kvcache-ai/ktransformers: published tables"

MAPPING = {
    "C2": Claim(
        "a fitted line; the cache takes half of a step only beyond 400K tokens", "flat",
        "vLLM 0.19 on H100, gpt-oss-20b, published fit",
        "At 128K the growing part is 22 % of a step, just above our limit of 20 %; up to 32K it "
        "is 7 % and the line is flat. The source means half, we mean a fifth.",
    ),
    "C3": Claim("cache reads limit decode", "context_sensitive", SPARK),
    "C5": Claim("both weights and a growing cache matter", "context_sensitive", SPARK),
    "C8": Claim("flat: experts are read from host memory", "flat", KTRANSFORMERS),
    "C10": Claim(
        "most of a step passes outside the model", "service", "penta2himajin/qwisp issue 119",
        "Two contexts are no series, and one series may not name a service chain. It notes that "
        "time grows faster than the context, which no cache read does; with the step time that "
        "the engine reports, the gap decides (next row).",
    ),
    "C10 gap": Claim(
        "27.8 of 155 ms are the model's", "service", "penta2himajin/qwisp issue 119"
    ),
    "C12": Claim(
        "prefill takes constant time first (weights stream in), then grows", "undetermined",
        KTRANSFORMERS,
    ),
    "B2": Claim(
        "throughput rises with the batch, with a plateau where another kernel would be needed",
        "concurrency_sensitive", MAC,
    ),
    "B3": Claim(
        "expert reads grow with the batch; throughput still rises", "concurrency_sensitive", SPARK
    ),
    "B4": Claim("overhead and expert reads; throughput rises", "concurrency_sensitive", MAC),
    "B5": Claim(
        "the cache is full at 64, so requests queue; below, throughput rises",
        "concurrency_sensitive", SILICON,
    ),
    "B5 TTFT": Claim("TTFT over concurrency", NO_SERIES, SILICON),
    "B6": Claim("communication limits at eight devices", NO_SERIES, SILICON),
    "B7": Claim("the value at 32 is a bad measurement", "outlier", SILICON),
    "B9": Claim("speculation stops paying with more than one sequence", NO_SERIES,
                "vllm-project/vllm issue 24322"),
}  # fmt: skip
"""The labelled cases."""

# The tables of llama.cpp carry no claim, only names. What their models are, decides: the class
# follows from the cache bytes at the far end over cache and active weight bytes, above 20 % or not.
ARCHITECTURE = {
    "gpt-oss 20B": "gpt-oss-20b",
    "gpt-oss 120B": "gpt-oss-120b",
    "qwen3moe 30B.A3B": "qwen3-30b-a3b",
    "qwen2 7B": "qwen2.5-7b",
    "gemma3 4B": "gemma-3-4b-it",
    "deepseek2 30B.A3B": "glm-4.7-flash",
}
FILE_BYTES = {"gpt-oss 20B": 11.27, "gpt-oss 120B": 59.02, "qwen3moe 30B.A3B": 30.25,
              "qwen2 7B": 7.54, "gemma3 4B": 2.35, "deepseek2 30B.A3B": 29.65}  # fmt: skip
"""GiB of the files, as the tables state them."""
DEPTH_REASONS = {
    "qwen2 7B": "Its bytes put it on the limit itself; measured growth is a little more.",
    "gemma3 4B": "Five of six layers stop growing at 1K, so the series is no straight line and "
    "its interval crosses the limit; the value itself is above it.",
}
"""Where bytes and verdicts differ, and why."""
PREFILL_REASONS = {
    "gemma3 4B": "Counted operations are below the limit and so is the value, but the interval of "
    "the series touches the limit.",
}
"""The same for operations of a prefill."""


def numbers(text: str) -> list[float]:
    return [float(part.replace("K", "e3")) for part in text.split("|")]


def after(text: str, name: str) -> list[float]:
    """Seconds of one of several series in a field, given in ms."""
    return [value / 1e3 for value in numbers(text.partition(name)[2].partition(";")[0].strip())]


def series(
    x: list[float], y: list[float], axis: str, measure: str, **more: float
) -> tuple[str, str]:
    """Verdict and sensitivity of a series; what is refused is no series."""
    try:
        found = lk.loadtest.diagnose_series(x, y, axis=axis, measure=measure, **more)
    except LedgerError:
        return NO_SERIES, ""
    share = found.sensitivity
    shown = "" if share is None else f"{share.value:.2f} ({share.low:.2f} to {share.high:.2f})"
    if found.outliers:
        shown += f", at {', '.join(f'{place:g}' for place in found.outliers)}"
    return found.verdict, shown


def labelled(folder: Path) -> list[tuple[str, Claim, str, str]]:
    """The labelled cases: id, claim, verdict, sensitivity."""
    table = {row["id"]: row for row in pl.read_csv(folder / "load_test_cases.csv").to_dicts()}
    rows = {key: (numbers(row["x"]) if row["x"][:1].isdigit() else [], row["y"])
            for key, row in table.items() if key not in ("B6", "B9")}  # fmt: skip
    context = [1024.0, 8192.0, 32768.0, 131072.0]
    verdicts = {
        "C2": series(context, [4.05e-3 + 8.94e-9 * c for c in context], "context", "step_s"),
        "C10": series([1e4, 1e4, 4.8e4, 4.8e4], [40, 53, 6, 7], "context", "tokens_per_s"),
        "C10 gap": gap(0.155, 0.0278),
        "C12": series([2048, 8192, 30000], [38.6, 44.5, 103.0], "context", "ttft_s"),
        "B5": series(rows["B5"][0], after(rows["B5"][1], "TPOT"), "concurrency", "step_s"),
        "B5 TTFT": series(rows["B5"][0], after(rows["B5"][1], "TTFT"), "concurrency", "ttft_s"),
        "B6": series([1, 2, 4, 8], [0.0215, 0.0139, 0.0099, 0.0079], "tp", "step_s"),
        "B7": series(rows["B7"][0], after("TPOT" + rows["B7"][1], "TPOT"), "concurrency",
                     "step_s"),
        "B9": series([1.0], [1.147], "concurrency", "tokens_per_s"),
    }  # fmt: skip
    for key in ("C3", "C5", "C8"):
        verdicts[key] = series(rows[key][0], numbers(rows[key][1]), "context", "tokens_per_s")
    for key in ("B2", "B3", "B4"):
        verdicts[key] = series(rows[key][0], numbers(rows[key][1]), "concurrency", "tokens_per_s")
    return [(key, claim, *verdicts[key]) for key, claim in MAPPING.items()]


def gap(client_s: float, engine_s: float) -> tuple[str, str]:
    """Verdict of a full test whose engine tells its own step time."""
    rows = [
        {"prompt_tokens": c, "concurrency_requested": b, "run": run,
         "itl_s": client_s * (1 + 0.01 * run) * (c / 10240) ** 0.05,
         "engine_itl_s": engine_s * (1 + 0.01 * run)}
        for c in (10240, 49152) for b in (1, 2) for run in range(3)
    ]  # fmt: skip
    found = lk.loadtest.diagnose(pl.DataFrame(rows))
    return found.verdict, "" if found.gap is None else f"gap {found.gap.value:.2f}"


def expected_share(name: str, context: int) -> float | None:
    """Cache bytes over cache and active weight bytes of a decode step."""
    key = next((key for key in ARCHITECTURE if name.startswith(key)), None)
    if key is None:
        return None
    model = lk.load_model(ARCHITECTURE[key])
    cache = float(
        np.sum(
            Basis(model, lk.Deployment(kv_dtype="fp16")).attention(
                np.array([float(context)]), np.ones(1)
            )
        )
    )
    active = model.active_parameter_count / model.parameter_count * FILE_BYTES[key] * 2**30
    return cache / (cache + active)


def expected_prefill_share(name: str, context: int) -> float | None:
    """Operations on cached tokens over all operations of a prefilled token; None for latents."""
    model = lk.load_model(ARCHITECTURE[next(key for key in ARCHITECTURE if name.startswith(key))])
    attention = 0.0
    for group in model.groups:
        kind = group.attention
        if not isinstance(kind, SoftmaxAttention):
            return None
        seen = min(context, kind.limit or context)
        pair = 2.0 * kind.num_attention_heads * (kind.head_dim + kind.v_head_dim)
        attention += group.count * pair * seen
    return attention / (attention + 2.0 * model.active_parameter_count)


def prefills(table: pl.DataFrame) -> list[tuple[str, Claim, str, str]]:
    """Time of a chunk of 2,048 tokens over the tokens that are there already."""
    found = []
    rows = table.filter(pl.col("phase") == "prefill")
    for (name,), part in rows.group_by(["model"], maintain_order=True):
        rising = part.sort("depth")
        verdict, shown = series(
            rising["depth"].to_list(), rising["prefill_tps"].to_list(), "context", "tokens_per_s"
        )
        share = expected_prefill_share(str(name), int(part["depth"].max()))
        says = (
            "every head works on the latent: most operations per cached token"
            if share is None
            else f"cached tokens are {share:.0%} of the operations at 32K"
        )
        expected = "context_sensitive" if share is None or share > 0.2 else "flat"
        reason = next(
            (text for key, text in PREFILL_REASONS.items() if str(name).startswith(key)), ""
        )
        found.append((f"prefill, {name}", Claim(says, expected, SPARK, reason), verdict, shown))
    return found


def llama_cpp(folder: Path) -> list[tuple[str, Claim, str, str]]:
    """Depth series, batch series and whole grids of the llama.cpp tables."""
    table = pl.read_csv(folder / "llamacpp_measured.csv", infer_schema_length=None)
    found = []
    depths = table.filter((pl.col("phase") == "decode") & pl.col("decode_tps").is_not_null())
    for (name,), part in depths.group_by(["model"], maintain_order=True):
        rising = part.sort("depth")
        verdict, shown = series(
            rising["depth"].to_list(), rising["decode_tps"].to_list(), "context", "tokens_per_s"
        )
        share = expected_share(str(name), int(part["depth"].max()))
        says = (
            "a latent cache; not among the built-in models"
            if share is None
            else (f"cache is {share:.0%} of the bytes at 32K")
        )
        expected = "context_sensitive" if share is None or share > 0.2 else "flat"
        reason = next(
            (text for key, text in DEPTH_REASONS.items() if str(name).startswith(key)), ""
        )
        found.append((f"depth, {name}", Claim(says, expected, SPARK, reason), verdict, shown))
    grid = table.filter(pl.col("phase") == "both")
    for (name, context), part in grid.group_by(["model", "depth"], maintain_order=True):
        rising = part.sort("batch")
        verdict, shown = series(
            rising["batch"].to_list(), rising["decode_tps"].to_list(), "concurrency",
            "tokens_per_s",
        )  # fmt: skip
        claim = Claim("weights are read once for all sequences", "concurrency_sensitive", SPARK)
        found.append((f"batch at {context}, {str(name).split('/')[-1]}", claim, verdict, shown))
    for (name,), part in grid.group_by(["model"], maintain_order=True):
        rows = part.select(
            pl.col("depth").alias("prompt_tokens"), pl.col("batch").alias("concurrency_requested"),
            pl.col("batch").cast(pl.Float64).alias("concurrency"),
            (pl.col("batch") / pl.col("decode_tps")).alias("itl_s"),
            pl.lit(32.0).alias("output_tokens"),
        )  # fmt: skip
        diagnosis = lk.loadtest.diagnose(rows, at=(8208, 32))
        share = diagnosis.attention_kv_share
        shown = f"KV {share.value:.2f} ({share.low:.2f} to {share.high:.2f})" if share else ""
        claim = Claim("one run per cell", "undetermined", SPARK)
        found.append((f"grid, {str(name).split('/')[-1]}", claim, diagnosis.verdict, shown))
    return found + prefills(table)


PUBLISHED = {
    ("DeepSeek-V3/R1 671B", "KTransformers 8 experts V0.2.1"): Claim(
        "experts are read from host memory", "flat", KTRANSFORMERS),
    ("DeepSeek-V3/R1 671B", "KTransformers 6 experts V0.2.1"): Claim(
        "experts are read from host memory, fewer of them", "flat", KTRANSFORMERS,
        "Fewer experts leave a shorter step, in which the growing part weighs more; its interval "
        "crosses the limit, so nothing is said."),
    ("Qwen3-8B", "vLLM v1 + Mooncake"): Claim(
        "prefill time over prompt length", "context_sensitive",
        "kvcache-ai/Mooncake: vLLM v1 results"),
    ("Qwen3-235B-A22B-2507", "SGLang+Mooncake"): Claim(
        "prefill time over prompt length", "context_sensitive",
        "kvcache-ai/Mooncake: SGLang results"),
}  # fmt: skip


def published(folder: Path) -> tuple[list[tuple[str, Claim, str, str]], int, int]:
    """Series among the published speeds; how many rows are in series, and how many are not."""
    table = pl.read_csv(folder / "speed_published.csv", infer_schema_length=None)
    found, used = [], 0
    for (model, engine), claim in PUBLISHED.items():
        part = table.filter((pl.col("model") == model) & (pl.col("engine") == engine)).sort("isl")
        used += part.height
        decode = part["decode_tok_s"].null_count() == 0
        y = part["decode_tok_s"].to_list() if decode else [t / 1e3 for t in part["ttft_ms"]]
        measure = "tokens_per_s" if decode else "ttft_s"
        verdict, shown = series(part["isl"].to_list(), y, "context", measure)
        found.append((f"{model}, {engine}", claim, verdict, shown))
    return found, used, table.height - used


def section(title: str, rows: list[tuple[str, Claim, str, str]]) -> str:
    lines = [
        f"## {title}", "",
        "| case | the source says | maps to | verdict | sensitivity (95 %) | same | source |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for key, claim, verdict, shown in rows:
        same = "yes" if verdict == claim.expected else "no"
        lines.append(
            f"| {key} | {claim.says} | {claim.expected} | {verdict} | {shown} | {same} | "
            f"{claim.source} |"
        )
    differ = [row for row in rows if row[2] != row[1].expected]
    lines += ["", f"{len(rows) - len(differ)} of {len(rows)} agree.", ""]
    for key, claim, verdict, _ in differ:
        reason = claim.reason or "NO REASON GIVEN"
        lines.append(f"- **{key}**: {claim.expected} expected, {verdict} found. {reason}")
    return "\n".join(lines) + "\n"


def report(folder: Path) -> str:
    """The whole comparison as Markdown."""
    speeds, used, rest = published(folder)
    return f"""# Verdicts against published load tests

Made by `python benchmarks/loadtest_cases.py --shared ../shared`; mapping and reasons stand in that
script. Each claim was first mapped to one of our classes; then the verdict was computed.

{section("Labelled cases", labelled(folder))}
{section("llama.cpp on one small machine", llama_cpp(folder))}
{section("Published speeds", speeds)}
{used} rows of the published speeds form these series. The other {rest} are no series, and nothing
is said of them: throughput at a load that the tool chose and did not state, single points, points
in which context and concurrency change together, or fewer than three places.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    given = parser.parse_args()
    given.out.write_text(report(given.shared / "facts"), encoding="utf-8")


if __name__ == "__main__":
    main()
