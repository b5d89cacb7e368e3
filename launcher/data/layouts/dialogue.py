"""Utterances of dialogues with their class, as in MELD (Dialogue_ID) and EmoryNLP (Scene_ID).

Rows belong together by the dialogue's id and stand in the order of their utterance ids, never by where
they are in the file: rows are missing from both data sets.
"""

from launcher.data.layout import LAYOUTS, Layout, Role

LAYOUTS.register(
    "dialogue",
    Layout(
        name="dialogue",
        summary="utterances of dialogues: text, speaker, class, and the dialogue's id",
        task="classification",
        roles=(
            Role(name="text", aliases=("utterance", "sentence")),
            Role(name="speaker", aliases=("speakers", "speaker_id", "author"), required=False),
            # Not `sentiment`: MELD has it beside the emotion, which is what the set is known for.
            Role(name="label", aliases=("emotion", "act", "dialogue_act", "intent"), kind="label"),
            Role(
                name="dialogue",
                aliases=("dialogue_id", "dialog_id", "conversation_id", "scene_id"),
                kind="key",
            ),
            Role(name="position", aliases=("utterance_id", "turn_id", "turn"), kind="key", required=False),
        ),
        complete=(("text",),),
    ),
)
