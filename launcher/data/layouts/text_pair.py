"""Two texts and the class of how they relate (entailment, paraphrase, answer to a question)."""

from launcher.data.layout import LAYOUTS, Layout, Role

FIRST = ("text1", "text_a", "sentence1", "premise", "question1", "query", "question")
SECOND = ("text2", "text_b", "sentence2", "hypothesis", "question2", "passage", "text_pair", "sentence")
LABELS = ("labels", "gold_label", "class", "category", "is_duplicate", "target")

LAYOUTS.register(
    "text_pair",
    Layout(
        name="text_pair",
        summary="two texts and the class of the pair",
        task="classification",
        roles=(
            Role(name="text", aliases=FIRST),
            Role(name="pair", aliases=SECOND),
            Role(name="label", aliases=LABELS, kind="label"),
        ),
        complete=(("text",), ("pair",)),
    ),
)
