"""What a reader did with each field: the raw material of ``lk.read_config_report``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ledgerkit.text import get

Origin = Literal["config", "class default", "derived", "replaced"]


@dataclass(frozen=True, slots=True)
class FieldUse:
    """A field that shaped the model."""

    path: str
    """Dotted path in the config."""
    value: Any
    origin: Origin
    """``config``: stated; ``class default``: the model type's own default; ``derived``: from other
    fields by the rule of the model type; ``replaced``: given to ``Model.replace``."""
    rule: str = ""
    """How a derived value came about."""


@dataclass(frozen=True, slots=True)
class FieldIgnored:
    """A field that was seen and left out, because it changes no cost."""

    path: str
    value: Any
    reason: str
    """Why: a key of ``reading.reason.*`` among the strings, with spaces."""


@dataclass(slots=True)
class Record:
    """Everything that one reading did."""

    used: list[FieldUse] = field(default_factory=list)
    ignored: list[FieldIgnored] = field(default_factory=list)
    assumptions: list[tuple[str, tuple[tuple[str, Any], ...]]] = field(default_factory=list)
    """Key of a note, and its values."""
    replaced: frozenset[str] = frozenset()

    def use(self, path: str, value: Any, origin: Origin, rule: str = "") -> None:
        """Note a field that shaped the model."""
        if origin == "config" and path.rpartition(".")[2] in self.replaced:
            origin = "replaced"
        self.used.append(FieldUse(path, value, origin, rule))

    def ignore(self, path: str, value: Any, reason: str) -> None:
        """Note a field that changes no cost."""
        self.ignored.append(FieldIgnored(path, value, reason))

    def assume(self, key: str, **values: Any) -> None:
        """Note an assumption or a remark, once; ``key`` is one of ``reading.note.*``."""
        note = (key, tuple(values.items()))
        if note not in self.assumptions:
            self.assumptions.append(note)

    def notes(self, language: str | None = None) -> tuple[str, ...]:
        """Return the assumptions and remarks in words."""
        return tuple(
            get(f"reading.note.{key}", language, **dict(values)) for key, values in self.assumptions
        )
