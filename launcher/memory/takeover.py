"""What stands beside the weights while a backend takes a model over, and while a save gathers its state."""

from collections.abc import Iterator

from launcher.memory.breakdown import Term, Terms, term, total
from launcher.memory.gathered import units_of
from launcher.memory.parameters import matrices, trained_matrices
from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes, ranks_of
from launcher.memory.states import gradient_width
from launcher.memory.weights import quantised_bytes, weight_terms
from launcher.memory.zero3_terms import gathers, left_bytes, undivided_terms

# torch/nn/parallel/distributed.py: `broadcast_bucket_size`.
BROADCAST_BYTES = 250 * 2**20
FLATTENED = "flattened weights"


def load_terms(setting: Setting, sizes: Sizes) -> Terms:
    """What stands beside the weights while a backend takes the model over.

    FSDP2 divides on the card what was moved there whole. Trained weights stay whole until the optimizer has
    its pieces (launcher.backends.fsdp_torch: the groups hold them); frozen ones go unit by unit, so that
    only the first unit's pieces stand beside them all. DDP sends rank 0's weights round, see
    `_sent_at_once`, and makes its buckets. ZeRO-1/2 flatten what trains.
    """
    whole = setting.shape.num_params * sizes.weight_bytes
    if setting.sharding_kind == "fsdp2" and setting.loads_whole:
        units = units_of(setting, sizes)
        adapters = 0 if sizes.trains_base else sizes.trained * sizes.trained_bytes
        pieces = whole if sizes.trains_base else units.embeddings or units.block
        if setting.sharding.offload_parameters:  # they go to host memory one by one
            linears = (each.weight_params for each in setting.shape.linears)
            is_first = sizes.trains_base or units.embeddings
            pieces = (max(matrices(setting)) if is_first else max(linears)) * sizes.weight_bytes
        return [
            Term(
                name="weights before sharding", num_bytes=whole + adapters, formula="P x dtype, and adapters"
            ),
            Term(name="weights", num_bytes=pieces // ranks_of(setting), formula="their pieces so far"),
        ]
    weights = weight_terms(setting, sizes)
    if setting.sharding_kind == "zero3" and setting.loads_whole:
        return max(_divided(setting, sizes), [*weights, *_prepared(setting, sizes)], key=total)
    held, name, formula = _taken_over(setting, sizes, whole)
    if name == FLATTENED:  # fp32 masters are parts of it, made when the first copy is gone
        weights = [each for each in weights if each.name != "fp32 masters"]
    return [*weights, *term(name, held, formula)]


def _divided(setting: Setting, sizes: Sizes) -> Terms:
    """ZeRO-3 takes one parameter after another to the card, whole, and keeps a piece
    (launcher.backends.zero3_torch: divide). With its weights on a disk the engine moves the model there
    first, and divides it from the embedding on (deepspeed 0.19.8, `_partition_param`).
    """  # noqa: D205
    if not setting.backend.endswith("nvme"):
        held = weight_terms(setting, sizes)
        pieces = [each for each in held if each.name != "fp32 masters"]
        largest = max(matrices(setting)) * sizes.weight_bytes
        return [*pieces, *term("weights before sharding", largest, "the largest parameter")]
    adapters = 0 if sizes.trains_base else sizes.trained * sizes.trained_bytes
    whole = setting.shape.num_params * sizes.weight_bytes + adapters
    first = setting.shape.word_embedding_params * sizes.weight_bytes // ranks_of(setting)
    first = 0 if setting.num_ranks < 2 or setting.sharding.offload_parameters else first
    return [
        *term("weights before sharding", whole, "P x dtype, and adapters"),
        *term("weights", first, "the first parameter's piece"),
    ]


def _prepared(setting: Setting, sizes: Sizes) -> Terms:
    """Then it makes its bucket and its gradients' partition, and gathers each trained parameter once for a
    hook (stage3.py, `_setup_for_real_optimizer`, `create_reduce_and_remove_grad_hooks`).
    """  # noqa: D205
    trained = sizes.trained * gradient_width(setting, sizes) // ranks_of(setting)
    held = 0 if setting.sharding.offload_optimizer else trained
    held += setting.reduce_bucket_elements * gradient_width(setting, sizes)
    largest = max(trained_matrices(setting, sizes), default=0) if setting.num_ranks > 1 else 0
    held += largest * (sizes.weight_bytes if sizes.trains_base else sizes.trained_bytes)
    return term("partitioning", held, "gradients / ranks, a bucket, the largest trained parameter")


def _taken_over(setting: Setting, sizes: Sizes, whole: int) -> tuple[int, str, str]:
    """Bytes beside the weights, what they are, and why."""
    trained = sizes.trained * gradient_width(setting, sizes)
    if setting.num_ranks < 2 or not setting.loads_whole:
        return 0, "", ""
    if setting.sharding_kind == "none":
        sent = min(whole, BROADCAST_BYTES) if sizes.trains_base else _sent_at_once(setting, sizes)
        return max(sent, trained), "buckets", "as the gradients; weights on their way"
    if setting.sharding_kind in ("zero1", "zero2"):
        return trained, FLATTENED, "what trains, once more"
    return 0, "", ""


def _sent_at_once(setting: Setting, sizes: Sizes) -> int:
    """Bytes of two flat buffers in a row: as many are on their way at once.

    torch 2.13, `_sync_module_states` and broadcast_coalesced: tensors of one type, in their order, until a
    buffer has 250 MiB; one that a single tensor fills is that tensor. Adapters are a buffer of their own.
    """
    adapters = min(sizes.trained * sizes.trained_bytes, BROADCAST_BYTES)
    buckets, size, count = [], 0, 0
    for num_bytes in _sent(setting, sizes):
        size, count = size + num_bytes, count + 1
        if size >= BROADCAST_BYTES:
            buckets.append(size if count > 1 else 0)
            size = count = 0
    buckets.append(size)
    pairs = zip(buckets, buckets[1:], strict=False)
    return max([first + second for first, second in pairs] + [buckets[0] + adapters])


def _sent(setting: Setting, sizes: Sizes) -> Iterator[int]:
    """Bytes of the frozen parameters, in order; of packed layers alone, where there are any."""
    shape = setting.shape
    is_packed = setting.quantisation != "none"
    width = quantised_bytes(setting) if is_packed else sizes.weight_bytes
    if not is_packed:
        yield shape.word_embedding_params * sizes.weight_bytes
        yield shape.other_embedding_params * sizes.weight_bytes
    for _ in range(shape.num_layers):
        yield from (int(each.weight_params * width) for each in shape.linears)
        if not is_packed:
            yield (shape.block_params - sizes.block_linear) * sizes.weight_bytes
    if not is_packed:
        yield (shape.head_params + shape.final_norm_params) * sizes.weight_bytes


def save_terms(setting: Setting, sizes: Sizes) -> Terms:
    """What a save puts on the card: everything at once, or one parameter after another.

    The launcher's own takes each trained parameter's weight and both moments, whole and in fp32, while the
    last one's are still in hand (Strategy.state); then every weight, copied off the card.
    """
    if setting.save_gathers and setting.sharding.parameters:
        whole = setting.shape.num_params * sizes.weight_bytes
        return term("gathered state", whole, "P x dtype: whole state dict")
    if setting.sharding_kind == "none" or not setting.saves:
        return []
    left, on_the_way = left_bytes(setting, sizes)
    states = [
        *_states_in_hand(setting, sizes),
        *term("gathered weights", left, "left by an evaluation"),
        *undivided_terms(setting, sizes),
    ]
    if not setting.sharding.parameters:
        return states
    waited_for = [
        *term("gathered weights", left + on_the_way, "left by an evaluation, on the way included"),
        *undivided_terms(setting, sizes),
    ]
    one = sizes.weight_bytes * max(matrices(setting))
    one += one // ranks_of(setting) if setting.sharding.offload_parameters else 0
    weights = term("gathered parameter", one if gathers(setting) or setting.num_ranks > 1 else 0, "largest")
    return max(states, waited_for, weights, key=total)


def _states_in_hand(setting: Setting, sizes: Sizes) -> Terms:
    """A parameter's weight and moments beside the last one's; pieces from host memory come to the card."""
    pieces = (
        1 / ranks_of(setting) if setting.sharding.offload_optimizer and setting.sharding.parameters else 0
    )
    found, most, before = trained_matrices(setting, sizes), 0.0, 0
    for elements in found:
        most = max(most, 3 * (before + elements) + pieces * elements)
        before = elements
    return term("gathered parameters", 4 * most, "3 x 4 bytes x two parameters in a row")
