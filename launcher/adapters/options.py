"""What every fine-tuning method's options share, and where methods are registered."""

from dataclasses import dataclass

from launcher.options import Options
from launcher.registry import Registry


class AdapterOptions(Options):
    """Base of a method's options. Each subclass narrows `method` to its own name."""

    method: str


@dataclass(frozen=True, kw_only=True)
class Method:
    """A fine-tuning method: its options, and `module:function` that applies it (imports torch).

    `needs_cache`: it speaks to attention through the key-value cache, which recomputing activations
    turns off. `adds_tokens`: rows grow by its virtual tokens. `before_save` names what brings the adapter
    into the form that is saved, given the model and its whole weights.
    """

    name: str
    summary: str
    options: type[AdapterOptions]
    trains_base: bool
    apply: str
    needs_cache: bool = False
    adds_tokens: bool = False
    before_save: str = ""


_OTHER_NAMES = {
    "qlora": "lora   (with model.load_in_4bit: true)",
    "dora": "lora   (with adapter.use_dora: true)",
    "rslora": "lora   (with adapter.use_rslora: true)",
    "freeze": "full   (with freeze: and what stays frozen)",
    **dict.fromkeys(("none", "no", "full_finetune", "full_finetuning", "finetune", "sft", "all"), "full"),
    **dict.fromkeys(("adapter", "adapters", "houlsby", "pfeiffer"), "bottleneck"),
    **dict.fromkeys(("prefix_tuning", "ptuning_v2", "p_tuning_v2"), "prefix"),
    **dict.fromkeys(("prompt_tuning", "soft_prompt"), "prompt"),
    "ptuning": "p_tuning",
}
METHODS: Registry[Method] = Registry("method", "launcher.adapters", _OTHER_NAMES)
