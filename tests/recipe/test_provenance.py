"""Origins and raw values as they stand in messages."""

from pathlib import Path

from launcher.recipe.provenance import Leaf, Origin, as_typed, shown


def test_an_origin_tells_its_story_in_one_line() -> None:
    assert str(Origin(kind="parent", file="/x/a.yaml", line=3)) == "parent  /x/a.yaml:3"
    assert str(Origin(kind="derived", note="because")) == "derived  (because)"
    assert Origin(kind="command line").place() == "command line"


def test_paths_below_the_working_directory_are_short() -> None:
    assert shown(Path.cwd() / "a" / "b.yaml") == "a/b.yaml"
    assert shown("/elsewhere/b.yaml") == "/elsewhere/b.yaml"


def test_values_are_shown_as_typed_and_long_ones_cut() -> None:
    assert as_typed(["a", {"b": "1e5"}]) == "[a, {b: 1e5}]"
    assert len(as_typed("x" * 10_000)) < 210
    leaf = Leaf(path=("a", "b"), value=1, raw="1", origin=Origin(kind="default"))
    assert (leaf.key, leaf.typed) == ("a.b", "1")
