"""From a model family's configuration to its shape: one file per way of building blocks."""
