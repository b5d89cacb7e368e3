"""A text and all the classes that hold of it, which may be none."""

from launcher.data.layout import LAYOUTS, Layout, Role
from launcher.data.layouts.text_label import TEXTS

LAYOUTS.register(
    "multi_label",
    Layout(
        name="multi_label",
        summary="a text and a set of classes",
        task="classification",
        roles=(
            Role(name="text", aliases=TEXTS),
            Role(name="label", aliases=("labels", "tags", "classes", "categories", "topics"), kind="label"),
        ),
        complete=(("text",),),
        by_name_only=True,  # the columns alone look like a text and its class
        labels="set",
    ),
)
