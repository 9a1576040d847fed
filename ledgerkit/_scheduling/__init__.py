"""Scheduling mechanisms on the cost table: steps that mix, verify or draft."""
