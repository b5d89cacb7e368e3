"""A prompt and what follows it, joined as they are."""

from launcher.data.layout import LAYOUTS, Layout, Role

LAYOUTS.register(
    "prompt_completion",
    Layout(
        name="prompt_completion",
        summary="a prompt and its completion",
        task="causal_lm",
        roles=(Role(name="prompt"), Role(name="completion")),
        complete=(("completion",),),
    ),
)
