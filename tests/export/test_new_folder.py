"""Folders that are made whole or not at all, and what is said where one cannot be."""

from pathlib import Path

import pytest

from launcher.cli.main import main
from launcher.errors import Conflict, DoesNotFit, ExportError
from launcher.export.new_folder import new_folder, place_for
from launcher.train.final_model import read_facts


def test_an_empty_folder_is_as_good_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (".", "new", "deep/er/new"):
        place = place_for(text, option="--to", command="launcher export RUN")
        with new_folder(place, needed_bytes=1, name="the model", option="--to") as temporary:
            (temporary / "a").write_text("a")
        assert [path.name for path in place.iterdir()] == ["a"], text
        (place / "a").unlink()


@pytest.mark.parametrize(("make", "said"), [("folder", "has files in it"), ("file", "this is a file")])
def test_nothing_is_written_over(make: str, said: str, tmp_path: Path) -> None:
    place = tmp_path / "there"
    if make == "folder":
        place.mkdir()
        (place / "mine").write_text("kept")
    else:
        place.write_text("kept")
    with pytest.raises(Conflict, match=said) as refused:
        place_for(str(place), option="--to", command="launcher export RUN")
    assert refused.value.problems[0].type == "launcher export RUN --to ANOTHER_FOLDER"


def test_a_disk_that_fills_up_leaves_nothing_behind(tmp_path: Path) -> None:
    place = tmp_path / "out"
    with (
        pytest.raises(ExportError, match="the model could not be saved: No space left on device") as refused,
        new_folder(place, needed_bytes=5, name="the model", option="--to") as temporary,
    ):
        (temporary / "half").write_text("half of it")
        Path("/dev/full").write_text("the rest")
    assert not [*tmp_path.iterdir()] and "--to ANOTHER_FOLDER" in refused.value.problems[0].type


def test_a_place_below_a_file_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(ExportError, match="Not a directory"),
        new_folder(tmp_path / "file" / "out", needed_bytes=5, name="the model", option="--to"),
    ):
        pass


def test_a_disk_that_is_too_small_is_known_beforehand(tmp_path: Path) -> None:
    with (
        pytest.raises(DoesNotFit, match="are free"),
        new_folder(tmp_path / "out", needed_bytes=2**62, name="the model", option="--to"),
    ):
        pass
    assert not [*tmp_path.iterdir()]


def test_what_is_no_mistake_of_the_disks_stays_as_it_was(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyError, match="mine"),
        new_folder(tmp_path / "out", needed_bytes=5, name="the model", option="--to"),
    ):
        raise KeyError("mine")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("verb", ["predict", "merge", "export", "eval"])
def test_a_run_that_has_not_ended_is_told_apart(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "half"
    for step in (20, 40):
        (run / f"checkpoint-{step}").mkdir(parents=True)
    (run / "recipe.yaml").write_text("task: causal_lm\n")
    (tmp_path / "rows.csv").write_text("text,label\na,b\n")
    more = {"predict": ["text"], "export": ["--to", str(tmp_path / "out")]}
    more["eval"] = ["--file", str(tmp_path / "rows.csv")]
    assert main([verb, str(run), *more.get(verb, [])]) == 1
    said = capsys.readouterr().err
    assert "has not ended (its newest checkpoint is of step 40)" in said and "--resume" in said


@pytest.mark.parametrize(
    ("text", "said"), [('{"task": "caus', "cannot be read"), ("{}", "says nothing of task")]
)
def test_half_a_file_beside_the_model_is_told(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "launcher.json").write_text(text)
    with pytest.raises(ExportError, match=said):
        read_facts(tmp_path)
