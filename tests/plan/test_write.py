"""What is kept of a start, and what is kept out of it."""

import json

from launcher.facts import Machine, Starter
from launcher.plan.write import environment

MACHINE = Machine(device="cpu", num_gpus=0)


def test_secrets_are_named_and_not_shown() -> None:
    variables = {
        "HF_TOKEN": "hf_abc",
        "HF_ENDPOINT": "https://user:pass@mirror.example",
        "CUDA_VISIBLE_DEVICES": "0",
        "WANDB_API_KEY": "k",
        "HOME": "/root",
    }
    text = json.dumps(environment(MACHINE, Starter(name="python"), variables))
    assert "hf_abc" not in text and "pass" not in text and "/root" not in text
    assert '"CUDA_VISIBLE_DEVICES": "0"' in text and "mirror.example" in text
