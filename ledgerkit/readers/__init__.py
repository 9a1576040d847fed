"""Readers: outside formats become a ``Model``, exactly or not at all."""
