"""One fine-tuning recipe, compiled to Accelerate or DeepSpeed, on one card or many."""

__version__ = "0.1.0"
