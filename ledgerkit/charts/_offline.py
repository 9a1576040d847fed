"""How a figure shows itself in a notebook: as an SVG, which needs no network.

Altair's default renderer loads its scripts from a content network and stays blank without one.
A renderer that the user enables takes precedence.
"""

from __future__ import annotations

from typing import Any

import altair as alt

__all__ = ["OfflineDisplay", "offline"]


class OfflineDisplay:
    """Mixin before an Altair chart class: an SVG where Altair's default renderer is active."""

    def _repr_mimebundle_(self, *arguments: Any, **options: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*arguments, **options)  # type: ignore[misc]
        from ledgerkit.charts._save import svg_of

        return {"image/svg+xml": svg_of(self), "text/plain": repr(self)}


class _Layers(OfflineDisplay, alt.LayerChart):
    pass


class _Facets(OfflineDisplay, alt.FacetChart):
    pass


class _Columns(OfflineDisplay, alt.HConcatChart):
    pass


class _Rows(OfflineDisplay, alt.VConcatChart):
    pass


class _Single(OfflineDisplay, alt.Chart):
    pass


_KINDS: tuple[tuple[type[Any], type[Any]], ...] = (
    (alt.FacetChart, _Facets), (alt.HConcatChart, _Columns), (alt.VConcatChart, _Rows),
    (alt.Chart, _Single),
)  # fmt: skip


def offline(chart: alt.TopLevelMixin) -> alt.TopLevelMixin:
    """Return the same chart, shown as an SVG in notebooks.

    Parameters
    ----------
    chart : altair layer, facet, concatenation or single chart
        A finished chart.

    Returns
    -------
    altair chart

    Examples
    --------
    >>> dots = alt.Chart(alt.Data(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    >>> sorted(offline(dots + dots)._repr_mimebundle_())
    ['image/svg+xml', 'text/plain']
    """
    kind: Any = next((mine for its, mine in _KINDS if isinstance(chart, its)), _Layers)
    made: Any = kind.__new__(kind)
    vars(made).update(vars(chart))
    return made  # type: ignore[no-any-return]
