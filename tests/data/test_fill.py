"""Placeholders."""

from launcher.data.fill import Filler


def test_known_placeholders_are_filled_with_and_without_spaces():
    filler = Filler({"name": "Ada", "author": "us"})
    assert filler("I am {{name}} by {{ author }}.") == "I am Ada by us."
    assert filler.notices() == ()


def test_value_is_not_filled_again():
    assert Filler({"a": "{{b}}", "b": "x"})("{{a}}") == "{{b}}"


def test_what_nobody_filled_stays_and_is_told_once_with_its_count():
    filler = Filler({})
    assert filler("{{name}} {{name}}") == "{{name}} {{name}}"
    assert filler.notices() == (
        "{{name}} stands unfilled 2 times in the texts; to fill it: data.fill.name=TEXT",
    )


def test_value_that_no_text_asks_for_is_told():
    filler = Filler({"nmae": "Ada"})
    filler("no placeholder { {x} }")
    assert filler.notices() == ("data.fill.nmae has no effect: no text holds {{nmae}}",)
