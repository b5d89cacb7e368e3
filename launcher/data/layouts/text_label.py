"""A text and its class."""

from launcher.data.layout import LAYOUTS, Layout, Role

TEXTS = ("texts", "sentence", "utterance", "review", "content", "comment", "tweet", "document", "snippet")
LABELS = ("labels", "class", "category", "emotion", "sentiment", "target", "rating", "stars")

LAYOUTS.register(
    "text_label",
    Layout(
        name="text_label",
        summary="a text and its class",
        task="classification",
        roles=(Role(name="text", aliases=TEXTS), Role(name="label", aliases=LABELS, kind="label")),
        complete=(("text",),),
    ),
)
