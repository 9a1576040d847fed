"""The built-in catalogue, and what other distributions add to it."""

from ledgerkit.catalog.models import load_model, models

__all__ = ["load_model", "models"]
