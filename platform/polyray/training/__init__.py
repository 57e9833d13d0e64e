"""Training of late-interaction models: examples, data recipes, teacher, loop, launch."""
