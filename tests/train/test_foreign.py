"""Other programs' checkpoints: named for what they are, never read, with a way to go on."""

from pathlib import Path

import pytest

from launcher.errors import BadValue
from launcher.train.folder import claim

LAYOUTS = {
    "transformers Trainer": (
        "trainer_state.json",
        "optimizer.pt",
        "rng_state.pth",
        "config.json",
        "model.safetensors",
    ),
    "accelerate's save_state": ("random_states_0.pkl", "optimizer.bin", "model.safetensors"),
    "DeepSpeed checkpoint": ("latest", "zero_to_fp32.py", "global_step5/mp_rank_00_model_states.pt"),
    "torch.distributed.checkpoint": (".metadata", "__0_0.distcp"),
    "finished model of this launcher": ("launcher.json", "config.json", "model.safetensors"),
    "a model folder": ("config.json", "model.safetensors"),
    "PyTorch pickles": ("optimizer.pt", "scheduler.pt"),
}
BOMB = b"cos\nsystem\n(S'touch pickle-was-run'\ntR."


@pytest.mark.parametrize("name", LAYOUTS)
def test_b053_a_foreign_checkpoint_is_named_and_not_unpickled(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    foreign = tmp_path / "foreign"
    for file in LAYOUTS[name]:
        (foreign / file).parent.mkdir(parents=True, exist_ok=True)
        (foreign / file).write_bytes(BOMB)
    with pytest.raises(BadValue) as refused:
        claim(tmp_path / "run", resume=str(foreign), new=False)
    said = str(refused.value)
    assert name in said and "model_name_or_path=" in said
    assert not (tmp_path / "pickle-was-run").exists()


def test_b053_a_part_of_a_deepspeed_checkpoint_names_the_whole(tmp_path: Path) -> None:
    inner = tmp_path / "foreign" / "global_step5"
    inner.mkdir(parents=True)
    (inner / "mp_rank_00_model_states.pt").touch()
    (tmp_path / "foreign" / "zero_to_fp32.py").touch()
    with pytest.raises(BadValue, match="zero_to_fp32.py") as refused:
        claim(tmp_path / "run", resume=str(inner), new=False)
    assert f"model_name_or_path={tmp_path}/foreign/fp32" in str(refused.value)


def test_nothing_there_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="there is no such folder"):
        claim(tmp_path / "run", resume=str(tmp_path / "absent"), new=False)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadValue, match=r"no manifest\.json"):
        claim(tmp_path / "run", resume=str(tmp_path / "empty"), new=False)
