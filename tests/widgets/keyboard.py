"""Walks through a panel with Tab and notes each stop: its outline, its name, what keys do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.charts.color import contrast

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

MARK_CONTROLS = """panel => {
    const found = panel.querySelectorAll(
        'button, select, input, textarea, summary, a[href], [tabindex]');
    let count = 0;
    for (const one of found) {
        const shown = one.getClientRects().length && getComputedStyle(one).visibility === 'visible';
        const tied = one.disabled || one.tabIndex < 0 || one.closest('[disabled]');
        if (!shown || tied) continue;
        one.dataset.stop = count++;
        one.dataset.rest = getComputedStyle(one).outlineStyle;
    }
    const before = document.createElement('button'), after = before.cloneNode();
    before.dataset.stop = 'before';
    after.dataset.stop = 'after';
    panel.before(before);
    panel.after(after);
    before.focus();
    return count;
}"""
FORGET = """() => {
    window.deaf.abort();
    for (const one of document.querySelectorAll('[data-stop]')) {
        if (['before', 'after'].includes(one.dataset.stop)) one.remove();
        else for (const name of ['stop', 'rest']) delete one.dataset[name];
    }
}"""
HERE = """() => {
    const one = document.activeElement, style = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    return {
        stop: one.dataset.stop ?? 'elsewhere', tag: one.tagName.toLowerCase(),
        type: one.type ?? '', slider: one.matches('.noUi-handle'),
        shown: box.width > 0 && box.height > 0,
        html: one.outerHTML.slice(0, 160), rest: one.dataset.rest ?? '',
        outline: [style.outlineStyle, parseFloat(style.outlineWidth), style.outlineColor],
        cut: (() => {
            const reach = parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset);
            for (let n = one.parentElement; n; n = n.parentElement) {
                if (n.matches('.jp-OutputArea')) break;
                if (getComputedStyle(n).overflow === 'visible') continue;
                const room = n.getBoundingClientRect();
                const sides = {
                    left: box.left - reach < room.left, top: box.top - reach < room.top,
                    right: box.right + reach > room.right,
                    bottom: box.bottom + reach > room.bottom,
                };
                const gone = Object.keys(sides).filter(side => sides[side]);
                if (gone.length) return `${gone.join(' ')} by ${n.className}`;
            }
            return '';
        })(),
        ground: (() => { for (let n = one.parentElement; n; n = n.parentElement) {
            const color = getComputedStyle(n).backgroundColor;
            if (color !== 'rgba(0, 0, 0, 0)') return color;
        }})(),
    };
}"""

# the panel is told nothing of what a key does to a list or a button: only the page is asked
DEAF = """panel => {
    window.heard = { click: 0, change: 0 };
    const hear = event => {
        const one = event.target;
        if (!one.matches('button, select, input[type=checkbox]')) return;
        if (event.type in window.heard) window.heard[event.type] += 1;
        event.stopImmediatePropagation();
    };
    window.deaf = new AbortController();
    for (const type of ['click', 'change', 'input']) {
        panel.addEventListener(type, hear, { capture: true, signal: window.deaf.signal });
    }
}"""
STATE = """() => {
    const one = document.activeElement;
    const told = one.matches('button') ? window.heard.click
        : one.matches('summary') ? one.parentElement.open
        : one.matches('select') ? [...one.selectedOptions].map(option => option.index)
        : one.matches('input[type=checkbox]') ? one.checked
        : one.matches('textarea') ? one.value : one.getAttribute('aria-valuenow');
    return JSON.stringify(told);
}"""
RESTORE = """old => {
    const one = document.activeElement, value = JSON.parse(old);
    if (one.matches('select')) {
        for (const option of one.options) option.selected = value.includes(option.index);
    }
}"""
KEYS = {
    "button": [("Enter",), ("Space",)], "submit": [("Enter",), ("Space",)],
    "summary": [("Enter",), ("Enter",)], "checkbox": [("Space",), ("Space",)],
    "select-one": [("ArrowDown", "ArrowUp")], "select-multiple": [("ArrowDown", "ArrowUp")],
    "slider": [("ArrowRight", "ArrowLeft"), ("ArrowLeft", "ArrowRight")],
    "textarea": [("x",), ("Backspace",)],
}  # fmt: skip
"""Keys, each with another for a value at its end; the last restore what the first did."""


@dataclass(frozen=True)
class Stop:
    """What has the focus."""

    stop: str
    tag: str
    type: str
    slider: bool
    shown: bool
    html: str
    rest: str
    outline: tuple[str, float, str]
    cut: str
    ground: str

    @property
    def outlined(self) -> bool:
        """Whether the focus is seen: an outline that it does not have at rest, none of it cut."""
        style, width, color = self.outline
        ratio = contrast(_hexadecimal(color), _hexadecimal(self.ground))
        # WCAG 2.2, 1.4.11 and 2.4.13: two pixels, 3 to 1
        return (style, self.rest, self.cut) == ("solid", "none", "") and width >= 2 and ratio >= 3

    @property
    def words(self) -> str:
        """For messages of tests."""
        return f"{self.html} {self.outline} over {self.ground} {self.cut}"


def _hexadecimal(color: str) -> str:
    return "#" + "".join(f"{int(part):02X}" for part in re.findall(r"\d+", color)[:3])


class Walk:
    """Tab through a panel, from a button before it to one after it.

    ``controls`` is how many controls a hand with a mouse finds.
    """

    def __init__(self, panel: Locator) -> None:
        self.page: Page = panel.page
        self.controls: int = panel.evaluate(MARK_CONTROLS)
        panel.evaluate(DEAF)
        self._session = self.page.context.new_cdp_session(self.page)

    def here(self) -> Stop:
        """What has the focus now."""
        found = self.page.evaluate(HERE)
        return Stop(**found | {"outline": tuple(found["outline"])})

    def name(self) -> str:
        """What a screen reader calls what has the focus."""
        held = self._session.send("Runtime.evaluate", {"expression": "document.activeElement"})
        tree: dict[str, Any] = self._session.send(
            "Accessibility.getPartialAXTree",
            {"objectId": held["result"]["objectId"], "fetchRelatives": False},
        )
        return str(tree["nodes"][0].get("name", {}).get("value", ""))

    def press(self, key: str) -> Stop:
        """Press a key and look where the focus is."""
        self.page.keyboard.press(key)
        return self.here()

    def go(self, to: Stop) -> None:
        """Give the focus to a control that was passed."""
        self.page.locator(f"[data-stop='{to.stop}']").focus()

    def unmoved(self, at: Stop) -> list[tuple[str, ...]]:
        """Press the keys that move what has the focus; returns those that did nothing."""
        kind = "slider" if at.slider else at.type or at.tag
        start = before = self.page.evaluate(STATE)
        idle = []
        for keys in KEYS[kind]:
            for key in keys:
                self.page.keyboard.press(key)
                now = self.page.evaluate(STATE)
                if now != before:
                    break
            else:
                idle.append(keys)
            before = now
        self.page.evaluate(RESTORE, start)
        return idle

    def close(self) -> None:
        """Leave the page as it was."""
        self.page.evaluate(FORGET)
        self._session.detach()
