"""From files and `key=value` to a frozen recipe: values, origins, and every problem at once."""

from pathlib import Path
from typing import Any

import pytest

from launcher.errors import RecipeError, UnknownSetting
from launcher.recipe.load import load_recipe


def test_a_minimal_recipe_has_defaults_and_origins(write: Any) -> None:
    loaded = load_recipe(str(write("training:\n  learning_rate: 1e-4\n")))
    assert loaded.name == "job"
    assert loaded.recipe.training.learning_rate == 1e-4
    assert loaded.recipe.adapter.method == "full"
    assert loaded.recipe.backend.name == "single_gpu"
    assert loaded.origins["training.learning_rate"].place() == "job.yaml:5"
    assert loaded.origins["model.model_name_or_path"].line == 2
    assert loaded.origins["training.seed"].kind == "default"


def test_command_line_beats_recipe_and_the_starter_beats_both(write: Any) -> None:
    path = write("training: {seed: 1}\nhardware: {gpus: 1}\n")
    loaded = load_recipe(str(path), ["seed=2", "gpus=4"], extra={"hardware.gpus": 2, "backend.name": "zero2"})
    assert loaded.recipe.training.seed == 2
    assert loaded.recipe.hardware.gpus == 2
    assert loaded.recipe.backend.name == "zero2"
    assert loaded.origins["training.seed"].kind == "command line"
    assert loaded.origins["hardware.gpus"].kind == "starter"


def test_all_problems_are_told_at_once_in_the_order_of_lines(write: Any, refuse: Any) -> None:
    path = write(
        "learning_rate: 1e-4\n"
        "training:\n  learning_rat: 3\n  precision: bf17\n  num_train_epochs: 0\n"
        "adapter: {method: lora, lora_dropout: 1.5}\n"
    )
    problems = refuse(path, "nonsense", "seed=-1").problems
    assert [problem.where for problem in problems] == [
        *("job.yaml:4", "job.yaml:6", "job.yaml:7", "job.yaml:8", "job.yaml:9"),
        *("command line", "command line"),
    ]
    for problem in problems:
        assert problem.what and problem.right and problem.type


def test_messages_hold_the_raw_value_and_no_word_of_the_library(write: Any, refuse: Any) -> None:
    path = write("training: {seed: [1], tf32: maybe, max_steps: x, learning_rate: .inf}\nfreeze: 1\n")
    text = str(refuse(path, "gpus=2.5", "report_to=waandb", "columns=5", "labels=a"))
    for raw in ("'maybe'", "'x'", "'2.5'", "'waandb'", "'.inf'"):
        assert raw in text
    for jargon in ("pydantic", "Input should", "type=", "ValidationError", "http", "union", "literal"):
        assert jargon not in text


@pytest.mark.parametrize(
    ("line", "what", "right"),
    [
        ("training: {precision: bf17}", "'bf17'", "one of auto, fp32, bf16, fp16"),
        ("training: {global_batch_size: 0}", "'0'", "at least 1"),
        ("training: {global_batch_size: 2.5}", "'2.5'", "a whole number"),
        ("training: {global_batch_size: true}", "'true'", "a number"),
        ("training: {per_device_train_batch_size: true}", "'true'", "a number"),
        ("training: {per_device_train_batch_size: some}", "'some'", "a whole number or auto"),
        ("training: {eval_steps: 3 weeks}", "'3 weeks'", "200 steps, 5000 rows, 0.5 epochs"),
        ("training: {activation_checkpointing: perhaps}", "'perhaps'", "true or false"),
        ("training: {learning_rate: .nan}", "'.nan'", "a finite number"),
        ("training: {adam_beta1: 1}", "'1'", "below 1"),
        ("adapter: nothing", "unknown method 'nothing'", "full, ia3, lora"),
        ("backend: zero9", "unknown backend 'zero9'", "zero2"),
        ("training: 5", "training:", "keys"),
        ("adapter: [lora]", "'[lora]' is no section", "a name"),
        ("output_dir: ''", "output_dir", "some text"),
    ],
)
def test_a_bad_value_says_what_the_key_takes(
    write: Any, refuse: Any, line: str, what: str, right: str
) -> None:
    (problem,) = refuse(write(f"{line}\n")).problems
    assert what in problem.what
    assert right in problem.right
    assert problem.where == "job.yaml:4"


def test_missing_keys_are_told_together(write: Any, refuse: Any) -> None:
    problems = refuse(write(whole="summary: nothing else\n")).problems
    keys = [problem.what.partition(":")[0] for problem in problems]
    assert keys == ["task", "model.model_name_or_path", "data.train_file"]


def test_a_misspelt_required_key_is_told_once(write: Any, refuse: Any) -> None:
    path = write(whole="task: classification\nmodel: m\ndata: {train_fil: a.csv}\n")
    (problem,) = refuse(path).problems
    assert problem.type == "data: {train_file: a.csv}"


def test_a_bad_value_does_not_hide_or_invent_rule_findings(write: Any, refuse: Any) -> None:
    path = write(
        "data: {train_file: a.csv, eval_file: b.csv, eval_fraction: 0.1}\n"
        "training: {precision: bf17, load_best_model_at_end: true, metric_for_best_model: loss,"
        " save_steps: epoch, eval_steps: x}\n"
    )
    path.write_text(path.read_text().replace("data: {train_file: train.csv}\n", ""))
    text = str(refuse(path))
    assert "both say what to evaluate on" in text
    assert "cannot be chosen" not in text


def test_text_fields_take_what_was_typed_even_where_it_looks_like_a_number(write: Any) -> None:
    path = write("training: {seed: 3}\n")
    loaded = load_recipe(str(path), ["fill.name=007", "labels=[0, true]", "revision=1e5", "eval_file=no"])
    assert loaded.recipe.data.fill == {"name": "007"}
    assert loaded.recipe.data.labels == ("0", "true")
    assert loaded.recipe.model.revision == "1e5"
    assert loaded.recipe.data.eval_file == "no"


def test_numbers_as_people_write_them(write: Any) -> None:
    path = write("training: {learning_rate: 1e-5, eval_steps: no, activation_checkpointing: no, seed: '8'}\n")
    training = load_recipe(str(path), ["eval_fraction=.1"]).recipe.training
    assert training.learning_rate == 1e-5
    assert training.eval_steps is None
    assert training.activation_checkpointing is False
    assert training.seed == 8


def test_trackers_are_typed_with_commas(write: Any) -> None:
    loaded = load_recipe(str(write()), ["report_to=wandb, tensorboard"])
    assert loaded.recipe.tracking.report_to == ("wandb", "tensorboard")


def test_sections_of_one_word(write: Any) -> None:
    path = write("backend: zero2\nadapter: lora\ntracking: none\nhardware: rtx3090\n")
    recipe = load_recipe(str(path)).recipe
    assert (recipe.backend.name, recipe.adapter.method) == ("zero2", "lora")
    assert (recipe.tracking.report_to, recipe.hardware.gpu) == (("none",), "rtx3090")
    assert recipe.model.model_name_or_path == "some/model"


def test_several_cards_without_a_backend_are_ddp_and_say_why(write: Any) -> None:
    loaded = load_recipe(str(write()), ["gpus=2"])
    assert loaded.recipe.backend.name == "multi_gpu"
    assert str(loaded.origins["backend.name"]) == "derived  (hardware.gpus is 2)"


def test_an_empty_section_is_its_defaults(write: Any) -> None:
    assert load_recipe(str(write("training:\nadapter: {}\n"))).recipe.training.seed == 42


def test_existing_files_become_absolute_from_where_they_were_written(write: Any, tmp_path: Path) -> None:
    write(name="sub/train.csv", whole="text,label\n")
    path = write(name="sub/job.yaml")
    assert load_recipe(str(path)).recipe.data.train_file == str(tmp_path / "sub" / "train.csv")
    (tmp_path / "here.csv").write_text("text,label\n")
    loaded = load_recipe(str(path), ["train_file=here.csv"])
    assert loaded.recipe.data.train_file == str(tmp_path / "here.csv")


def test_the_folder_of_the_command_wins_over_the_recipes_for_typed_files(write: Any, tmp_path: Path) -> None:
    path = write(name="sub/job.yaml")
    for folder in (tmp_path, tmp_path / "sub"):
        (folder / "other.csv").write_text("text,label\n")
    loaded = load_recipe(str(path), ["train_file=other.csv"])
    assert loaded.recipe.data.train_file == str(tmp_path / "other.csv")


def test_unknown_recipes_name_the_nearest(write: Any, refuse: Any) -> None:
    write()
    with pytest.raises(UnknownSetting, match="quickstart"):
        load_recipe("quikstart")
    with pytest.raises(UnknownSetting):
        load_recipe("x" * 5000)
    assert refuse("jub.yaml").problems[0].type == "job.yaml"


def test_the_exit_code_of_a_recipe_error_is_usage() -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe("no-such-recipe")
    assert caught.value.exit_code == 2
