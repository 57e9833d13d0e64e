"""Ratios of polyray's stages to the best other way of doing the same; ``python -m benchmarks``."""
