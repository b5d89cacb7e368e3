"""The whole library in one process: every recipe is checked, planned for its card, and named by one rule."""

import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ruamel.yaml import YAML

from launcher.cli.cat import provenance
from launcher.errors import LauncherError
from launcher.hardware import catalog
from launcher.recipe import library
from launcher.recipe.batch import solve
from launcher.recipe.build import value_at
from launcher.recipe.check import check
from launcher.recipe.load import load_recipe
from launcher.recipe.parents import lineage

ROOT = Path(__file__).resolve().parents[2]
NAMES, REFUSED = library.names(), library.refused_names()
# The card's part of a name to the card: what a name says and the file does not would mislead. Every card of
# the catalogue without its `rtx`, and words for cards that come in several builds.
CARDS = {re.sub("^rtx_?", "", card): (card,) for card in catalog.names()} | {
    "v100": ("v100_32_pcie", "v100_32_sxm2"),
    "a100": ("a100_pcie_40", "a100_sxm_40", "a100_pcie_80", "a100_sxm_80"),
    "a100_40g": ("a100_pcie_40", "a100_sxm_40"),
    "a100_80g": ("a100_pcie_80", "a100_sxm_80"),
    "a800": ("a800_80", "a800_80_nvlink"),
    "h100": ("h100_sxm",),
}
METHOD_WORDS = {"adapter": "bottleneck", "ptuning": "p_tuning", "prefix": "prefix", "full": "full"}
METHOD_WORDS |= {"lora": "lora", "qlora": "lora"}
NAMED_BY_THE_GUIDES = [
    "bert_base_imdb_3090",
    "roberta_large_meld_3090",
    "roberta_large_meld_2x3090",
    "macbert_chinese_reviews_3090",
    "full_0.5b_v100",
    "full_0.5b_a100",
    "adapter_0.5b_v100",
    "prefix_0.5b_v100",
    "lora_0.5b_3060",
    "lora_7b_3090",
    "lora_7b_4090",
    "qlora_7b_3090",
    "qlora_7b_2080ti",
    "ptuning_7b_3090",
    "lora_7b_2x4090_zero2",
    "lora_7b_4x4090_fsdp2",
    "full_7b_4x3090_zero3_offload",
    "full_7b_8xa100_fsdp2",
    "full_3b_a100_40g",
    "qlora_14b_4090",
    "lora_14b_4x4090_zero3",
    "qlora_32b_a100_80g",
    "qlora_70b_2x3090_fsdp2_offload",
    "lora_70b_8xa100_zero3",
]
FAMILIES = ("qwen3_", "llama3", "gemma3_", "mistral_")


@cache
def script() -> ModuleType:
    """`scripts/make_recipe_table.py` as a module."""
    path = ROOT / "scripts/make_recipe_table.py"
    spec = importlib.util.spec_from_file_location("scripts_make_recipe_table", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@cache
def planned(name: str) -> Any:
    """The recipe's line and plan, made once for all tests."""
    return script().row(name)


@pytest.mark.parametrize("name", NAMES)
def test_recipe_is_checked_without_a_finding(name: str) -> None:
    found = check(name)
    assert found.problems == ()
    brought = [notice for notice in found.notices if "its data is yours to bring" in notice]
    assert [*found.notices] == brought
    assert all("type data.train_file=FILE" in notice for notice in brought)


@pytest.mark.parametrize("name", NAMES)
def test_recipe_fits_the_card_that_it_names_with_the_margin(name: str) -> None:
    plan = planned(name).plan
    if plan is None:
        assert load_recipe(name).recipe.hardware.gpu is None
        return
    verdict = plan.asked.verdict
    assert plan.fits, script().why_not(plan.asked)
    assert verdict.allocated_bytes + verdict.context_bytes + verdict.margin_bytes <= plan.usable_bytes
    assert verdict.context_bytes > 0 and verdict.margin_bytes >= int(0.04 * verdict.allocated_bytes)
    assert plan.asked.time is not None


@pytest.mark.parametrize("name", REFUSED)
def test_job_that_is_kept_as_not_fitting_does_not_fit(name: str) -> None:
    row = planned(name)
    if row.plan is None:
        with pytest.raises(LauncherError) as caught:
            load_recipe(name)
        assert caught.value.problems[0].right and row.refused
        return
    assert not row.plan.fits and row.plan.asked.over_bytes > 0, "it fits by now: move it up to recipes/"


def test_every_generated_file_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe, a planner or a card that changed: type `make recipes`."""
    monkeypatch.setattr(script(), "row", planned)
    monkeypatch.delenv("LAUNCHER_PRICES", raising=False)
    for path, text in script().wanted():
        assert path.read_text(encoding="utf-8") == text, f"type: make recipes ({path.name})"


def test_what_the_guides_name_is_there() -> None:
    assert set(NAMED_BY_THE_GUIDES) <= {*NAMES, *REFUSED}
    assert not set(NAMES) & set(REFUSED)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("least", "most"), [(22, 24), (44, 48), (79, 81)])
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_every_family_has_every_form_on_every_size_of_card(
    family: str, least: int, most: int, method: str
) -> None:
    """A form that does not fit there is among the jobs that are kept as not fitting."""
    found = []
    for name in (each for each in (*NAMES, *REFUSED) if each.startswith(family)):
        row = planned(name)
        usable = row.plan.usable_bytes / 2**30 if row.plan else 0
        if row.listed.method == method and least <= usable <= most and row.listed.gpus == 1:
            found.append(name)
    assert found


@pytest.mark.parametrize("name", [*NAMES, *REFUSED])
def test_name_says_what_the_file_says(name: str) -> None:
    if name in ("quickstart", "quickstart_lm"):
        return
    listed = planned(name).listed
    match = re.fullmatch(
        rf"(?P<job>[a-z0-9._]+?)_((?P<gpus>\d)x)?(?P<card>{'|'.join(sorted(CARDS, key=len, reverse=True))})"
        r"(_(?P<backend>[a-z0-9_]+))?",
        name,
    )
    assert match, f"{name} is not <model or task>_<method>_<card>; cards: {', '.join(CARDS)}"
    assert listed.gpu in CARDS[match["card"]]
    assert listed.gpus == int(match["gpus"] or 1)
    if match["backend"]:
        assert listed.backend == match["backend"]
    elif listed.gpus > 1:
        assert listed.backend == "multi_gpu"
    said = [word for word in match["job"].split("_") if word in METHOD_WORDS]
    if not said:
        assert (listed.task, listed.method) == ("classification", "full")
        return
    assert said[0] == listed.method or METHOD_WORDS[said[0]] == listed.method
    assert len(said) == 1


@pytest.mark.parametrize("name", NAMES)
def test_file_is_short_and_says_what_to_expect(name: str) -> None:
    lines = library.find(name).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# Planned: ")
    assert len(lines) <= 46
    listed = planned(name).listed
    assert 20 <= len(listed.summary) <= 110 and listed.summary[0].isupper()


@pytest.mark.parametrize("name", [name for name in NAMES if len(lineage(library.find(name))) > 1])
def test_provenance_names_the_parent_of_what_is_inherited(name: str) -> None:
    loaded, files = load_recipe(name), [document.path for document in lineage(library.find(name))]
    inherited = [key for key, origin in loaded.origins.items() if origin.kind == "parent"]
    assert inherited
    for key in inherited:
        origin = loaded.origins[key]
        assert Path(origin.file) in files[:-1] and origin.line > 0
    assert loaded.origins["hardware.gpu"].kind == "recipe" or "hardware.gpu" in inherited


def test_a_variant_changes_its_card_and_nothing_else() -> None:
    lines = provenance("lora_7b_5090", []).splitlines()
    own = [line.partition(":")[0] for line in lines if "# recipe" in line]
    assert own == ["summary", "hardware.gpu"]
    parent, variant = load_recipe("lora_7b_3090").recipe, load_recipe("lora_7b_5090").recipe
    assert variant.model_dump(exclude={"summary", "hardware"}) == parent.model_dump(
        exclude={"summary", "hardware"}
    )


@pytest.mark.parametrize("name", NAMES)
def test_data_is_shipped_or_its_source_is_told(name: str) -> None:
    """Nothing that a licence keeps to others is shipped: the recipe says where it is to be had."""
    recipe = load_recipe(name).recipe
    is_here = Path(recipe.data.train_file).is_file()
    assert is_here or recipe.data.source
    if is_here:
        assert library.folder() in Path(recipe.data.train_file).parents


def test_bases_are_few_and_used() -> None:
    bases = sorted((library.folder() / library.BASES).glob("*.yaml"))
    used = {document.path for name in NAMES for document in lineage(library.find(name))}
    assert 0 < len(bases) < 10 and {base.resolve() for base in bases} <= used
    assert not set(library.names()) & {base.stem for base in bases}


def test_a_recipe_of_ones_own_extends_a_shipped_base_from_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    said = {"extends": "bases/qlora", "model": {"model_name_or_path": "Qwen/Qwen3-8B"}}
    with file.open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(said, stream)
    recipe = load_recipe(str(file), ["train_file=mine.jsonl"]).recipe
    assert (recipe.adapter.method, recipe.model.load_in_4bit) == ("lora", True)
    assert value_at(recipe, ("training", "activation_checkpointing")) is True


@pytest.mark.parametrize(
    "name", ["bases/../lora_7b_3090", "bases/none", "does_not_fit/lora_7b_2080ti", "bases/"]
)
def test_only_bases_by_their_own_name_are_found_in_folders(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LauncherError):
        library.find(name)


def test_a_job_that_does_not_fit_is_planned_by_its_name() -> None:
    assert library.find("full_7b_3090").parent.name == library.DOES_NOT_FIT


@pytest.mark.parametrize("name", NAMES)
def test_b001_every_batch_is_met_exactly_by_the_named_cards(name: str) -> None:
    recipe = load_recipe(name).recipe
    micro = recipe.training.per_device_train_batch_size
    made = solve(recipe.training.global_batch_size, None if micro == "auto" else micro, recipe.hardware.gpus)
    product = made.micro_batch_size * made.accumulation_steps * recipe.hardware.gpus
    assert product == recipe.training.global_batch_size
    assert micro in ("auto", made.micro_batch_size), "the micro batch that is written is the one that runs"


@pytest.mark.parametrize("name", NAMES)
def test_b004_nothing_asks_for_bf16_where_the_card_has_no_units_for_it(name: str) -> None:
    recipe = load_recipe(name).recipe
    if recipe.hardware.gpu is not None and not catalog.get(recipe.hardware.gpu).has_bf16:
        assert recipe.training.precision in ("auto", "fp16")
        assert planned(name).plan.asked.candidate.setting.precision == "fp16"


@pytest.mark.parametrize("name", [name for name in NAMES if "lora" in name])
def test_b012_lora_names_an_intent_and_no_layers_of_one_family(name: str) -> None:
    adapter = load_recipe(name).recipe.adapter
    assert adapter.model_dump().get("lora_target_modules") in ("attention", "all-linear")
