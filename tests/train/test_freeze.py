"""Opened layers really learn: on every backend, from the step at which they open, and not before."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from launcher.errors import TrainError
from launcher.optim.build_torch import parameter_groups
from launcher.optim.rates import layerwise
from launcher.train.audit import findings, marks
from tests.launching import distance, losses, metrics, weights
from tests.train.conftest import WriteRecipe, classifier_text
from tests.train.test_resume import same_run
from tests.warm_runs import forked, trained_forked

SCHEDULE = "freeze.schedule={0: [classifier, pooler], 1: block 1, 2: all}"  # 5 steps an epoch
PHASES = {5: ("classifier", "pooler"), 10: ("classifier", "pooler", "layer.1."), 15: ("",)}
BASE = ["weight_decay=0.01", "save_total_limit=9", "layerwise_lr_decay=0.9"]


def run(recipe: Path, backend: str, name: str, *more: str, every: int = 5) -> tuple[Path, str]:
    given = [SCHEDULE, *BASE, f"save_steps={every}", *more]
    said = trained_forked(backend, "--recipe", str(recipe), "--name", name, *given)
    return recipe.parent / "runs" / name, said


def held(checkpoint: Path) -> dict[str, Any]:
    found = weights(checkpoint)
    return {name.removesuffix("/weight"): each for name, each in found.items() if name.endswith("/weight")}


def opened(name: str, step: int) -> bool:
    return any(part in name for part in PHASES[step])


def check_phases(folder: Path, base: Path) -> None:
    """Each checkpoint holds what was open, and of it everything has moved since the phase before."""
    first = {f"model.{name}": each for name, each in weights(base).items()}
    for step in PHASES:
        now = held(folder / f"checkpoint-{step}")
        assert now.keys() == {name for name in first if opened(name, step)}
        before = first | (held(folder / f"checkpoint-{step - 5}") if step > 5 else {})
        assert all(not torch.equal(now[name], before[name]) for name in now)


@pytest.fixture(scope="module")
def recipe(material: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recipe for all backends, and its run on one process, called `alone`."""
    path = tmp_path_factory.mktemp("phases") / "job.yaml"
    path.write_text(classifier_text(material, path.parent / "runs"))
    run(path, "single_gpu", "alone")
    return path


def check_backend(recipe: Path, material: Path, backend: str) -> None:
    alone = recipe.parent / "runs" / "alone"
    spread, said = run(recipe, backend, backend)
    assert losses(spread) == pytest.approx(losses(alone), abs=1e-5)
    assert said.count("opened tensors are equal on all ranks") == 3
    assert said.count("audit: every trained tensor moved") == 3
    check_phases(spread, material / "bert")
    way = distance(weights(material / "bert"), weights(alone / "final"))
    assert distance(weights(spread / "final"), weights(alone / "final")) < 1e-3 * way


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["multi_gpu", "zero3", "fsdp2"])
def test_b019_layers_opened_later_learn_on_every_backend(backend: str, recipe: Path, material: Path) -> None:
    check_backend(recipe, material, backend)


@pytest.mark.long
@pytest.mark.parametrize("backend", ["zero1", "zero2", "zero2_offload", "zero3_offload", "fsdp2_offload"])
def test_b019_layers_opened_later_learn_on_the_other_backends(
    backend: str, recipe: Path, material: Path
) -> None:
    check_backend(recipe, material, backend)


@pytest.mark.slow
def test_phases_open_on_one_process_and_every_one_can_be_resumed(
    classifier: WriteRecipe, material: Path
) -> None:
    recipe = classifier(model="bert-dropout")
    whole, said = run(recipe, "single_gpu", "whole", every=3)
    assert "opened" in said and said.count("audit: every trained tensor moved") == 3
    assert [line["learning_rate"] for line in metrics(whole) if "loss" in line] == pytest.approx(
        [line * 5e-3 for line in (0, 0.5, *(1 - index / 13 for index in range(13)))], abs=1e-9
    )
    for last in (3, 5, 9):  # inside the first phase, at its end, inside the second
        cut = whole.with_name(f"cut-{last}")
        shutil.copytree(whole, cut)
        shutil.rmtree(cut / "final")
        for path in cut.glob("checkpoint-*"):
            if int(path.name.partition("-")[2]) > last:
                shutil.rmtree(path)
        again, said = run(recipe, "single_gpu", cut.name, "--resume", every=3)
        assert f"at step {last}" in said
        same_run(whole, again)


def test_the_best_model_of_an_early_phase_has_the_base_where_nothing_was_open(
    classifier: WriteRecipe, material: Path
) -> None:
    recipe = classifier(learning_rate=5e-2)
    more = ["load_best_model_at_end=true", "metric_for_best_model=loss", "eval_steps=5"]
    folder, said = run(recipe, "single_gpu", "best", *more)
    evaluations = [(line["eval_loss"], line["step"]) for line in metrics(folder) if "eval_loss" in line]
    best = min(evaluations)[1]
    assert best < 15, evaluations
    assert f"exporting the best checkpoint, checkpoint-{best}" in said
    first, last = weights(material / "bert"), weights(folder / "final")
    saved = held(folder / f"checkpoint-{best}")
    for name, tensor in last.items():
        wanted = saved[f"model.{name}"] if f"model.{name}" in saved else first[name]
        assert torch.equal(tensor, wanted), name


def test_frozen_for_good_stays_as_it_was(classifier: WriteRecipe, material: Path) -> None:
    recipe = classifier(max_steps=5)
    trained_forked("single_gpu", "--recipe", str(recipe), "freeze.modules=[embeddings, block 0]")
    first, last = weights(material / "bert"), weights(recipe.parent / "runs" / "job" / "final")
    moved = {name for name in first if not torch.equal(first[name], last[name])}
    assert moved == {name for name in first if "embeddings" not in name and "layer.0." not in name}


def test_a_name_that_does_not_exist_is_refused_before_weights_are_read(
    classifier: WriteRecipe, material: Path
) -> None:
    recipe = classifier(max_steps=2)
    bare = recipe.parent / "bare"
    shutil.copytree(material / "bert", bare)
    (bare / "model.safetensors").unlink()
    words = ["--recipe", str(recipe), f"model={bare}", "freeze.modules=q_proj"]
    refused = forked("single_gpu", *words)
    assert refused.returncode == 2 and "no parameter of this model matches 'q_proj'" in refused.stderr
    assert "attention.self.query" in refused.stderr and "Traceback" not in refused.stderr


def test_b019_the_audit_finds_an_engine_that_ignores_late_parameters() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    model[0].requires_grad_(False)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.1)
    model[0].requires_grad_(True)  # opened after the optimizer was built: nothing will step it
    before = marks(model.named_parameters())
    for _ in range(3):
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
    after = marks(model.named_parameters())
    still, _ = findings(set(after), {name: after[name] != before[name] for name in after})
    assert still == ["0.weight", "0.bias"]


def test_b019_no_group_is_empty_where_layers_are_frozen() -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(4)))
    model[:2].requires_grad_(False)
    names = [name for name, _ in model.named_parameters()]
    decay = layerwise(names, 0.5)
    rates = {name: decay(name) for name in names}
    groups = parameter_groups(model, 0.1, rates, {"3.weight": 0, "3.bias": 0, "2.weight": 7, "2.bias": 7})
    assert all(group["params"] for group in groups)
    assert [group.get("opened_at", 0) for group in groups] == [0, 0, 7, 7]
    assert sorted(name for group in groups for name in group["names"]) == sorted(names[4:])  # type: ignore[attr-defined]


def test_ranks_that_drift_apart_are_found() -> None:
    from types import SimpleNamespace

    from launcher.train import freeze

    module = torch.nn.Linear(2, 2)
    said: list[str] = []
    job = SimpleNamespace(
        strategy=SimpleNamespace(
            named_trainable=lambda: list(module.named_parameters()),
            whole_weights=lambda: iter(module.named_parameters()),
        ),
        world=SimpleNamespace(gather=lambda own: [own, own | {"weight": own["weight"] + 1}]),
        progress=SimpleNamespace(step=5),
        say=said.append,
    )
    with pytest.raises(TrainError, match="1 trained tensors differ between ranks: weight"):
        freeze._require_equal(job)  # type: ignore[arg-type]
