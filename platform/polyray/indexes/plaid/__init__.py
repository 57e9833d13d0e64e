"""PLAID indexes (Santhanam et al. 2022) in colbert-ai's format, built in stages on Ray."""
