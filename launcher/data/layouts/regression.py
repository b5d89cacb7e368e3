"""A text, or two, and a number to predict."""

from launcher.data.layout import LAYOUTS, Layout, Role
from launcher.data.layouts.text_label import TEXTS
from launcher.data.layouts.text_pair import SECOND

_NUMBERS = ("score", "rating", "similarity", "similarity_score", "value", "target", "labels", "stars")

LAYOUTS.register(
    "regression",
    Layout(
        name="regression",
        summary="a text (or two) and a number",
        task="classification",
        roles=(
            Role(name="text", aliases=(*TEXTS, "text1", "text_a", "sentence1", "premise")),
            Role(
                name="pair",
                aliases=tuple(name for name in SECOND if name != "sentence"),
                required=False,
                may_be_missing=True,
            ),
            Role(name="label", aliases=_NUMBERS, kind="label"),
        ),
        complete=(("text",),),
        by_name_only=True,  # the columns alone look like a text and its class
        labels="number",
    ),
)
