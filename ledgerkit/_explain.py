"""Expressions that a reader can redo on paper, and the safe evaluator that redoes them.

An expression is arithmetic over named values, with a few counting functions. It is parsed, never
executed: anything but numbers, names, ``+ - * / //``, comparisons of nothing, calls of the listed
functions and ``sum(... for n, p in chunks(...))`` is refused.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ledgerkit.errors import LedgerError

Value = float | int | tuple[float, ...]


def pairs(n: float, p: float, window: float = math.inf, chunk: float = 0.0) -> float:
    """(query, key) pairs of n new tokens after p cached ones.

    Examples
    --------
    >>> pairs(8192, 0), pairs(8192, 0, 1024)
    (33558528.0, 7864832.0)
    """
    if chunk:

        def below(x: float) -> float:
            whole, rest = divmod(x, chunk)
            return whole * chunk * (chunk + 1) / 2 + rest * (rest + 1) / 2

        return below(p + n) - below(p)
    m = min(max(window - p, 0.0), n)
    rest = (n - m) * window if n > m else 0.0
    return m * p + m * (m + 1) / 2 + rest


def seen(
    n: float, p: float, window: float = math.inf, topk: float = math.inf, chunk: float = 0.0
) -> float:
    """Tokens of one sequence that a step reads from the cache."""
    if chunk:
        return p % chunk + n
    return min(min(p, window - 1) + n, n * topk)


def distinct(tokens: float, experts: float, miss: float) -> float:
    """Expected experts that independent tokens hit: ``experts · (1 − miss^tokens)``.

    Examples
    --------
    >>> round(distinct(32, 256, 1 - 8 / 256), 1)
    163.3
    """
    hit: float = 1.0 - miss**tokens
    return experts * hit


def chunks(prompt: int, cached: int, size: int) -> list[tuple[float, float]]:
    """(new, cached) tokens of each prefill chunk."""
    return [
        (float(min(size, prompt - start)), float(start)) for start in range(cached, prompt, size)
    ]


def if_compute_binds(compute_s: float, memory_s: float) -> float:
    """Seconds of an operation if its arithmetic takes longer than its bytes, else 0."""
    return compute_s if compute_s >= memory_s else 0.0


def if_memory_binds(compute_s: float, memory_s: float) -> float:
    """Seconds of an operation if its bytes take longer than its arithmetic, else 0."""
    return memory_s if compute_s < memory_s else 0.0


def quicker_bytes(one_shot: float, two_shot: float, extra_s: float, s_per_byte: float) -> float:
    """Bytes of the quicker form of an all-reduce."""
    return one_shot if one_shot * s_per_byte <= extra_s + two_shot * s_per_byte else two_shot


def kept(context: float, limit: float, ratio: float) -> float:
    """Cache entries of one sequence at this context."""
    return min(context, limit) // ratio


def fill(context: float, block: float) -> float:
    """Tokens by which the last page of a sequence is rounded up."""
    return -context % block


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        pairs, seen, distinct, min, max, if_compute_binds, if_memory_binds, quicker_bytes,
        kept, fill, math.floor, math.ceil, math.sqrt, math.log, math.comb,
    )
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}  # fmt: skip


def evaluate(expression: str, values: Mapping[str, Value]) -> float:
    """Compute an expression from its values.

    Parameters
    ----------
    expression : str
        As in the ``expression`` column of ``Ledger.entries``.
    values : mapping
        Numbers by name, as in ``Explanation.values``.

    Raises
    ------
    LedgerError
        The expression holds anything but arithmetic and the listed functions.

    Examples
    --------
    >>> evaluate("layers * flop_per_pair * pairs(1, p)", {"layers": 2, "flop_per_pair": 3, "p": 9})
    60.0
    """
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise LedgerError("not an expression", given=expression) from error
    return float(_value(tree.body, dict(values)))


def _value(node: ast.expr, values: dict[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, values)
        case ast.Call(func=ast.Name(id="sum"), args=[ast.GeneratorExp() as generator], keywords=[]):
            return _sum(generator, values)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(arg, values) for arg in args))
    raise LedgerError("this part of an expression is not arithmetic", given=ast.unparse(node))


def _sum(generator: ast.GeneratorExp, values: dict[str, Any]) -> float:
    match generator.generators:
        case [
            ast.comprehension(
                target=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]),
                iter=ast.Call(func=ast.Name(id="chunks"), args=args, keywords=[]),
                ifs=[],
            )
        ]:
            items = chunks(*(int(_value(arg, values)) for arg in args))
            terms = [_value(generator.elt, {**values, first: n, second: p}) for n, p in items]
            return float(sum(terms))
        case [ast.comprehension(target=ast.Name(id=name), iter=ast.Name(id=many), ifs=[])]:
            return float(sum(_value(generator.elt, {**values, name: v}) for v in values[many]))
    raise LedgerError("a sum runs over chunks(...) or over a listed value",
                      given=ast.unparse(generator))  # fmt: skip
