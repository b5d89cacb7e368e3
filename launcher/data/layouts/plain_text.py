"""Running text, to be learned whole. In a txt file blank lines stand between documents."""

from launcher.data.layout import LAYOUTS, Layout, Role

LAYOUTS.register(
    "plain_text",
    Layout(
        name="plain_text",
        summary="running text",
        task="causal_lm",
        roles=(Role(name="text", aliases=("texts", "content", "document")),),
        complete=(("text",),),
        blank_separates=True,
    ),
)
