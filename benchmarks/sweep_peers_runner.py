"""Started by ``sweep_peers.py`` in the environment of the other tools: grid in, JSON out."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections.abc import Callable

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
    "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "head_dim": 128,
}  # fmt: skip


def rate(evaluate: Callable[[], int]) -> float:
    """Points per second of processor time, best of some passes over the grid."""
    evaluate()
    best, stop = 0.0, time.perf_counter() + 6.0
    while time.perf_counter() < stop:
        started = time.process_time()
        points = evaluate()
        best = max(best, points / (time.process_time() - started))
    return best


def llm_analysis(grid: dict) -> dict:
    from llm_analysis.analysis import LLMAnalysis
    from llm_analysis.config import ModelConfig, get_gpu_config_by_name

    logging.disable(logging.CRITICAL)
    model = ModelConfig(
        name="llama-3.1-8b", num_layers=32, n_head=32, hidden_dim=4096, vocab_size=128256,
        max_seq_len=131072, num_key_value_heads=8, expansion_ratio=3.5, model_type="llama",
    )  # fmt: skip
    tool = LLMAnalysis(model, get_gpu_config_by_name("h100-sxm-80gb"), flops_efficiency=0.7,
                       hbm_memory_efficiency=0.9)  # fmt: skip

    def evaluate() -> int:
        for prompt in grid["prompts"]:
            for many in grid["concurrency"]:
                # it refuses points that do not fit; that is an answer, too
                with contextlib.suppress(AssertionError):
                    tool.inference(
                        batch_size_per_gpu=many,
                        seq_len=prompt,
                        num_tokens_to_generate=grid["output"],
                    )
        return len(grid["prompts"]) * len(grid["concurrency"])

    first = tool.inference(
        batch_size_per_gpu=1, seq_len=grid["prompts"][0], num_tokens_to_generate=grid["output"]
    )
    return {"per_s": rate(evaluate), "tpot_s": first["decode_latency"]}


def servcalc(grid: dict) -> dict:
    from servcalc import Workload, estimate

    many = tuple(grid["concurrency"])

    def evaluate() -> int:
        for prompt in grid["prompts"]:
            estimate(CONFIG, "H100 80GB", workload=Workload(prompt, grid["output"], many))
        return len(grid["prompts"]) * len(many)

    first = estimate(
        CONFIG, "H100 80GB", workload=Workload(grid["prompts"][0], grid["output"], many)
    )
    return {"per_s": rate(evaluate), "tpot_s": first.points[0].itl_ms.mid / 1e3}


def ridgepoint(grid: dict) -> dict:
    import ridgepoint as tool

    def fit(prompt: int) -> str:
        # the shape of Llama 3 8B and 3.1 8B is the same; one sequence is all that it decodes
        return tool.fit("llama-3-8b", "h100-80gb", ctx=prompt + grid["output"], prompt=prompt,
                        as_json=True)  # fmt: skip

    def evaluate() -> int:
        for prompt in grid["prompts"]:
            fit(prompt)
        return len(grid["prompts"])

    fit(grid["prompts"][0])
    return {"per_s": rate(evaluate), "one_sequence": True}


def aiconfigurator(grid: dict) -> dict:
    from aiconfigurator.cli.api import cli_estimate

    def evaluate() -> int:
        for prompt in grid["prompts"][:4]:
            cli_estimate(model_path="meta-llama/Meta-Llama-3.1-8B", system_name="h100_sxm",
                         backend_name="vllm", isl=prompt, osl=grid["output"],
                         batch_size=16)  # fmt: skip
        return 4

    return {"per_s": rate(evaluate)}


def main() -> None:
    grid = json.load(sys.stdin)
    found = {}
    for name, measure in (("llm-analysis", llm_analysis), ("servcalc", servcalc),
                          ("ridgepoint, one sequence", ridgepoint),
                          ("aiconfigurator, public call", aiconfigurator)):  # fmt: skip
        try:
            found[name] = measure(grid)
        except ImportError as error:
            found[name] = {"missing": str(error)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
