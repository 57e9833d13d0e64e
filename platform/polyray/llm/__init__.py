"""LLM work: a batch engine that never pays twice, prompts, and parsers of what models write."""
