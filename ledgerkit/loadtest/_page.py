"""Small pages of a server, with a bound on time and size: it may drip or flood."""

from __future__ import annotations

import asyncio

import httpx

__all__ = ["PageError", "fetch"]

_LONGEST = 4 << 20


class PageError(Exception):
    """A page could not be had; the text says why."""


async def fetch(client: httpx.AsyncClient, url: str, seconds: float) -> tuple[int, bytes]:
    """Status and body of a page.

    Raises
    ------
    PageError
        It did not come whole within ``seconds``, or is longer than any such page.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(seconds), client.stream("GET", url, timeout=seconds) as page:
            async for piece in page.aiter_bytes():
                body += piece
                if len(body) > _LONGEST:
                    raise PageError(f"more than {_LONGEST} bytes")
    except TimeoutError:
        raise PageError(f"not there within {seconds:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as problem:
        raise PageError(f"{type(problem).__name__}: {problem}") from problem
    return page.status_code, bytes(body)
