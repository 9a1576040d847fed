"""Numba kernels: tables of numbers in, amounts and seconds out. Nothing here knows a model."""
