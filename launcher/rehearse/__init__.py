"""Proves a whole run on CPU processes with a tiny model: every stage for real, before a GPU is rented."""
