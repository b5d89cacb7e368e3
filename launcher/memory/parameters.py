"""A model's large parameters one by one, where something takes them one by one: elements, in their order."""

from collections.abc import Iterator

from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes


def matrices(setting: Setting) -> Iterator[int]:
    """Elements of the model's large parameters, in their order; of blocks the first two."""
    shape = setting.shape
    yield shape.word_embedding_params
    if shape.other_embedding_params:
        yield shape.other_embedding_params
    for _ in range(min(2, shape.num_layers)):
        yield from (each.weight_params for each in shape.linears)
        yield from experts(setting)
    if head := shape.head_params - shape.classifier_params:
        yield head


def experts(setting: Setting) -> tuple[int, ...]:
    """All experts of a block are one module's parameters: three matrices."""
    return (setting.shape.expert_params // 3,) * 3 if setting.shape.expert_params else ()


def pair_matrices(setting: Setting) -> list[int]:
    """Elements of both matrices of every low-rank pair of one block."""
    adapter = setting.adapter
    if adapter is None or not adapter.rank:
        return []
    pairs = [each for each in setting.shape.linears if each.name in adapter.targets]
    return [adapter.rank * side for each in pairs for side in (each.in_features, each.out_features)]


def trained_matrices(setting: Setting, sizes: Sizes) -> list[int]:
    """Elements of the trained parameters, in their order; of blocks the first two."""
    if sizes.trains_base:
        return [*matrices(setting)]
    adapter = setting.adapter
    if adapter is None or not adapter.rank:
        return [max(1, sizes.trained // max(1, setting.shape.num_layers))]
    return pair_matrices(setting) * 2
