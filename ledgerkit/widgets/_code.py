"""Python as a reader would write it: calls with short lines, values as literals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from pprint import pformat
from textwrap import indent
from typing import Any

from ledgerkit.spec.deployment import Deployment, Workload
from ledgerkit.spec.model import Model

WIDTH = 88


def call(function: str, arguments: Iterable[str]) -> str:
    """Write a call on one line, or one argument a line where it would be too long.

    Parameters
    ----------
    function : str
        Dotted name.
    arguments : iterable of str
        Source of each argument.

    Examples
    --------
    >>> call("lk.load_model", ["'gemma-3-27b'"])
    "lk.load_model('gemma-3-27b')"
    """
    given = list(arguments)
    line = f"{function}({', '.join(given)})"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    body = "".join(f"{one},\n" for one in given)
    return f"{function}(\n{indent(body, '    ')})"


def changed(value: Any, default: Any, names: Iterable[str]) -> list[str]:
    """Arguments that differ from the defaults.

    Examples
    --------
    >>> changed(Deployment(tp=8), Deployment(), ["tp", "pp"])
    ['tp=8']
    """
    return [
        f"{name}={getattr(value, name)!r}"
        for name in names
        if getattr(value, name) != getattr(default, name)
    ]


def deployment_code(deployment: Deployment) -> str:
    """Source of a deployment without its defaults.

    Examples
    --------
    >>> deployment_code(Deployment(tp=8, kv_dtype="fp8"))
    "lk.Deployment(kv_dtype='fp8', tp=8)"
    """
    names = type(deployment).model_fields
    return call("lk.Deployment", changed(deployment, Deployment(), names))


def workload_code(workload: Workload) -> str:
    """Source of a workload.

    Examples
    --------
    >>> workload_code(Workload(prompt_tokens=8192, output_tokens=512, concurrency=32))
    'lk.Workload(prompt_tokens=8192, output_tokens=512, concurrency=32)'
    """
    given = [
        f"{name}={getattr(workload, name)!r}"
        for name in ("prompt_tokens", "output_tokens", "concurrency")
    ]
    if workload.cached_tokens:
        given.append(f"cached_tokens={workload.cached_tokens!r}")
    return call("lk.Workload", given)


def model_code(reference: Any) -> str:
    """Source of what names a model: a slug, a path, a config, or the model itself.

    Examples
    --------
    >>> model_code("deepseek-v3")
    "'deepseek-v3'"
    """
    if isinstance(reference, Model):
        return f"lk.Model.model_validate_json({reference.model_dump_json()!r})"
    if isinstance(reference, Mapping):
        return pformat(dict(reference), width=WIDTH - 8, sort_dicts=False)
    return repr(str(reference) if isinstance(reference, Path) else reference)
