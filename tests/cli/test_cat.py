"""`launcher cat`: as written, resolved, or with the origin of every value."""

from pathlib import Path
from typing import Any

from launcher.recipe.library import folder
from launcher.recipe.load import load_recipe


def test_a_recipe_as_written(run_verb: Any) -> None:
    expected = (folder() / "quickstart.yaml").read_text()
    assert run_verb("cat", "quickstart") == (0, expected, "")


def test_the_resolved_recipe_loads_back(run_verb: Any, tmp_path: Path) -> None:
    _, out, _ = run_verb("cat", "llama3.1_8b_lora_3090", "lora_r=4")
    path = tmp_path / "resolved.yaml"
    path.write_text(out)
    assert load_recipe(str(path)).recipe == load_recipe("llama3.1_8b_lora_3090", ["lora_r=4"]).recipe


def test_resolved_without_an_override_holds_parents_and_defaults(run_verb: Any, tmp_path: Path) -> None:
    code, out, _ = run_verb("cat", "llama3.1_8b_lora_3090", "--resolved")
    assert code == 0 and "extends" not in out and "max_grad_norm: 1.0" in out
    (tmp_path / "resolved.yaml").write_text(out)
    assert load_recipe(str(tmp_path / "resolved.yaml")).recipe == load_recipe("llama3.1_8b_lora_3090").recipe


def test_provenance_names_parent_recipe_command_line_and_default(run_verb: Any) -> None:
    code, out, _ = run_verb("cat", "llama3.1_8b_lora_3090", "seed=1", "gpus=2", "lr=2e-4", "--provenance")
    assert code == 0
    lines = {line.partition(":")[0]: line for line in out.splitlines()}
    assert "# parent" in lines["adapter.lora_r"] and "lora_7b_3090.yaml:" in lines["adapter.lora_r"]
    assert "# recipe" in lines["model.dtype"] and "llama3.1_8b_lora_3090.yaml:" in lines["model.dtype"]
    assert lines["training.seed"].endswith("# command line")
    assert lines["training.max_grad_norm"].endswith("# default")
    assert lines["backend.name"].endswith("# derived  (hardware.gpus is 2)")
    assert "training.save_steps: 0.5 epochs" in lines["training.save_steps"]
    assert out.splitlines()[-1].startswith("# note: command line  lr is called training.learning_rate")


def test_an_unknown_recipe_is_a_usage_error(run_verb: Any) -> None:
    code, out, err = run_verb("cat", "quikstart")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "  type:  quickstart"
