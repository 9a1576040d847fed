"""The page as a reader uses it, with the network off."""

from __future__ import annotations

import subprocess
import sys

import pytest
from axe_playwright_python.sync_playwright import Axe

import ledgerkit as lk
from ledgerkit.text import numbers

pytestmark = pytest.mark.browser

TRAIL = "#triangle svg .mark-trail path"
OVERLAPS = """
() => [...document.querySelectorAll(".chart svg")].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  const words = [...svg.querySelectorAll("text")]
    .filter(word => word.textContent.trim() &&
      !/rotate\\((?!0)/.test(word.getAttribute("transform") || ""))
    .map(word => ({ text: word.textContent, box: word.getBoundingClientRect() }));
  return words.flatMap((one, index) => [
    ...(one.box.left < frame.left - 0.5 || one.box.right > frame.right + 0.5
      ? [`cut: ${one.text}`] : []),
    ...words.slice(0, index).filter(other =>
      Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left) > 0.5 &&
      Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top) > 5.5,
    ).map(other => `${one.text} on ${other.text}`),
  ]);
})
"""
STATES = [
    {},
    {"language": "zh", "theme": "dark"},
    {"model": "kimi-k2.6", "against": "deepseek-v3", "hardware": "h100-sxm-80gb"},
    {"model": "llama-3.1-70b", "against": "kimi-k2.6", "concurrency": "128", "context": "131072"},
    {"model": "gemma-4-26b-a4b", "against": "", "concurrency": "1", "language": "zh"},
]


def shapes(shown) -> str:
    return shown.page.locator("#triangle svg").inner_html()


def test_lists_move_the_marks_and_the_numbers(shown):
    shown.open(theme="article")
    assert shown.page.locator(TRAIL).count() == 2
    before, time_before = shapes(shown), shown.row("page.row.step")
    shown.choose("model", "llama-3.1-70b")
    assert shapes(shown) != before
    assert shown.row("page.row.step") != time_before
    for name, value in (
        ("hardware", "h100-sxm-80gb"),
        ("precision", "fp8"),
        ("concurrency", "128"),
        ("against", ""),
    ):
        before = shapes(shown)
        shown.choose(name, value)
        assert shapes(shown) != before, name
    assert shown.page.locator(TRAIL).count() == 1
    assert shown.problems == []
    assert {url.split("#")[0] for url in shown.requests} == {shown.path.as_uri()}


def test_language_and_theme_switch_everything_and_keep_the_state(shown):
    shown.open(model="kimi-k2.6", context="65536", theme="article")
    time = shown.row("page.row.step")
    shown.choose("language", "zh")
    page = shown.page
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    assert page.locator("h1").inner_text() == "decode 一步的时间，落在哪本账？"
    assert "系统调度账" in shapes(shown)
    assert shown.row("page.row.step") == time
    assert "Kimi-K2.6，64K 上下文" in page.locator("#finding").inner_text()
    left = page.evaluate(
        """() => [...document.querySelectorAll("main *")].filter(node =>
             !node.children.length && !node.closest("pre") && !node.closest("svg"))
             .map(node => node.textContent).filter(text => /undefined|NaN|\\{\\w+\\}/.test(text))"""
    )
    assert left == []
    shown.choose("theme", "dark")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 24, 31)"
    )
    assert shown.problems == []


def test_the_keyboard_moves_the_context_and_the_link_remembers(shown):
    shown.open(model="deepseek-v3")
    page = shown.page
    page.locator("input[name=context]").focus()
    before = shapes(shown)
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('output').textContent === '32K'")
    page.wait_for_function(
        "before => document.querySelector('#triangle svg').innerHTML !== before", arg=before
    )
    assert "context=32768" in page.url
    time = shown.row("page.row.step")
    page.reload()
    page.wait_for_selector("html[data-drawn]")
    assert page.locator("output").inner_text() == "32K"
    assert shown.row("page.row.step") == time


def test_the_python_on_the_page_gives_the_numbers_on_the_page(shown):
    shown.open(model="kimi-k2.6", precision="fp8", context="65536", concurrency="8")
    code = shown.page.locator("#python").inner_text()
    assert "import ledgerkit as lk" in code
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(books.tpot_s, *books.share().values())"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    seconds, *shares = map(float, done.stdout.split())
    assert shown.row("page.row.step") == numbers.duration(seconds)
    printed = numbers.share_texts(shares)
    for ledger, share in zip(("attention_kv", "ffn_mlp", "scheduling"), printed, strict=True):
        assert shown.row(f"ledger.plain.{ledger}").startswith(f"{share}% ")


def test_amounts_are_written_as_everywhere(shown):
    shown.open(model="deepseek-v3", context="8192")
    cache = lk.cache_table(["deepseek-v3"], [8192])["cache_bytes"].item()
    assert shown.row("page.row.cache") == numbers.byte_size(cache)
    assert shown.row("page.row.memory").split(" of ")[1].startswith("139 GB")


@pytest.mark.parametrize("shown", [(1920, 1000), (1280, 900), (390, 800)], indirect=True)
def test_no_word_is_cut_or_under_another(shown):
    for state in STATES:
        shown.open(**({"theme": "article"} | state))
        assert shown.page.evaluate(OVERLAPS) == [], state
        wide = shown.page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, "the page scrolls sideways"
    assert shown.problems == []


@pytest.mark.parametrize("theme", ["article", "dark"])
def test_accessibility_scan_finds_nothing(shown, theme):
    shown.open(theme=theme, language="zh")
    found = Axe().run(shown.page).response
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found["violations"]] == []
    label = shown.page.locator("#triangle[role=graphics-document]").get_attribute("aria-label")
    assert label
    assert "DeepSeek-V3，8K 上下文" in label


def test_a_copied_link_opens_the_same_view(shown):
    shown.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.open(model="kimi-k2.6", context="65536", language="zh", theme="dark")
    numbers_before = shown.row("page.row.step")
    shown.page.locator("#link").click()
    link = shown.page.evaluate("() => navigator.clipboard.readText()")
    assert "model=kimi-k2.6" in link
    shown.open()
    shown.page.goto("about:blank")
    shown.page.goto(link)
    shown.page.wait_for_selector(TRAIL)
    assert shown.row("page.row.step") == numbers_before
    assert shown.page.locator("#link").text_content() == "复制链接"
