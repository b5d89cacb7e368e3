"""What a person may type behind run.py, from every starter."""

import pytest

from launcher.errors import BadValue, Conflict, UnknownSetting
from launcher.process.arguments import HelpWanted, parse


def test_nothing_typed_is_quickstart_and_says_that_nothing_was_typed() -> None:
    arguments = parse([])
    assert (arguments.recipe, arguments.recipe_was_given) == ("quickstart", False)


def test_every_option_is_read() -> None:
    arguments = parse(
        [
            "--recipe",
            "r.yaml",
            "--ds",
            "d.json",
            "--backend",
            "zero2",
            "--name",
            "n",
            "--new",
            "--plan",
            "p.json",
            "--output-dir",
            "o",
        ]
    )
    assert (arguments.recipe, arguments.ds, arguments.backend) == ("r.yaml", "d.json", "zero2")
    assert (arguments.name, arguments.new, arguments.plan, arguments.output_dir) == ("n", True, "p.json", "o")


@pytest.mark.parametrize(
    "typed", [["learning_rate=1e-5"], ["--learning_rate", "1e-5"], ["--learning-rate=1e-5"]]
)
def test_three_spellings_of_an_override_are_the_same(typed: list[str]) -> None:
    assert parse(typed).overrides == ("learning_rate=1e-5",)


def test_overrides_keep_their_order_dots_and_equal_signs() -> None:
    assert parse(["data.fill.a=b=c", "--seed", "-1"]).overrides == ("data.fill.a=b=c", "seed=-1")


@pytest.mark.parametrize("word", ["--local_rank=1", "--local-rank=1", "--local_rank 1", "--local-rank 1"])
@pytest.mark.parametrize("at_the_end", [False, True])
def test_b058_local_rank_is_dropped_in_every_spelling_and_place(word: str, at_the_end: bool) -> None:
    rest = ["--recipe", "r", "seed=1"]
    argv = rest + word.split() if at_the_end else word.split() + rest
    assert parse(argv) == parse(rest)


@pytest.mark.parametrize(
    ("typed", "resume"),
    [("--resume", "auto"), ("--resume auto", "auto"), ("--resume a/b", "a/b"), ("--resume=x=y", "x=y")],
)
def test_resume_takes_a_path_or_means_auto(typed: str, resume: str) -> None:
    assert parse(typed.split()).resume == resume


def test_resume_does_not_swallow_an_override() -> None:
    arguments = parse(["--resume", "seed=1"])
    assert (arguments.resume, arguments.overrides) == ("auto", ("seed=1",))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("--recpie", "--recipe"), ("--resum", "--resume"), ("--nme", "--name"), ("--backand", "--backend")],
)
def test_a_slip_in_an_option_names_the_option(typed: str, meant: str) -> None:
    with pytest.raises(UnknownSetting, match=f"did you mean {meant}"):
        parse([typed, "x"])


def test_an_unknown_key_is_left_to_the_recipe_which_knows_its_keys() -> None:
    assert parse(["--lerning_rate", "1"]).overrides == ("lerning_rate=1",)


def test_a_bare_word_is_told_how_a_recipe_is_named() -> None:
    with pytest.raises(UnknownSetting, match="--recipe quickstart"):
        parse(["quickstart"])


def test_an_option_without_its_value_is_refused() -> None:
    with pytest.raises(BadValue, match="--recipe needs a value"):
        parse(["--recipe", "--new"])


def test_resume_and_new_exclude_each_other() -> None:
    with pytest.raises(Conflict, match="--resume and --new"):
        parse(["--new", "--resume"])


def test_help_shows_the_usage() -> None:
    with pytest.raises(HelpWanted, match="usage: run.py"):
        parse(["--help"])
