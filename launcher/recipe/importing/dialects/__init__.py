"""One tool a file: its keys, ours beside them, and what its keys say together."""
