"""The table of methods and backends: every proof exists, every refusal names a way out."""

import ast
from pathlib import Path

import pytest

from launcher.adapters.options import METHODS
from launcher.backends import support
from launcher.backends.options import BACKENDS
from launcher.backends.support import GPU_PROOFS, PROOFS, Proven, Refused, Upstream, cell
from launcher.errors import RecipeError
from launcher.recipe.load import load_recipe
from tests.adapters import test_methods_agree
from tests.adapters.method_cells import VARIANTS
from tests.equivalence.cells import CLOSE, EXACT, WIDE, cells_of
from tests.equivalence.started import BACKEND_NAMES
from tests.train import test_backends_agree

TABLES = (PROOFS, GPU_PROOFS, support.QUANTISED_PROOFS, support.BF16_PROOFS)


@pytest.mark.parametrize("proof", sorted({proof for table in TABLES for proof in table.values()}))
def test_every_proof_is_a_test_that_exists(proof: str, root: Path) -> None:
    file, _, name = proof.partition("::")
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert name.partition("[")[0] in functions


def test_every_proven_cell_is_a_registered_pair() -> None:
    assert {method for method, _ in PROOFS} <= set(METHODS.names())
    assert {backend for _, backend in PROOFS} <= set(BACKENDS.names())


def test_the_proofs_run_what_they_are_named_for() -> None:
    exact = {(method, backend) for (method, backend), test in PROOFS.items() if test == support.EXACT}
    assert {backend for _, backend in exact} <= set(BACKEND_NAMES)
    assert {method for method, _ in exact} <= {cell.rpartition("-")[2] for cell in EXACT}
    assert cells_of("zero3_nvme") == WIDE
    assert {cell.split("-")[1] for cell in WIDE} == {
        method for (method, _), test in PROOFS.items() if test == support.FROM_DISK
    }
    close = {method for method, _ in support.BF16_PROOFS}
    assert close == {cell.split("-")[1] for cell in CLOSE} and all(
        set(CLOSE) <= {*cells_of(b)} for _, b in support.BF16_PROOFS
    )
    agree = {backend for (_, backend), test in PROOFS.items() if test == support.AGREE}
    assert agree <= {"single_gpu", *test_backends_agree.BACKENDS}


def test_the_methods_proofs_are_pairs_that_are_compared() -> None:
    ran = {(VARIANTS[name.partition("-")[2]][0], backend) for backend, name in test_methods_agree.ALL}
    ran |= {(method, "single_gpu") for method, _ in ran}
    assert {pair for pair, test in PROOFS.items() if test == support.METHODS_AGREE} <= ran
    packed = {(backend, name) for backend, name in test_methods_agree.ALL if name.endswith("-qlora")}
    assert {b for _, b in support.QUANTISED_PROOFS} <= {"single_gpu", *(backend for backend, _ in packed)}


@pytest.mark.parametrize("backend", BACKENDS.names())
@pytest.mark.parametrize("method", METHODS.names())
@pytest.mark.parametrize("precision", support.PRECISIONS)
def test_every_cell_has_a_standing(method: str, backend: str, precision: str) -> None:
    found = cell(method, backend, precision=precision)
    assert isinstance(found, Proven) or (isinstance(found, Upstream) and found.warning)


@pytest.mark.parametrize("backend", [each.name for each in BACKENDS if each.sharding.parameters])
def test_b007_quantised_weights_are_not_divided_and_the_way_out_works(backend: str) -> None:
    found = cell("lora", backend, quantised=True)
    assert isinstance(found, Refused)
    assert not isinstance(cell("lora", found.alternative, quantised=True), Refused)
    assert ("offload" in backend or "nvme" in backend) is found.alternative.endswith("_offload")


@pytest.mark.parametrize("backend", ["single_gpu", "multi_gpu", "zero1", "zero2"])
def test_b007_quantised_weights_run_where_they_stay_whole_but_a_proof_is_not_borrowed(backend: str) -> None:
    found = cell("lora", backend, quantised=True)
    plain = cell("lora", backend)
    assert isinstance(found, Upstream | Proven) and found != plain
    assert isinstance(found, Proven) is (("lora", backend) in support.QUANTISED_PROOFS)


def test_b007_a_refused_cell_is_refused_with_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Refused(reason="not together", alternative="zero2")
    monkeypatch.setattr(support, "RULES", (lambda given: refused if given.backend.name == "zero3" else None,))
    with pytest.raises(RecipeError, match="full does not run on zero3: not together") as caught:
        load_recipe("quickstart", ["backend.name=zero3"])
    assert caught.value.problems[0].type == "backend: zero2"
    assert load_recipe("quickstart", ["backend.name=zero2"]).recipe.backend.name == "zero2"


def test_what_is_not_proven_here_is_said_with_the_recipe() -> None:
    notices = load_recipe("quickstart", ["backend.name=model_parallel"]).notices
    assert any("nothing of it is proven here" in notice for notice in notices)
    assert not any("proven" in notice for notice in load_recipe("quickstart").notices)


def test_b016_fsdp1_is_never_offered() -> None:
    assert not [name for name in BACKENDS.names() if name.startswith("fsdp") and not name.startswith("fsdp2")]
    for backend in BACKENDS:
        config = backend.accelerate_config(2)
        if "fsdp_config" in config:
            assert config["fsdp_config"]["fsdp_version"] == 2
