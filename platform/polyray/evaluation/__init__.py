"""Measures, tables and plots of retrieval results."""

from polyray.evaluation.measures import DEFAULT_MEASURES, Evaluation, evaluate, parse_measures

__all__ = ["DEFAULT_MEASURES", "Evaluation", "evaluate", "parse_measures"]
