"""The static explorer page: states computed ahead, three charts, one file without network."""

from __future__ import annotations

from ledgerkit._commands.explore.page import write_page

__all__ = ["write_page"]
