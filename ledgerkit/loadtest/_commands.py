"""The cells of a plan as shell commands of other tools; ``read`` takes their results back.

Flags as documented by each project: vllm bench serve and sglang.bench_serving (random data, exact
lengths: range ratio 0 there, 1 here), llama.cpp's tools/llama-bench and tools/batched-bench,
ai-dynamo/aiperf, triton-inference-server/perf_analyzer (genai-perf), vllm-project/guidellm (0.8).
The lines of sglang 0.5.23, aiperf 0.13 and guidellm 0.8.1 were run against a llama.cpp server.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import LoadTestError

if TYPE_CHECKING:
    from ledgerkit.loadtest._plan import Cell, Plan

__all__ = ["TOOLS", "commands"]

_WAVES = 2
"""Requests per sequence: the second wave starts staggered, as a real load does."""


def _line(*parts: object) -> str:
    return shlex.join(str(part) for part in parts)


def _runs(plan: Plan) -> Iterator[tuple[Cell, str, int]]:
    """Every run in the order of the plan, with a name for its file and a seed of its own."""
    for number, (place, run) in enumerate(plan.order):
        cell = plan.cells[place]
        name = f"{number:03d}_c{cell.prompt_tokens}_b{cell.concurrency}_r{run}"
        yield cell, name, plan.seed + number


def _vllm(plan: Plan, url: str, served: str) -> list[str]:
    return [
        _line(
            "vllm", "bench", "serve", "--base-url", url, "--model", served,
            "--dataset-name", "random", "--random-input-len", cell.prompt_tokens,
            "--random-output-len", cell.output_tokens, "--random-range-ratio", 0,
            "--num-prompts", _WAVES * cell.concurrency, "--max-concurrency", cell.concurrency,
            "--ignore-eos", "--seed", seed, "--save-result", "--save-detailed",
            "--result-filename", f"{name}.json",
        )
        for cell, name, seed in _runs(plan)
    ]  # fmt: skip


def _sglang(plan: Plan, url: str, served: str) -> list[str]:
    return [
        _line(
            "python", "-m", "sglang.bench_serving", "--backend", "sglang-oai", "--base-url", url,
            "--model", served, "--dataset-name", "random-ids",
            "--random-input-len", cell.prompt_tokens, "--random-output-len", cell.output_tokens,
            "--random-range-ratio", 1, "--num-prompts", _WAVES * cell.concurrency,
            "--max-concurrency", cell.concurrency, "--seed", seed,
            "--output-file", f"{name}.jsonl", "--output-details",
        )
        for cell, name, seed in _runs(plan)
    ]  # fmt: skip


def _llama_bench(plan: Plan, _: str, served: str) -> list[str]:
    depths = ",".join(str(d) for d in sorted({cell.prompt_tokens for cell in plan.cells}))
    shared = ["llama-bench", "-m", served, "-r", plan.runs, "-o", "jsonl"]
    return [
        _line(*shared, "-p", 0, "-n", plan.cells[0].output_tokens, "-d", depths)
        + " > decode.jsonl",
        _line(*shared, "-p", depths, "-n", 0) + " > prefill.jsonl",
    ]


def _batched(plan: Plan, _: str, served: str) -> list[str]:
    output = plan.cells[0].output_tokens
    room = max(cell.concurrency * (cell.prompt_tokens + output) for cell in plan.cells)
    grid = {
        "-npp": sorted({cell.prompt_tokens for cell in plan.cells}),
        "-npl": sorted({cell.concurrency for cell in plan.cells}),
    }
    lists = [part for flag, values in grid.items() for part in (flag, ",".join(map(str, values)))]
    return [
        _line("llama-batched-bench", "-m", served, "-c", room, "-ntg", output, *lists,
              "--output-format", "jsonl") + f" > batched_r{run}.jsonl"
        for run in range(plan.runs)
    ]  # fmt: skip


def _nvidia(program: str) -> Callable[[Plan, str, str], list[str]]:
    def lines(plan: Plan, url: str, served: str) -> list[str]:
        return [
            _line(
                program, "profile", "-m", served, "--url", url, "--endpoint-type", "completions",
                "--streaming", "--concurrency", cell.concurrency,
                "--request-count", _WAVES * cell.concurrency,
                "--synthetic-input-tokens-mean", cell.prompt_tokens,
                "--synthetic-input-tokens-stddev", 0,
                "--output-tokens-mean", cell.output_tokens, "--output-tokens-stddev", 0,
                "--extra-inputs", "ignore_eos:true",
                "--extra-inputs", f"min_tokens:{cell.output_tokens}",
                "--random-seed", seed, "--artifact-dir", name,
            )
            for cell, name, seed in _runs(plan)
        ]  # fmt: skip

    return lines


def _guidellm(plan: Plan, url: str, served: str) -> list[str]:
    return [
        _line(
            "guidellm", "run", "--backend",
            f"kind=openai_http,target={url},model={served},request_format=/v1/completions",
            "--profile", f"kind=concurrent,streams={cell.concurrency}",
            "--constraint", f"kind=max_requests,count={_WAVES * cell.concurrency}",
            "--data", f"kind=synthetic_text,prompt_tokens={cell.prompt_tokens},"
            f"output_tokens={cell.output_tokens}",
            "--seed", f"kind=static,value={seed}", "--output", f"kind=json,path={name}.json",
        )
        for cell, name, seed in _runs(plan)
    ]  # fmt: skip


TOOLS: dict[str, Callable[[Plan, str, str], list[str]]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "llama-bench": _llama_bench,
    "llama-batched-bench": _batched,
    "aiperf": _nvidia("aiperf"),
    "genai-perf": _nvidia("genai-perf"),
    "guidellm": _guidellm,
}


def commands(plan: Plan, tool: str, *, base_url: str, served: Any) -> str:
    """Ready shell commands, one per line, in the order of the plan.

    Raises
    ------
    LoadTestError
        No such tool, or no model.
    """
    if tool not in TOOLS:
        raise LoadTestError("no commands for this tool", given=tool, allowed=", ".join(TOOLS))
    if not isinstance(served, str) or not served:
        raise LoadTestError("served= is the name of the model on the server, or a GGUF file",
                            given=served, allowed="a name or a path, as text")  # fmt: skip
    return "\n".join(TOOLS[tool](plan, base_url, served)) + "\n"
