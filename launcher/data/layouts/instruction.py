"""An instruction, an input that may be empty, and the answer (Stanford Alpaca's columns)."""

from launcher.data.layout import LAYOUTS, Layout, Role

LAYOUTS.register(
    "instruction",
    Layout(
        name="instruction",
        summary="instruction, optional input, and output",
        task="causal_lm",
        roles=(
            Role(name="instruction"),
            Role(name="input", aliases=("context",), required=False),
            Role(name="output", aliases=("response", "answer")),
        ),
        complete=(("instruction", "input"), ("output",)),
    ),
)
