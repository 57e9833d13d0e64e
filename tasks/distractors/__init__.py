"""Distractors for parallel sentences: by rule or by an LLM, checked, as a CLSD data set.

The task that they are for: the CLSD paper (arXiv 2502.08638); measured by :mod:`tasks.clsd`.
"""
