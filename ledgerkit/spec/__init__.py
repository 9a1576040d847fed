"""Frozen descriptions: model, hardware, deployment, workload."""
