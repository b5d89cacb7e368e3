import pytest
import torch

from launcher.errors import HardwareError
from launcher.hardware.probe import machine

without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


def test_the_cpu_can_always_be_asked_for() -> None:
    found = machine("cpu")
    assert (found.device, found.num_gpus, found.gpu_memory_bytes) == ("cpu", 0, 0)
    assert found.num_cores >= 1
    assert found.host_memory_bytes > 2**30
    assert found.cores_source
    assert found.host_memory_source
    assert found.torch_version == torch.__version__


def test_auto_takes_the_gpu_where_there_is_one() -> None:
    assert machine("auto").device == ("cuda" if torch.cuda.is_available() else "cpu")


@without_gpu
def test_asking_for_a_gpu_that_is_not_there_says_what_to_type() -> None:
    with pytest.raises(HardwareError) as caught:
        machine("cuda")
    problem = caught.value.problems[0]
    assert problem.type == "hardware.device=cpu"
    assert torch.__version__ in problem.what
    assert problem.right


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_is_described_by_its_own_figures() -> None:
    found = machine("cuda")
    assert found.num_gpus == torch.cuda.device_count()
    assert found.gpu_memory_bytes == torch.cuda.get_device_properties(0).total_memory
    assert found.compute_capability == torch.cuda.get_device_capability(0)
