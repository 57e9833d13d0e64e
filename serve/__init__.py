"""The live endpoint: search over a config's systems by HTTP."""
