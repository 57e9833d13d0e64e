"""Cross-lingual semantic discrimination: which encoder tells a true translation from a lookalike.

The task and its data: the CLSD paper (arXiv 2502.08638).
"""
