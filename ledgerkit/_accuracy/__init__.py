"""How far predictions are from published measurements: what ``python -m ledgerkit accuracy`` runs.

Rows are read, repaired, de-duplicated and excluded by rules on inputs and provenance, never on
residuals (``rows``, ``rules``); turned into deployments (``setups``); priced once (``prepared``);
predicted with host constants that never saw the model (``fit``); and scored by group (``score``).
"""
