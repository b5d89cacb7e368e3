"""How many parameters a method trains on a model, from the model's shape: no torch, no weights.

The figures are those of PEFT's modules (0.21), which a test compares on the real architectures.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from launcher.adapters.bottleneck import BottleneckOptions
from launcher.adapters.full import FullOptions
from launcher.adapters.ia3 import Ia3Options
from launcher.adapters.lora import LoraOptions
from launcher.adapters.options import AdapterOptions
from launcher.adapters.p_tuning import PTuningOptions
from launcher.adapters.prefix import PrefixOptions, needs_decoder
from launcher.adapters.prompt import PromptOptions
from launcher.adapters.targets import keys_and_values, outputs, resolve_targets
from launcher.errors import Problem, RecipeError
from launcher.models.shape import LinearShape, ModelShape


@dataclass(frozen=True, kw_only=True)
class AdapterCount:
    """What a method adds and trains.

    `num_params`: trained elements that the method brings (of full fine-tuning: all). `head_copy_params`: a
    classifier's new head, of which PEFT trains a copy beside the frozen one. `targets`: the linear layers
    of one block that carry something, by their path in the block; `num_targets` counts them in all blocks.
    """

    num_params: int
    targets: tuple[str, ...] = ()
    num_targets: int = 0
    rank: int = 0
    virtual_tokens: int = 0
    head_copy_params: int = 0

    @property
    def num_trained(self) -> int:
        """Everything that has a gradient."""
        return self.num_params + self.head_copy_params


def count(options: AdapterOptions, shape: ModelShape) -> AdapterCount:
    """What the method of `options` trains on a model of that shape.

    Raises RecipeError where the targets do not exist in this architecture, or the method does not go into it.
    """
    return _COUNTERS[type(options)](options, shape)


def linear_names(shape: ModelShape) -> list[str]:
    """Full names of the linear layers of all blocks, as in the module tree."""
    return [
        f"{shape.blocks_path}.{index}.{linear.name}"
        for index in range(shape.num_layers)
        for linear in shape.linears
    ]


def _found(shape: ModelShape, names: Iterable[str]) -> list[LinearShape]:
    """The linear layers behind full names, one for each name."""
    of_block = {linear.name: linear for linear in shape.linears}
    start = len(shape.blocks_path) + 1
    return [of_block[name[start:].partition(".")[2]] for name in names]


def _beside(
    shape: ModelShape, found: list[LinearShape], each: Callable[[LinearShape], int], rank: int = 0
) -> AdapterCount:
    if not found:
        raise _nowhere(shape)
    return AdapterCount(
        num_params=sum(each(linear) for linear in found),
        targets=tuple(dict.fromkeys(linear.name for linear in found)),
        num_targets=len(found),
        rank=rank,
        head_copy_params=shape.classifier_params,
    )


def _nowhere(shape: ModelShape) -> RecipeError:
    there = ", ".join(linear.name for linear in shape.linears)
    return RecipeError(
        Problem(
            where="adapter.method",
            what=f"the blocks of a {shape.model_type} model have no linear layer where this method goes",
            right=f"a method that goes beside the layers that are there: {there}",
            type="adapter.method=lora, adapter.lora_target_modules=attention",
        )
    )


def lora_params(linear: LinearShape, rank: int, *, is_dora: bool = False) -> int:
    """Down `[rank, in]` and up `[out, rank]`; DoRA adds a length per output."""
    return rank * (linear.in_features + linear.out_features) + (linear.out_features if is_dora else 0)


def bottleneck_params(width: int, size: int) -> int:
    """Down `[size, width]` and up `[width, size]`, each with a bias."""
    return 2 * width * size + size + width


def input_width(shape: ModelShape) -> int:
    """Of a token's embedding: narrower than the blocks in ELECTRA's small model and in some of OPT's."""
    return shape.word_embedding_params // shape.vocab_size


def prompt_params(shape: ModelShape, num_tokens: int) -> int:
    """One vector as wide as a token's embedding for each token."""
    return num_tokens * input_width(shape)


def p_tuning_params(shape: ModelShape, num_tokens: int, encoder_hidden_size: int) -> int:
    """The tokens' embedding, and three linear layers width -> encoder -> encoder -> width with biases."""
    width, inner = input_width(shape), encoder_hidden_size
    return prompt_params(shape, num_tokens) + (width + inner + width) * inner + inner + inner + width


def prefix_params(shape: ModelShape, num_tokens: int, projection_size: int = 0) -> int:
    """A key and a value for each token and layer, as wide as the key-value heads together.

    With `projection_size`: one embedding, and two linear layers with biases that make them.
    """
    width = shape.num_kv_heads * shape.head_dim
    whole = 2 * shape.num_layers * width
    if not projection_size:
        return num_tokens * whole
    return num_tokens * width + (width + 1) * projection_size + (projection_size + 1) * whole


def _full(_: FullOptions, shape: ModelShape) -> AdapterCount:
    return AdapterCount(num_params=shape.num_params)


def _lora(options: LoraOptions, shape: ModelShape) -> AdapterCount:
    names = resolve_targets(options.lora_target_modules, linear_names(shape))
    return _beside(
        shape,
        _found(shape, names),
        lambda linear: lora_params(linear, options.lora_r, is_dora=options.use_dora),
        rank=options.lora_r,
    )


def _bottleneck(options: BottleneckOptions, shape: ModelShape) -> AdapterCount:
    is_houlsby = options.bottleneck_placement == "houlsby"
    names = outputs(linear_names(shape), attention=is_houlsby, mlp=True)
    return _beside(
        shape,
        _found(shape, names),
        lambda linear: bottleneck_params(linear.out_features, options.bottleneck_size),
        rank=options.bottleneck_size,
    )


def _ia3(_: Ia3Options, shape: ModelShape) -> AdapterCount:
    """A factor per output of keys and values, and per input of the MLP's last layer."""
    names = linear_names(shape)
    inner = set(outputs(names, attention=False, mlp=True))
    chosen = inner | set(keys_and_values(names))
    feedforward = {linear.name for linear in _found(shape, inner)}
    return _beside(
        shape,
        _found(shape, [name for name in names if name in chosen]),
        lambda linear: linear.in_features if linear.name in feedforward else linear.out_features,
    )


def _in_front(shape: ModelShape, num_params: int, num_tokens: int) -> AdapterCount:
    return AdapterCount(
        num_params=num_params, virtual_tokens=num_tokens, head_copy_params=shape.classifier_params
    )


def _prompt(options: PromptOptions, shape: ModelShape) -> AdapterCount:
    tokens = options.num_virtual_tokens
    return _in_front(shape, prompt_params(shape, tokens), tokens)


def _p_tuning(options: PTuningOptions, shape: ModelShape) -> AdapterCount:
    tokens = options.num_virtual_tokens
    return _in_front(shape, p_tuning_params(shape, tokens, options.encoder_hidden_size), tokens)


def _prefix(options: PrefixOptions, shape: ModelShape) -> AdapterCount:
    if not shape.is_decoder:
        raise needs_decoder(shape.model_type)
    tokens = options.num_virtual_tokens
    projection = options.encoder_hidden_size if options.prefix_projection else 0
    return _in_front(shape, prefix_params(shape, tokens, projection), tokens)


_COUNTERS: dict[type[AdapterOptions], Callable[[Any, ModelShape], AdapterCount]] = {
    BottleneckOptions: _bottleneck,
    FullOptions: _full,
    Ia3Options: _ia3,
    LoraOptions: _lora,
    PTuningOptions: _p_tuning,
    PrefixOptions: _prefix,
    PromptOptions: _prompt,
}
