"""Buttons of a panel: copy its Python or link, save its figure; and names for what has none.

Copying and downloading happen in the page, so that they work on a server as well as at home. The
sliders and toggle buttons of ipywidgets carry no names for screen readers: the toolbar sees to it.
"""

from __future__ import annotations

from collections.abc import Callable

import anywidget
import traitlets as t

FORMATS = ("svg", "png", "pdf", "json")

_SOURCE = """
function copy(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.appendChild(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done ? Promise.resolve() : Promise.reject(new Error("copy"));
}
function name(root, words) {
  for (const row of root.querySelectorAll(".widget-inline-hbox, .widget-hslider")) {
    const label = row.querySelector(".widget-label")?.textContent;
    const value = row.querySelector(".widget-readout")?.textContent;
    const handles = row.querySelectorAll(".noUi-handle");
    handles.forEach((handle, i) => {
      if (!label) return;
      const end = handles.length > 1 ? `, ${i ? words.high : words.low}` : "";
      handle.setAttribute("aria-label", label + end);
      if (value) handle.setAttribute("aria-valuetext", value);
    });
  }
  for (const list of root.querySelectorAll("select[title], textarea[title]")) {
    if (!list.closest(".lm-Widget")?.querySelector(".widget-label")?.textContent) {
      list.setAttribute("aria-label", list.title);
    }
  }
  for (const button of root.querySelectorAll(".widget-toggle-button")) {
    button.setAttribute("aria-pressed", String(button.classList.contains("mod-active")));
    if (button.title && !/\\p{L}/u.test(button.textContent)) {
      button.setAttribute("aria-label", button.title);
    }
  }
  // ipywidgets lets the value of a list's slider be edited, and does nothing with what is typed
  for (const value of root.querySelectorAll('.widget-readout[contenteditable="true"]')) {
    value.contentEditable = "false";
  }
}
function render({ model, el }) {
  el.classList.add("ledgerkit-toolbar");
  const copier = document.createElement("button");
  const format = document.createElement("select");
  const saver = document.createElement("button");
  const status = document.createElement("span");
  const linker = document.createElement("button");
  linker.className = "ledgerkit-button ledgerkit-link";
  copier.className = "ledgerkit-button ledgerkit-copy";
  saver.className = "ledgerkit-button ledgerkit-save";
  status.setAttribute("role", "status");
  for (const kind of model.get("formats")) format.add(new Option(kind.toUpperCase(), kind));
  el.append(status, linker, copier, format, saver);
  const say = (words) => {
    status.textContent = words;
    setTimeout(() => { if (status.textContent === words) status.textContent = ""; }, 4000);
  };
  const word = () => {
    const labels = model.get("labels");
    copier.textContent = labels.copy;
    linker.textContent = labels.link ?? "";
    saver.textContent = labels.save;
    format.setAttribute("aria-label", labels.format);
  };
  const update = () => {
    copier.disabled = !model.get("code");
    linker.hidden = !model.get("link");
    saver.disabled = format.disabled = !model.get("drawn");
  };
  const hand = (text) => copy(text).then(
    () => say(model.get("labels").copied), () => say(model.get("labels").uncopied));
  copier.onclick = () => hand(model.get("code"));
  // only a page of Voila reads its address
  const page = () => window.voila_finish ? location.origin + location.pathname : "";
  linker.onclick = () => hand(page() + model.get("link"));
  saver.onclick = () => model.send({ save: format.value });
  const receive = (content, buffers) => {
    if (!content.file) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(buffers, { type: content.type }));
    link.download = content.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    say(content.file);
  };
  model.on("change:labels", word);
  model.on("change:code change:drawn change:link", update);
  model.on("msg:custom", receive);
  word();
  update();
  let queued = 0, root = null;
  const opened = new Set(), met = new WeakSet();
  const topic = (details) => details.querySelector("summary")?.textContent;
  const named = () => {
    queued = 0;
    name(root, model.get("labels"));
    // a redraw brings a new block: what a reader has open stays open
    for (const block of root.querySelectorAll("details")) {
      if (!met.has(block)) block.open = opened.has(topic(block));
      met.add(block);
    }
  };
  const rename = () => { queued ||= requestAnimationFrame(named); };
  const observer = new MutationObserver(rename);
  const start = setInterval(() => {
    root = el.closest(".ledgerkit");
    if (!root) return;
    clearInterval(start);
    rename();
    observer.observe(root, { subtree: true, childList: true, characterData: true,
      attributeFilter: ["contenteditable", "title"] });
    root.addEventListener("click", rename);
    root.addEventListener("toggle", ({ target }) => {
      if (target.isConnected) opened[target.open ? "add" : "delete"](topic(target));
    }, true);
  }, 100);
  // in JupyterLab an arrow in a list would move to another cell, and "dd" would delete this one
  const keep = (event) => {
    if (!root?.contains(event.target)) return;
    const lab = event.ctrlKey || event.metaKey || event.altKey || event.key === "Escape";
    event.target.toggleAttribute("data-lm-suppress-shortcuts", !lab);
  };
  window.addEventListener("keydown", keep, true);
  return () => {
    clearInterval(start);
    observer.disconnect();
    window.removeEventListener("keydown", keep, true);
  };
}
export default { render };
"""

_TYPES = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf",
          "json": "application/json"}  # fmt: skip


class Toolbar(anywidget.AnyWidget):
    """Buttons to copy and to save.

    Parameters
    ----------
    on_save : callable
        Called with a format when the reader wants the figure.

    Examples
    --------
    >>> Toolbar(print).drawn
    False
    """

    code = t.Unicode(help="what the copy button copies").tag(sync=True)
    link = t.Unicode(help="query of an address; empty hides its button").tag(sync=True)
    drawn = t.Bool(default_value=False, help="whether there is a figure to save").tag(sync=True)
    labels = t.Dict(help="words of the buttons").tag(sync=True)
    formats = t.List(list(FORMATS), help="file formats").tag(sync=True)

    _esm = _SOURCE

    def __init__(self, on_save: Callable[[str], object]) -> None:
        super().__init__()
        self._on_save = on_save
        self.on_msg(self._pressed)

    def _pressed(self, _widget: object, content: object, _buffers: object) -> None:
        kind = content.get("save") if isinstance(content, dict) else None
        if kind in FORMATS:
            self._on_save(kind)

    def hand_over(self, name: str, content: bytes) -> None:
        """Give the page a file to save."""
        suffix = name.rpartition(".")[2]
        self.send({"file": name, "type": _TYPES[suffix]}, buffers=[content])
