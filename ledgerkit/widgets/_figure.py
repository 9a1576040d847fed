"""A chart in the page: drawn without network, newest state only, the old picture until the new one.

Altair's own Jupyter chart empties its element before it draws and keeps a listener of every chart
that it ever showed; a slider moves through hundreds.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from typing import Any

import anywidget
import traitlets as t

from ledgerkit.kernels._jit import cache_directory

_SOURCE = """
function render({ model, el }) {
  let shown = null, busy = false, wanted = 0, drawn = 0, closed = false;
  const stage = document.createElement("div");
  stage.className = "ledgerkit-figure";
  el.appendChild(stage);
  function watch(view) {
    const name = model.get("brush");
    if (!name) return;
    view.addSignalListener(name, lodashDebounce((_, value) => {
      model.set("selected", JSON.parse(JSON.stringify(value ?? {})));
      model.save_changes();
    }, 120));
  }
  async function draw() {
    wanted += 1;
    if (busy) return;
    busy = true;
    while (drawn !== wanted && !closed) {
      drawn = wanted;
      const spec = model.get("spec");
      if (!spec || !Object.keys(spec).length) { stage.replaceChildren(); continue; }
      const fresh = document.createElement("div");
      const slow = setTimeout(() => { stage.style.opacity = "0.6"; }, 300);
      try {
        const options = { renderer: "svg", actions: false };
        const result = await vegaEmbed(fresh, structuredClone(spec), options);
        if (closed) { result.finalize(); break; }
        shown?.finalize();
        shown = result;
        fresh.setAttribute("role", "img");
        fresh.setAttribute("aria-label", spec.description ?? "");
        // the words of a title are read as they are, without "title text" before them
        for (const title of fresh.querySelectorAll('[class*="role-title-"]')) {
          for (const name of ["role", "aria-roledescription", "aria-label"]) {
            title.removeAttribute(name);
          }
        }
        // an empty brush is no picture of its own
        for (const mark of fresh.querySelectorAll('[class*="brush_brush"]')) {
          mark.removeAttribute("role");
          mark.setAttribute("aria-hidden", "true");
        }
        stage.replaceChildren(fresh);
        watch(result.view);
      } catch (error) {
        model.set("problem", String(error?.message ?? error));
        model.save_changes();
      } finally {
        clearTimeout(slow);
        stage.style.opacity = "";
      }
    }
    busy = false;
  }
  model.on("change:spec", draw);
  draw();
  return () => { closed = true; model.off("change:spec", draw); shown?.finalize(); };
}
export default { render };
"""

_LOCK = threading.Lock()


@cache
def renderer() -> str:
    """Return the module with its renderer: the page gets it with the widget, not from a network.

    Bundling takes two seconds, so the result is kept beside the compiled kernels.
    """
    version = metadata.version("vl-convert-python")
    digest = hashlib.sha256(f"{version}\0{_SOURCE}".encode()).hexdigest()[:16]
    directory = cache_directory()
    kept = directory / f"figure-{digest}.js" if directory else None
    with _LOCK:
        if kept is not None and kept.is_file():
            return kept.read_text(encoding="utf-8")
        import vl_convert

        bundle = str(vl_convert.javascript_bundle(_SOURCE))
        if kept is not None:
            with suppress(OSError):  # a full disk costs time, not the figure
                draft = kept.with_suffix(f".{os.getpid()}")
                draft.write_text(bundle, encoding="utf-8")
                draft.replace(kept)
    return bundle


class Figure(anywidget.AnyWidget):
    """Shows one Vega-Lite specification and follows its changes.

    Parameters
    ----------
    brush : str
        Name of an interval selection of the charts; its value goes to ``selected``.

    Examples
    --------
    >>> Figure().spec
    {}
    """

    spec = t.Dict(help="Vega-Lite specification; empty shows nothing").tag(sync=True)
    brush = t.Unicode(help="name of an interval selection, or empty").tag(sync=True)
    selected = t.Dict(help="brushed field to [low, high]").tag(sync=True)
    problem = t.Unicode(help="what the renderer said when it failed").tag(sync=True)

    def __init__(self, *, brush: str = "") -> None:
        super().__init__(_esm=renderer(), brush=brush)

    def show(self, chart: Any) -> None:
        """Show a chart or a specification; None shows nothing."""
        given = chart.to_dict() if hasattr(chart, "to_dict") else chart
        spec = _lean(given) if given else {}
        if self.brush and spec:
            first, *others = spec["layer"]
            select = {"type": "interval", "encodings": ["x", "y"]}
            brush = {"name": self.brush, "select": select}
            spec["layer"] = [{**first, "params": [brush]}, *others]
        self.selected = {}
        self.spec = spec


def _lean(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification without what only files need."""
    kept = {key: value for key, value in spec.get("usermeta", {}).items() if key != "ledgerkit"}
    return {**spec, "usermeta": kept}
