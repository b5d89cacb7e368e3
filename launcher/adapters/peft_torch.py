"""What every PEFT method shares: task types, linear layers by name, fp32 for what trains, loading."""

from pathlib import Path
from typing import Any

from peft import PeftConfig, PeftModel, get_peft_model
from peft.utils import SAFETENSORS_WEIGHTS_NAME
from safetensors import SafetensorError
from torch import nn
from transformers.pytorch_utils import Conv1D

from launcher.adapters.bottleneck_peft_torch import register
from launcher.errors import BadValue, ExportError, Problem

TASK_TYPES = {"classification": "SEQ_CLS", "causal_lm": "CAUSAL_LM"}


def linear_names(model: nn.Module) -> list[str]:
    """Names of the linear leaves (GPT-2's Conv1D included), in the model's order."""
    return [name for name, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)]


def wrap(model: nn.Module, config: PeftConfig) -> nn.Module:
    """The PEFT model; what trains is fp32 whatever the base's type, so that small updates count.

    Raises BadValue where PEFT cannot put this adapter into this model.
    """
    try:
        wrapped: Any = get_peft_model(model, config)
    except ValueError as error:
        raise _not_here(model, config, error) from error
    for parameter in wrapped.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    return wrapped  # type: ignore[no-any-return]


def _not_here(model: nn.Module, config: PeftConfig, error: ValueError) -> BadValue:
    kind = getattr(getattr(model, "config", None), "model_type", "")
    return BadValue(
        Problem(
            where="adapter.method",
            what=f"{type(config).__name__} does not go into {type(model).__name__} ({kind}): {error}",
            right="prompt, p_tuning, bottleneck, ia3 or lora go into encoders and decoders; "
            "prefix needs a decoder with a key-value cache",
            type="adapter.method=p_tuning, or adapter.method=lora",
        )
    )


def read_adapter(model: nn.Module, folder: Path) -> nn.Module:
    """The model with the adapter that was saved in `folder`, for use.

    Raises ExportError where its weights are not there or do not go onto this model.
    """
    register()
    if not (folder / SAFETENSORS_WEIGHTS_NAME).is_file():  # PEFT would look for them on the hub
        raise _damaged(folder, f"{SAFETENSORS_WEIGHTS_NAME} is missing")
    try:
        wrapped: nn.Module = PeftModel.from_pretrained(model, str(folder))
    except (RuntimeError, ValueError, TypeError, SafetensorError) as error:
        raise _damaged(folder, f"its adapter does not load: {error}") from error
    return wrapped


def _damaged(folder: Path, what: str) -> ExportError:
    return ExportError(
        Problem(
            where=str(folder),
            what=what,
            right="the folder as training wrote it, beside the base that it was trained on",
            type="copy it again; or the run's command with --resume, which exports it again",
        )
    )
