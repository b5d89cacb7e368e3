"""Bottleneck adapters as a method of PEFT, which has none: PEFT then saves, loads and names them.

PEFT 0.21 takes a method from outside only if its enumeration of types has the name, so the name is
added to that enumeration, here and nowhere else.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from peft import PeftConfig
from peft.tuners.tuners_utils import BaseTuner, BaseTunerLayer
from peft.utils import PeftType, register_peft_method
from torch import Tensor, nn

from launcher.errors import ExportError, Problem

NAME = "bottleneck"
_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "gelu": nn.GELU,
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


def _type() -> PeftType:
    """PEFT's name for the method, made at the first asking."""
    name = NAME.upper()
    if name not in PeftType.__members__:
        member = str.__new__(PeftType, name)
        member._name_, member._value_ = name, name
        PeftType._member_names_.append(name)
        PeftType._member_map_[name] = member
        PeftType._value2member_map_[name] = member
    return PeftType(name)


@dataclass
class BottleneckConfig(PeftConfig):  # type: ignore[misc]
    """What `adapter_config.json` holds of a bottleneck adapter."""

    target_modules: list[str] | str | None = field(default=None)
    exclude_modules: list[str] | str | None = field(default=None)
    modules_to_save: list[str] | None = field(default=None)
    bottleneck_size: int = field(default=64)
    activation: str = field(default="gelu")
    dropout: float = field(default=0.0)

    def __post_init__(self) -> None:
        """Name the type, and make the targets a set as PEFT's own configurations do."""
        super().__post_init__()
        self.peft_type = _type()
        if isinstance(self.target_modules, list):
            self.target_modules = set(self.target_modules)  # type: ignore[assignment]


class BottleneckLayer(nn.Module, BaseTunerLayer):  # type: ignore[misc]
    """A linear layer, then y + up(activation(down(y))); `up` starts at zero, so nothing changes at first."""

    adapter_layer_names = ("bottleneck_down", "bottleneck_up")
    other_param_names = ("bottleneck_inner",)
    # PEFT's own, which it does not annotate
    active_adapters: list[str]
    get_base_layer: Callable[[], nn.Module]
    set_adapter: Callable[..., None]
    _cast_input_dtype: Callable[[Tensor, torch.dtype], Tensor]
    _move_adapter_to_device_of_base_layer: Callable[[str], None]

    def __init__(self, base_layer: nn.Module, adapter_name: str, config: BottleneckConfig) -> None:
        """Wrap `base_layer`, whose weights stay as they are."""
        super().__init__()
        self.base_layer = base_layer
        self.bottleneck_down: Any = nn.ModuleDict()
        self.bottleneck_up: Any = nn.ModuleDict()
        self.bottleneck_inner: Any = nn.ModuleDict()
        self._active_adapter = adapter_name
        self.merged_adapters: list[str] = []
        self.update_layer(adapter_name, config)

    def update_layer(self, adapter_name: str, config: BottleneckConfig, **_: Any) -> None:
        """Add an adapter of that name."""
        width = _out_features(self.get_base_layer())
        up = nn.Linear(config.bottleneck_size, width)
        nn.init.zeros_(up.weight)
        nn.init.zeros_(up.bias)
        inner = nn.Sequential(_ACTIVATIONS[config.activation](), nn.Dropout(config.dropout))
        self.bottleneck_down.update({adapter_name: nn.Linear(width, config.bottleneck_size)})
        self.bottleneck_up.update({adapter_name: up})
        self.bottleneck_inner.update({adapter_name: inner})
        self._move_adapter_to_device_of_base_layer(adapter_name)
        self.set_adapter(self.active_adapters, inference_mode=config.inference_mode)

    def merge(self, *_: Any, **__: Any) -> None:
        """Refused: there is an activation between the two layers."""
        raise ExportError(
            Problem(
                where="merge",
                what="a bottleneck adapter cannot be merged: a non-linear function stands inside it",
                right="the base model with the adapter beside it",
                type="launcher predict RUN, or PeftModel.from_pretrained on the run's final folder",
            )
        )

    def unmerge(self) -> None:
        """Nothing was merged."""

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """[..., in_features] to [..., out_features]."""
        result: Tensor = self.base_layer(x, *args, **kwargs)
        if self.disable_adapters:
            return result
        for name in self.active_adapters:
            if name in self.bottleneck_down:
                down, up = self.bottleneck_down[name], self.bottleneck_up[name]
                inner = down(self._cast_input_dtype(result, down.weight.dtype))
                change = up(self.bottleneck_inner[name](inner))
                result = result + change.to(result.dtype)
        return result

    def __repr__(self) -> str:
        return f"{NAME}.{super().__repr__()}"


def _out_features(layer: nn.Module) -> int:
    """Width of what a linear layer puts out; GPT-2's Conv1D calls it `nf`."""
    return int(layer.nf if hasattr(layer, "nf") else layer.out_features)  # type: ignore[arg-type]


class BottleneckModel(BaseTuner):  # type: ignore[misc]
    """Puts the layers into a model; everything else is PEFT's base class."""

    prefix = f"{NAME}_"
    tuner_layer_cls = BottleneckLayer
    target_module_mapping: dict[str, list[str]] = {}

    def _create_and_replace(
        self,
        peft_config: BottleneckConfig,
        adapter_name: str,
        target: nn.Module,
        target_name: str,
        parent: nn.Module,
        current_key: str,
    ) -> None:
        if isinstance(target, BottleneckLayer):
            target.update_layer(adapter_name, peft_config)
            return
        layer = BottleneckLayer(target, adapter_name, peft_config)
        if adapter_name not in self.active_adapters:
            layer.requires_grad_(False)
        self._replace_module(parent, target_name, layer, target)


def register() -> None:
    """Make the method known to PEFT, once a process."""
    from peft.mapping import PEFT_TYPE_TO_TUNER_MAPPING

    if _type() not in PEFT_TYPE_TO_TUNER_MAPPING:
        register_peft_method(name=NAME, config_cls=BottleneckConfig, model_cls=BottleneckModel)
