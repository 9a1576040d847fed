"""How long a load test waits, and how often it tries again."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from ledgerkit.errors import LoadTestError

__all__ = ["Limits"]

_MOST_RETRIES = 100


@dataclass(frozen=True)
class Limits:
    """How long to wait, and how often to try again.

    Attributes
    ----------
    connect_s : float
        For a connection.
    first_token_s : float
        For the first token (long prompts wait in a queue).
    stall_s : float
        For the next piece of a stream that has begun.
    request_s : float
        For a whole request, whatever it does.
    retries : int
        Further attempts of a request that has not begun to answer (refused, 429, 5xx).
    longest_wait_s : float
        Most that a Retry-After may ask for.

    Examples
    --------
    >>> Limits(first_token_s=1800).stall_s
    60.0
    """

    connect_s: float = 10.0
    first_token_s: float = 300.0
    stall_s: float = 60.0
    request_s: float = 900.0
    retries: int = 2
    longest_wait_s: float = 30.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "retries":
                if type(value) is not int or not 0 <= value <= _MOST_RETRIES:
                    raise LoadTestError("retries must be a whole number", given=value,
                                        allowed=f"0 to {_MOST_RETRIES}")  # fmt: skip
            elif (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not 1e-3 <= value < math.inf
            ):
                raise LoadTestError(
                    f"{field.name} must be seconds, finite and above 0",
                    given=value,
                    allowed="a finite number of seconds above 0",
                )
