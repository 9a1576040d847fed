"""Host-side formulas: (model, deployment, hardware) become a table of operations.

One short file for each attention kind, feed-forward part and link; each formula states its source
and a worked number.
"""
