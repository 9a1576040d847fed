"""Metrics pages of three engines, and pages that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.loadtest._metrics import parse

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a {b} \\"c\\""} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:num_preemptions_total{engine="0",model_name="m"} 4.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 128.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 1.5
vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 100.0
"""
SGLANG = """\
sglang:num_running_reqs{model_name="m"} 5.0
sglang:num_queue_reqs{model_name="m"} 0.0
sglang:token_usage{model_name="m"} 0.5
sglang:cached_tokens_total{model_name="m"} 7.0
"""
# as printed by the server that the live test starts
LLAMA_CPP = """\
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 2
llamacpp:requests_deferred 0
llamacpp:prompt_tokens_cached_total 0
llamacpp:tokens_predicted_total 124
llamacpp:tokens_predicted_seconds_total 29.7369
"""


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (VLLM, {"running": 5.0, "waiting": 1.0, "kv_usage": 0.75, "preemptions": 4.0,
                "prefix_hits": 128.0, "itl_sum": 1.5, "itl_count": 100.0}),
        (SGLANG, {"running": 5.0, "waiting": 0.0, "kv_usage": 0.5, "prefix_hits": 7.0}),
        (LLAMA_CPP, {"running": 2.0, "waiting": 0.0, "prefix_hits": 0.0, "itl_sum": 29.7369,
                     "itl_count": 124.0}),
        ("", {}),
        ("<html>login</html>", {}),
        ("vllm:num_requests_running NaN\nsglang:token_usage +Inf\n", {}),
        ("vllm:num_requests_running{never closed 3.0", {}),
        ("vllm:num_requests_running many", {}),
    ],
)  # fmt: skip
def test_pages(page, expected):
    assert parse(page) == expected


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(page):
    assert isinstance(parse(page), dict)
    assert isinstance(parse("vllm:num_requests_running{" + page), dict)
