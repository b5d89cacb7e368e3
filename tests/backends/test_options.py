"""Every registered backend keeps the contract that planning and starting rely on."""

import subprocess
import sys

import pytest

from launcher.backends.options import BACKENDS, Backend

STARTERS = {"accelerate", "torchrun", "deepspeed", "python"}


@pytest.mark.parametrize("backend", [*BACKENDS], ids=lambda backend: backend.name)
def test_a_backend_is_whole(backend: Backend) -> None:
    options = backend.options(name=backend.name)
    assert options.name == backend.name
    assert backend.starters
    assert set(backend.starters) <= STARTERS
    module, _, function = backend.connect.partition(":")
    assert module.endswith("_torch")
    assert function == "connect"
    config = backend.accelerate_config(3)
    assert config["num_processes"] == (1 if backend.max_ranks == 1 else 3)
    assert "mixed_precision" not in config
    assert config["distributed_type"] != "MULTI_CPU"
    if backend.ds_config is not None:
        assert set(config["deepspeed_config"]) == {"deepspeed_config_file", "zero3_init_flag"}


def test_options_are_refused_under_another_name() -> None:
    for backend in BACKENDS:
        with pytest.raises(ValueError, match="name"):
            backend.options(name="other")


def test_first_halves_load_nothing_heavy() -> None:
    code = (
        "import sys; from launcher.backends.options import BACKENDS; BACKENDS.names(); "
        "print(sorted({'torch', 'accelerate', 'deepspeed', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
