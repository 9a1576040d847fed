"""Strict access to the fields of a config.

A family asks for its fields by name and type; ``finish`` then refuses every field that nobody asked
for and that is not known to change no cost. So a new architecture field can never be overlooked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ledgerkit.errors import ConfigError, UnsupportedArchitectureError
from ledgerkit.readers.irrelevant import NEUTRAL, reason_to_ignore
from ledgerkit.readers.record import Record

MAX_SIZE: Final = 1 << 24
"""Largest plausible width, head or expert count."""
MAX_LAYERS: Final = 4096
MAX_VOCAB: Final = 1 << 27
MAX_CONTEXT: Final = 1 << 40
"""Some configs state 10^12 for "no limit"."""


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class Fields:
    """The fields of one (sub-)config, each to be read once and by type.

    Parameters
    ----------
    values : Mapping
        The config.
    record : Record
        Where each use is noted.
    defaults : Mapping, optional
        Class defaults of the model type, for fields that the config does not state.
    path : str, optional
        Where this config sits in the whole one, e.g. ``text_config.``.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        record: Record,
        defaults: Mapping[str, Any] | None = None,
        path: str = "",
    ) -> None:
        self.values = values
        self.record = record
        self.defaults: Mapping[str, Any] = defaults or {}
        self.path = path
        self._seen: set[str] = set()
        self._used: set[str] = set()

    # -- finding a value ---------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether the config states the field with a value other than null."""
        return self.values.get(name) is not None

    def seen(self, name: str) -> bool:
        """Whether somebody asked for the field, or said why it does not matter."""
        return name in self._seen

    def _find(self, names: tuple[str, ...]) -> tuple[str, Any]:
        """Return the first stated name and its value; they must agree."""
        self._seen.update(names)
        self._used.update(names)
        stated = [name for name in names if name in self.values]
        chosen = next((name for name in stated if self.values[name] is not None), None)
        if chosen is None:
            return (stated[0], None) if stated else (names[0], MISSING)
        for other in stated:
            value = self.values[other]
            if other == chosen:
                continue  # NaN is not equal to itself, and is refused by its kind
            if value is not None and value != self.values[chosen]:
                msg = f"{self.path}{chosen} and {self.path}{other} contradict each other"
                raise ConfigError(msg, given=(self.values[chosen], value),
                                  allowed="one value under both names",
                                  fix=f"leave one of them out, {chosen} is enough")  # fmt: skip
        return chosen, self.values[chosen]

    def raw(self, *names: str, default: Any = MISSING, rule: str = "") -> tuple[str, Any]:
        """Return the name and the unchecked value of a field, and note its use."""
        name, value = self._find(names)
        origin = "config"
        if value is MISSING:
            for known in names:
                if known in self.defaults:
                    value, origin = self.defaults[known], "class default"
                    break
        if (value is None or value is MISSING) and default is not MISSING:
            value, origin = default, "derived" if rule else "class default"
        if value is MISSING:
            msg = f"the config has no {self.path}{name}"
            raise ConfigError(
                msg, given=", ".join(str(known) for known in self.values if str(known)[:1] != "_")
                or "nothing",
                allowed=" or ".join(names),
                fix=f"add {name}: without it the size of the model is unknown",
            )  # fmt: skip
        self.record.use(self.path + name, value, origin, rule if origin == "derived" else "")  # type: ignore[arg-type]
        return name, value

    # -- typed values ------------------------------------------------------------------------

    def size(
        self, *names: str, default: Any = MISSING, rule: str = "", most: int = MAX_SIZE
    ) -> int:
        """Return a whole number of 1 or more."""
        name, value = self.raw(*names, default=default, rule=rule)
        return self._whole(name, value, 1, most)

    def count(
        self, *names: str, default: Any = MISSING, rule: str = "", most: int = MAX_SIZE
    ) -> int:
        """Return a whole number of 0 or more; null counts as 0."""
        name, value = self.raw(*names, default=default, rule=rule)
        return 0 if value is None else self._whole(name, value, 0, most)

    def optional(
        self, *names: str, default: Any = MISSING, rule: str = "", most: int = MAX_CONTEXT
    ) -> int | None:
        """Return a whole number of 1 or more, or None for null."""
        name, value = self.raw(*names, default=default, rule=rule)
        return None if value is None else self._whole(name, value, 1, most)

    def flag(self, *names: str, default: Any = MISSING, rule: str = "") -> bool:
        """Return true or false; null counts as false."""
        name, value = self.raw(*names, default=default, rule=rule)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise ConfigError(f"{self.path}{name} must be true or false", given=value,
                              allowed="true, false", fix=f"correct {name}")  # fmt: skip
        return value

    def number(self, *names: str, default: Any = MISSING, rule: str = "") -> float:
        """Return a finite number above 0."""
        name, value = self.raw(*names, default=default, rule=rule)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e18:
            raise ConfigError(f"{self.path}{name} must be a number above 0", given=value,
                              allowed="more than 0 and less than 1e18",
                              fix=f"correct {name}")  # fmt: skip
        return float(value)

    def text(
        self, *names: str, allowed: Collection[str], default: Any = MISSING, rule: str = ""
    ) -> str:
        """Return one of the allowed words; another one is an architecture that is not known."""
        name, value = self.raw(*names, default=default, rule=rule)
        if not isinstance(value, str):
            raise ConfigError(f"{self.path}{name} must be a word", given=value,
                              allowed=", ".join(sorted(allowed)),
                              fix=f"correct {name}")  # fmt: skip
        if value not in allowed:
            raise UnsupportedArchitectureError(
                f"{self.path}{name} has a value that no reader knows",
                given=value,
                allowed=", ".join(sorted(allowed)),
                fix=f"correct {name}, if it is a slip; else this architecture has no reader",
            )
        return value

    def integers(
        self, name: str, length: int | None = None, least: int = 0, default: Any = MISSING
    ) -> list[int] | None:
        """Return a list of whole numbers, of a given length; None for null or an absent list."""
        items = self._list(name, length, default)
        if items is None:
            return None
        return [self._whole(f"{name}[{i}]", item, least, MAX_CONTEXT)
                for i, item in enumerate(items)]  # fmt: skip

    def words(
        self,
        name: str,
        length: int | None = None,
        *,
        allowed: Collection[str],
        default: Any = MISSING,
    ) -> list[str] | None:
        """Return a list of allowed words, of a given length; None for null or an absent list."""
        items = self._list(name, length, default)
        if items is None:
            return None
        for item in items:
            if not isinstance(item, str) or item not in allowed:
                kind = UnsupportedArchitectureError if isinstance(item, str) else ConfigError
                raise kind(f"{self.path}{name} has an entry that no reader knows", given=item,
                           allowed=", ".join(sorted(allowed)),
                           fix=f"correct {name}")  # fmt: skip
        return list(items)

    def _list(self, name: str, length: int | None, default: Any) -> Sequence[Any] | None:
        _, value = self.raw(name, default=default)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"{self.path}{name} must be a list", given=value,
                              allowed="a list", fix=f"correct {name}")  # fmt: skip
        if length is not None and len(value) != length:
            raise ConfigError(
                f"{self.path}{name} must have one entry for each layer",
                given=f"{len(value)} entries",
                allowed=f"{length} entries",
                fix=f"correct {name}, or the number of layers",
            )
        return value

    def _whole(self, name: str, value: Any, least: int, most: int) -> int:
        allowed = f"a whole number from {least} to {most}"
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(f"{self.path}{name} must be a whole number", given=value,
                              allowed=allowed, fix=f"correct {name}")  # fmt: skip
        if not least <= value <= most:
            raise ConfigError(f"{self.path}{name} is out of range", given=value, allowed=allowed,
                              fix=f"correct {name}")  # fmt: skip
        return value

    # -- parts, and fields that are not sizes ------------------------------------------------

    def section(self, name: str, defaults: Mapping[str, Any] | None = None) -> Fields | None:
        """Return a sub-config as fields of its own; None for null or an absent one."""
        self._seen.add(name)
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ConfigError(f"{self.path}{name} must be a mapping", given=value,
                              allowed="names and values, or null",
                              fix=f"correct {name}")  # fmt: skip
        return Fields(value, self.record, defaults, f"{self.path}{name}.")

    def only(self, name: str, *neutral: Any, why: str) -> None:
        """Refuse a field whose value is not one of those that the family implements."""
        self._seen.add(name)
        if name not in self.values:
            return
        value = self.values[name]
        if value is not None and not any(value == ok and type(value) is type(ok) for ok in neutral):
            raise UnsupportedArchitectureError(
                f"{self.path}{name}: {why}", given=value,
                allowed=", ".join(repr(ok) for ok in neutral) or "null",
                fix=f"correct {name}, if it is a slip; else this architecture has no reader",
            )  # fmt: skip
        self.record.ignore(self.path + name, value, "neutral")

    def mark(self, *names: str) -> None:
        """Note that somebody else reads these fields."""
        self._seen.update(names)

    def ignore(self, reason: str, *names: str) -> None:
        """Note fields that change no cost here; those that were read keep their entry."""
        for name in names:
            self._seen.add(name)
            if name in self.values and name not in self._used:
                self.record.ignore(self.path + name, self.values[name], reason)

    def finish(self) -> None:
        """Refuse every field that was neither read nor is known to change no cost.

        Raises
        ------
        UnsupportedArchitectureError
            Names all such fields.
        """
        unknown = {}
        for name, value in self.values.items():
            if name in self._seen:
                continue
            if name in NEUTRAL:
                self.only(name, *NEUTRAL[name], why="no reader handles this value")
                continue
            reason = reason_to_ignore(name)
            if reason is None and value is None:
                reason = "null"
            if reason is None:
                unknown[name] = value
            else:
                self.record.ignore(self.path + str(name), value, reason)
        if unknown:
            names = ", ".join(f"{self.path}{name}" for name in unknown)
            raise UnsupportedArchitectureError(
                f"the reader of this model type does not know the field(s) {names}, and they may "
                "change what the model costs", given=unknown,
                allowed="fields that the reader knows",
                fix="remove a field only if you are certain that it changes no size",
            )  # fmt: skip
