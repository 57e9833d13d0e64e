"""Mixed-query retrieval: MonoIR, CLIR and MQIR over one collection (the MiLQ study)."""
