"""Indexes on disk; each folder carries a manifest."""
