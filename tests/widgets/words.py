"""All words of a panel that a reader sees or hears, and the foreign ones among them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import ledgerkit as lk
from ledgerkit._compare import device_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playwright.sync_api import Locator

SAID = """panel => {
    for (const block of panel.querySelectorAll('details')) block.open = true;
    const found = new Set();
    const shown = one =>
        one.closest('option') || one.closest('svg') || one.getClientRects().length;
    const texts = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const one = texts.currentNode.parentElement;
        const code = one.closest('style, script, [data-code]');
        if (!code && shown(one)) found.add(texts.currentNode.data);
    }
    for (const name of ['aria-label', 'aria-valuetext', 'title', 'placeholder', 'alt']) {
        for (const one of panel.querySelectorAll(`[${name}]`)) {
            if (shown(one)) found.add(one.getAttribute(name));
        }
    }
    return [...found].map(text => text.replaceAll('\\u00a0', ' ').trim()).filter(Boolean);
}"""
CJK = re.compile(r"[\u2e80-\u9fff\uff01-\uff60]")
_CODE = re.compile(r"^import ledgerkit.*", re.DOTALL)
_CITED = re.compile(r"\S+@\S+(?: \([^)]*\))?|\S+://\S+")
_TOKEN = re.compile(r"[A-Za-z0-9_.'’+-]+")
_WORD = re.compile(r"[A-Za-z]['’A-Za-z-]+\.?")
# what Chinese texts on serving language models leave in Latin letters
_LATIN = """
    TTFT TPOT ITL token prompt prefill decode batch cache checkpoint benchmark kernel dtype
    KV MHA MQA GQA MLA DSA NSA FFN MLP MoE MTP SwiGLU GeGLU Dense Attn Attention
    TP PP EP DP DP-attention DP-attn tp pp
    GB MB kB GiB GFLOP ms USD SI TDP
    SVG PNG PDF JSON GGUF Python Explorer English arXiv False None
    vLLM vllm transformers DeepEP llama architectures
    Continuous Batching Chunked Prefill Prefix Cache PagedAttention RadixAttention Sliding Window
    Sparse Hybrid Quantization Shared Expert Offload Speculative Decoding Pipeline Tensor
    Parallelism
"""
LATIN = frozenset(_LATIN.split())


def words(panel: Locator) -> list[str]:
    """Texts, options, and what is said of pictures and controls; Python that is copied is no text.

    Folded blocks are unfolded.
    """
    found: list[str] = panel.evaluate(SAID)
    return [text for text in found if not _CODE.match(text)]


def english(texts: Iterable[str]) -> dict[str, str]:
    """English words and where they stand, but names of models and devices, fields and citations.

    Whatever has a digit or an underscore in it is a name of something.
    """
    names = {*lk.models()["name"], *map(device_name, lk.hardware()["slug"])}
    named = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    found = {}
    for text in texts:
        for token in _TOKEN.findall(named.sub(" ", _CITED.sub(" ", text))):
            if _WORD.fullmatch(token) and token.rstrip(".") not in LATIN:
                found[token] = text
    return found
