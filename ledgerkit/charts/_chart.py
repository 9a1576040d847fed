"""The chart that carries a specification, apart because loading Altair takes a second or two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from ledgerkit.charts._offline import OfflineDisplay
from ledgerkit.charts._spec import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["LedgerChart"]


class LedgerChart(OfflineDisplay, alt.LayerChart):
    """An Altair layer chart whose layers are finished Vega-Lite dicts.

    Altair's own layering copies and validates each layer, which takes 0.2 to 0.5 s for twenty of
    them; a widget redraws in a tenth of that. The tests validate the specification against the
    schema instead. Like any chart with its own configuration it cannot be put into a
    concatenation.

    Parameters
    ----------
    **properties : object
        Top-level Vega-Lite properties; ``layer`` is a list of dicts.

    Examples
    --------
    >>> LedgerChart(layer=[], width=10, height=10).to_dict()["width"]
    10
    """

    def __init__(self, **properties: Any) -> None:
        properties.setdefault("data", alt.Undefined)
        properties.setdefault("params", alt.Undefined)
        alt.SchemaBase.__init__(self, **properties)

    def to_dict(
        self,
        validate: bool = True,  # noqa: ARG002, FBT001, FBT002 - Altair's signature
        *,
        format: str = "vega-lite",  # noqa: A002 - Altair's signature
        ignore: Sequence[str] | None = None,
        context: Mapping[str, Any] | None = None,  # noqa: ARG002 - Altair's signature
    ) -> dict[str, Any]:
        """Return the specification as a dict.

        Parameters
        ----------
        validate : bool
            Taken for compatibility; the layers are not validated again.
        format : {"vega-lite", "vega"}
            ``"vega"`` goes through Altair's compiler.
        ignore : sequence of str, optional
            Properties to leave out.
        context : mapping, optional
            Taken for compatibility.

        Returns
        -------
        dict

        Examples
        --------
        >>> sorted(LedgerChart(layer=[]).to_dict())
        ['$schema', 'layer']
        """
        left_out = set(ignore or ())
        spec: dict[str, Any] = {"$schema": SCHEMA}
        spec |= {
            key: value.to_dict() if isinstance(value, alt.SchemaBase) else value
            for key, value in self._kwds.items()
            if value is not alt.Undefined and key not in left_out
        }
        if format == "vega":
            compiler = alt.vegalite_compilers.get()
            if compiler is not None:
                return compiler(spec)
        return spec
