"""Encoders, and where their weights come from."""
