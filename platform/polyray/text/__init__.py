"""Text: matching keys, words, passage windows, tokenizers for them, and code switching."""
