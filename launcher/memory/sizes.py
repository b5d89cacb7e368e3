"""How many elements of each kind one rank holds, and how many bytes an element takes."""

from dataclasses import dataclass

from launcher.memory.setting import Setting

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
COMPUTE_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
# torch's caching allocator rounds every block up to this many bytes (c10/cuda/CUDACachingAllocator.h).
ALLOCATION_BYTES = 512


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Elements of the whole model, and the byte widths that a setting computes with.

    `block_linear`: quantisable weights of one block; `residual_bytes`: an element of the stream between
    blocks; `compute_bytes`: an element of a matrix product, `activation_bytes`: of what a linear
    layer returns; `weight_bytes`, `trained_bytes`: as held.
    """

    trained: int
    frozen: int
    block: int
    block_linear: int
    root: int
    weight_bytes: int
    trained_bytes: int
    compute_bytes: int
    activation_bytes: int
    residual_bytes: int
    tokens: int

    @property
    def trains_base(self) -> bool:
        """Whether the model's own weights train, all of them or those that are open."""
        return self.frozen == 0

    @property
    def has_masters(self) -> bool:
        """Whether trained weights exist twice: in the compute type, and in fp32 for the optimizer."""
        return self.trains_base and self.trained_bytes > self.weight_bytes


def sizes_of(setting: Setting) -> Sizes:
    """Read off the shape and the setting."""
    shape = setting.shape
    weight_bytes = BYTES[setting.weights_dtype]
    pure = setting.pure or setting.precision == "fp32"
    compute_bytes = weight_bytes if setting.pure else COMPUTE_BYTES[setting.precision]
    adapter = setting.adapter
    block_linear = sum(linear.weight_params for linear in shape.linears)
    own = shape.num_params if setting.trained_params is None else setting.trained_params
    return Sizes(
        trained=own if adapter is None else adapter.num_params + adapter.head_copy_params,
        frozen=0 if adapter is None else shape.num_params,
        block=shape.block_params,
        block_linear=block_linear,
        root=shape.root_params,
        weight_bytes=weight_bytes,
        trained_bytes=BYTES[setting.trainable_dtype],
        compute_bytes=compute_bytes,
        activation_bytes=4 if setting.kbit_upcast or _widens(setting, pure) else compute_bytes,
        residual_bytes=_residual_bytes(setting, weight_bytes, pure),
        tokens=setting.micro_batch * setting.seq_len,
    )


def _widens(setting: Setting, pure: bool) -> bool:
    """Bitsandbytes' packed layers return their input's type: fp32 behind autocast's layer norm.

    bitsandbytes 0.50.2, `Linear4bit.forward`: `.to(inp_dtype)`; likewise behind norms that kbit preparation
    made fp32.
    """
    return not pure and setting.shape.norm == "layer" and setting.quantisation in ("nf4", "fp4")


def _residual_bytes(setting: Setting, weight_bytes: int, pure: bool) -> int:
    """The stream starts in the embedding's type; autocast's layer norm and fp32 norms make it fp32.

    Autocast runs layer_norm in fp32 (torch.amp's op list), so the stream is fp32 where it comes out of one:
    behind each sublayer, or behind the embeddings. Where norms only lead into sublayers (GPT-2), and
    with RMS norms, which return their input's type, it stays as the embeddings are. kbit preparation holds
    everything unquantised in fp32. FSDP's mixed precision casts the gathered weights, and with them the
    stream.
    """
    if not pure and setting.shape.norm == "layer" and setting.shape.normalises_stream:
        return 4
    if _widens(setting, pure):
        return 4
    if setting.sharding_kind == "fsdp1" or setting.gathered_dtype:
        gathered = BYTES[setting.gathered_dtype] if setting.gathered_dtype else weight_bytes
        return min(gathered, COMPUTE_BYTES[setting.precision]) if not setting.pure else gathered
    if setting.kbit_upcast:
        return 4
    return weight_bytes


def ranks_of(setting: Setting) -> int:
    """Over how many ranks a sharded tensor is divided."""
    return max(1, setting.num_ranks)
