"""What every fine-tuning method's options share, and where methods are registered."""

from dataclasses import dataclass

from launcher.options import Options
from launcher.registry import Registry


class AdapterOptions(Options):
    """Base of a method's options. Each subclass narrows `method` to its own name."""

    method: str


@dataclass(frozen=True, kw_only=True)
class Method:
    """A fine-tuning method: its options, and `module:function` that applies it (imports torch)."""

    name: str
    summary: str
    options: type[AdapterOptions]
    trains_base: bool
    apply: str


METHODS: Registry[Method] = Registry("method", "launcher.adapters")
