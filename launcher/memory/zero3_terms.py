"""ZeRO-3's whole weights on the card, as the memory estimate sees them: moments of a step in bytes."""

from typing import Literal

from launcher.memory.breakdown import Terms, term
from launcher.memory.parameters import experts, pair_matrices
from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes
from launcher.memory.weights import quantised_bytes
from launcher.memory.zero3_gathering import Followed, Gathered, Limits, gathered

Place = Literal["embeddings", "begun", "forward", "loss", "backward", "end"]
At = tuple[Place, int]
NOWHERE: At = ("loss", 0)


def gathers(setting: Setting) -> bool:
    """Whether anything is gathered: one rank has all of it, but for weights that lie in host memory."""
    return setting.sharding_kind == "zero3" and (setting.num_ranks > 1 or setting.sharding.offload_parameters)


def whole_of(setting: Setting, sizes: Sizes) -> Gathered:
    """Elements beside a rank's pieces, moment by moment."""
    shape, least = setting.shape, setting.persistence_elements
    linears = {
        kind: tuple(
            each.weight_params for each in shape.linears if each.kind == kind and each.weight_params > least
        )
        for kind in ("attention", "mlp")
    }
    embeddings = tuple(n for n in (shape.word_embedding_params, shape.other_embedding_params) if n > least)
    head = shape.head_params - shape.classifier_params
    trains = sizes.trains_base and sizes.trained >= shape.num_params
    # Adapters behind checkpointed blocks: the word embedding's output is made to require a gradient.
    is_passed = setting.adapter is not None and setting.recomputes
    model = Followed(
        embeddings=embeddings,
        attention=linears["attention"],
        mlp=(*linears["mlp"], *experts(setting)),
        head=(head,) if head > least else (),
        num_layers=shape.num_layers,
        is_tied=shape.tied and shape.task == "causal_lm",
        recomputes=setting.recomputes,
        embeddings_back=len(embeddings) if trains else int(is_passed),
    )
    limits = Limits(
        # What lies on a disk is not fetched before it has been read (`_is_currently_on_nvme`).
        prefetch=0 if setting.backend.endswith("nvme") else setting.prefetch_bucket_elements,
        live=setting.live_elements,
        reuse=setting.reuse_distance_elements,
    )
    return gathered(model, limits)


def undivided_elements(setting: Setting) -> int:
    """Of the model's own parameters, those that are too small to be divided: norms and biases."""
    shape, least = setting.shape, setting.persistence_elements
    biases = sum(each.out_features for each in shape.linears if each.bias and each.out_features <= least)
    small = sum(each.weight_params for each in shape.linears if each.weight_params <= least)
    other = shape.block_other_params - shape.expert_params
    ends = [shape.final_norm_params, shape.classifier_params, shape.other_embedding_params]
    return shape.num_layers * (biases + small + other) + sum(each for each in ends if each <= least)


def adapter_elements(setting: Setting) -> tuple[int, int]:
    """An adapter's elements: matrices that are too small to be divided, and the others."""
    adapter = setting.adapter
    if adapter is None:
        return 0, 0
    least = setting.persistence_elements
    big = setting.shape.num_layers * sum(each for each in pair_matrices(setting) if each > least)
    big = min(big, adapter.num_params)
    return adapter.num_params + adapter.head_copy_params - big, big


def zero3_terms(setting: Setting, sizes: Sizes, at: At) -> Terms:
    """What is whole on the card at one moment. Adapters that are divided go with the weights around them."""
    if not gathers(setting):
        return []
    found, (place, index) = whole_of(setting, sizes), at
    elements = {
        "embeddings": found.embeddings,
        "begun": found.begun[index],
        "forward": found.forward[index],
        "loss": found.at_loss,
        "backward": found.backward[index],
        "end": found.end,
    }[place]
    return [
        *term("gathered weights", elements * _width(setting, sizes), "what DeepSpeed's coordinator holds"),
        *undivided_terms(setting, sizes),
    ]


def undivided_terms(setting: Setting, sizes: Sizes) -> Terms:
    """Parameters below `stage3_param_persistence_threshold` stay whole between steps, beside their pieces."""
    if not gathers(setting):
        return []
    held = undivided_elements(setting) * sizes.weight_bytes
    held += adapter_elements(setting)[0] * sizes.trained_bytes
    return term("undivided weights", held, "parameters up to the persistence threshold")


def _width(setting: Setting, sizes: Sizes) -> float:
    """Bytes of a gathered element, divided adapters beside it counted in."""
    width = float(sizes.weight_bytes) if setting.quantisation == "none" else quantised_bytes(setting)
    beside = adapter_elements(setting)[1] * sizes.trained_bytes
    return width + beside / max(1, setting.shape.num_params)


def left_bytes(setting: Setting, sizes: Sizes) -> tuple[float, float]:
    """What an evaluation leaves whole, and of it the largest buffer that is still to be copied out."""
    if not gathers(setting) or not setting.evaluates:
        return 0, 0
    found, width = whole_of(setting, sizes), _width(setting, sizes)
    return found.left * width, found.on_the_way * width
