"""From rows to a ``Model``: storage formats filled in, equal layers gathered into groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ledgerkit.readers.quantization import Quantization
from ledgerkit.readers.rows import Architecture, Layer, MtpPlan, Row
from ledgerkit.spec.model import LayerGroup, Mtp
from ledgerkit.spec.weights import Weight

Rename = Callable[[str], str]


class Assembler:
    """Turns rows into weights under one quantization and one naming of tensors.

    Parameters
    ----------
    quantization : Quantization
        Storage formats.
    rename : callable
        Text-model tensor name → checkpoint tensor name (multimodal wrappers prefix it).
    """

    def __init__(self, quantization: Quantization, rename: Rename) -> None:
        self.quantization = quantization
        self.rename = rename
        self.formats: dict[str, str] = {}

    def _format(self, row: Row, layer: int) -> str:
        module = row.name.removesuffix(".weight").replace("{expert}", "0")
        if self.rename is not str:
            inner = "model.language_model." + module.removeprefix("model.")
            names = (module, self.rename(module), "language_model." + module, inner)
            module = "\n".join(dict.fromkeys(names))
        name = self.quantization.format_of(row, module, layer)
        return self.formats.get(name, name)

    def _weight(self, row: Row, dtype: str) -> Weight:
        return Weight(
            name=self.rename(row.name), ledger=row.ledger, account=row.account, shape=row.shape,
            copies=row.copies, use=row.use, split=row.split, dtype=dtype, routed=row.routed,
        )  # fmt: skip

    def weights(self, rows: Sequence[Row], layer: int = 0) -> tuple[Weight, ...]:
        """Return the weights of one layer, or of the model outside the layers."""
        return tuple(self._weight(row, self._format(row, layer)) for row in rows)

    def groups(self, layers: Sequence[Layer]) -> tuple[LayerGroup, ...]:
        """Gather equal layers, in the order of their first one."""
        members: dict[tuple[Layer, tuple[str, ...]], list[int]] = {}
        known: dict[tuple[int, object], tuple[Layer, tuple[str, ...]]] = {}
        for index, layer in enumerate(layers):
            same = (id(layer), self.quantization.layer_key(index))
            key = known.get(same)
            if key is None:
                key = (layer, tuple(self._format(row, index) for row in layer.rows))
                known[same] = key
            members.setdefault(key, []).append(index)
        return tuple(
            LayerGroup(
                layers=tuple(indices), attention=layer.attention, ffn=layer.ffn,
                weights=tuple(map(self._weight, layer.rows, formats)),
            )
            for (layer, formats), indices in members.items()
        )  # fmt: skip

    def mtp(self, plan: MtpPlan | None) -> Mtp | None:
        """Return the multi-token-prediction blocks."""
        if plan is None:
            return None
        first = plan.first_index
        group = LayerGroup(
            layers=tuple(range(first, first + plan.num_layers)), attention=plan.layer.attention,
            ffn=plan.layer.ffn, weights=self.weights(plan.layer.rows, first),
        )  # fmt: skip
        return Mtp(num_layers=plan.num_layers, group=group, extra=self.weights(plan.extra, first))

    def assemble(self, plan: Architecture) -> dict[str, object]:
        """Return the parts of a ``Model`` that come from rows."""
        self.formats = plan.formats
        return {
            "groups": self.groups(plan.layers),
            "globals": self.weights(plan.globals),
            "mtp": self.mtp(plan.mtp),
        }
