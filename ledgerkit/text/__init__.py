"""Every string that a reader sees, in Chinese and English, and how numbers are written.

One table per area maps a key to a template in each language. Templates have named fields and are
never glued together from fragments, because word order differs. The terms are those of the article
that the three ledgers come from; :mod:`ledgerkit.text.numbers` writes amounts.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Final, Literal, TypeAlias

from ledgerkit.errors import LedgerError

__all__ = [
    "LANGUAGES",
    "Language",
    "check_language",
    "get",
    "get_language",
    "keys",
    "set_language",
    "tables",
]

Language: TypeAlias = Literal["zh", "en"]
LANGUAGES: Final[tuple[Language, ...]] = ("zh", "en")

# A plain module value: a context variable would not reach the threads that widgets call back on.
_default: dict[str, Language] = {"language": "en"}


@cache
def tables() -> dict[str, dict[str, dict[Language, str]]]:
    """Return the tables by area: every module of this package that defines ``STRINGS``.

    Returns
    -------
    dict
        Area to key to language to template. Keys are unique over all areas.

    Examples
    --------
    >>> tables()["terms"]["ledger.ffn_mlp"]["en"]
    'FFN / MLP'
    """
    modules = {
        info.name: importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
    }
    return {area: mod.STRINGS for area, mod in modules.items() if hasattr(mod, "STRINGS")}


@cache
def _strings() -> dict[str, dict[Language, str]]:
    return {key: pair for table in tables().values() for key, pair in table.items()}


def check_language(language: str | None) -> Language:
    """Resolve a language argument.

    Parameters
    ----------
    language : str or None
        ``"zh"``, ``"en"``, or None for the default of :func:`set_language`.

    Returns
    -------
    {"zh", "en"}

    Raises
    ------
    LedgerError
        For any other language.

    Examples
    --------
    >>> check_language("zh")
    'zh'
    """
    if language is None:
        return _default["language"]
    for known in LANGUAGES:
        if language == known:
            return known
    raise LedgerError("unknown language", given=language, allowed="'zh', 'en'",
                      fix="use language='en'")  # fmt: skip


def set_language(language: str) -> None:
    """Set the language that applies wherever ``language=`` is not given.

    Parameters
    ----------
    language : {"zh", "en"}
        The new default of this process.

    Raises
    ------
    LedgerError
        For any other language.

    Examples
    --------
    >>> set_language("zh")
    >>> get("ledger.scheduling")
    '系统调度账'
    >>> set_language("en")
    """
    if language is None:  # as elsewhere for the default, which is what is set here
        raise LedgerError("a default language is needed", given=None, allowed="'zh', 'en'",
                          fix="use set_language('en')")  # fmt: skip
    _default["language"] = check_language(language)


def get_language() -> Language:
    """Return the default language, ``"en"`` until :func:`set_language` is called.

    Returns
    -------
    {"zh", "en"}

    Examples
    --------
    >>> get_language()
    'en'
    """
    return _default["language"]


def get(key: str, language: str | None = None, **fields: object) -> str:
    """Return one string, its fields filled in.

    Parameters
    ----------
    key : str
        A key of one of the tables, such as ``"ledger.attention_kv"``.
    language : {"zh", "en"}, optional
        Default: :func:`get_language`.
    **fields : object
        Values of the named fields of the template.

    Returns
    -------
    str

    Raises
    ------
    KeyError
        For a key that no table has, or a field that the template needs and was not given.
    LedgerError
        For an unknown language.

    Examples
    --------
    >>> get("fits.over", "en", amount="2.97 GB")
    'over by 2.97 GB'
    """
    template = _strings()[key][check_language(language)]
    return template.format(**fields) if fields else template


def keys() -> tuple[str, ...]:
    """Return all keys, in the order of the tables.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> "ledger.ffn_mlp" in keys()
    True
    """
    return tuple(_strings())
