"""Files that a file names: a DeepSpeed JSON or an Accelerate YAML, read where they are found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from launcher.errors import LauncherError
from launcher.recipe.importing.dialect import DIALECTS
from launcher.recipe.importing.draft import MISSING, Draft
from launcher.recipe.importing.source import Source, read_source
from launcher.recipe.importing.values import is_on

BACKEND = "backend.name"


def settle_backend(draft: Draft) -> None:
    """What the starter's own words, `deepspeed` and `fsdp` say about backend and processes."""
    command = draft.source.command
    if command is not None:
        draft.num_processes = draft.num_processes or command.num_processes
        _starter(draft, command.starter_options)
    key, value = draft.find("deepspeed deepspeed_config")
    draft.take("deepspeed deepspeed_config")
    if value not in (MISSING, None, "", {}, False):
        _deepspeed(draft, key, value)
    elif value is not MISSING:
        draft.quiet.append(key)
    settle_fsdp(draft)


def _starter(draft: Draft, options: dict[str, str]) -> None:
    """The starter's options that mean something here; the others are told."""
    taken = {"nproc_per_node", "num_processes", "num_gpus", "include"}
    if (mixed := options.get("mixed_precision", "no")) not in ("no", "fp8"):
        draft.put("--mixed_precision", mixed, {"training.precision": mixed})
    if config := options.get("config_file"):
        _named(draft, "--config_file", config, "accelerate")
    if "nnodes" in options and options["nnodes"] not in ("1", "1:1"):
        draft.leave("--nnodes", options["nnodes"], "one machine only")
    if "num_machines" in options and options["num_machines"] != "1":
        draft.leave("--num_machines", options["num_machines"], "one machine only")
    known = {*taken, "config_file", "mixed_precision", "nnodes", "num_machines"}
    draft.needless += [f"--{name}" for name in options if name not in known]


def _deepspeed(draft: Draft, key: str, value: Any) -> None:
    if isinstance(value, dict):
        source = Source(path=draft.source.path, text=draft.source.text, values=value)
        draft.put(key, "{...}", _absorbed(draft, source, "deepspeed"))
    else:
        _named(draft, key, str(value), "deepspeed")


def _named(draft: Draft, key: str, text: str, dialect: str) -> None:
    """Read the named file; where it is not found, its name may still tell the stage."""
    path = sought(draft, text)
    if path is not None:
        try:
            draft.put(key, text, _absorbed(draft, read_source(path), dialect))
        except LauncherError as error:
            draft.leave(key, text, f"{error.problems[0].where}: {error.problems[0].what}", "backend: zero2")
        return
    if name := _by_name(text):
        draft.put(key, text, {BACKEND: name})
        draft.notes.append(f"{BACKEND}: {name}: by the name {text}: there is no such file to look into")
    else:
        draft.leave(key, text, "there is no such file to look into", "backend: zero2, or zero3")


def sought(draft: Draft, text: str) -> Path | None:
    """A file that the source names: beside it, above it, or in the working directory."""
    path = Path(text).expanduser()
    parents = list(draft.source.path.resolve().parents)[:4]
    places = [path] if path.is_absolute() else [base / path for base in (Path.cwd(), *parents)]
    return next((place for place in places if place.is_file()), None)


def _absorbed(draft: Draft, source: Source, dialect: str) -> dict[str, Any]:
    """Read the other file as its dialect and take in what it says; gives the backend it means."""
    other = Draft(dialect=DIALECTS.get(dialect), source=source, num_processes=draft.num_processes)
    other.dialect.settle(other)
    other.apply_rows()
    other.account()
    other.notes = [note for note in other.notes if not note.startswith("training.precision")]
    name = other.values.get(BACKEND)
    draft.absorb(other)
    return {BACKEND: name} if name else {}


def _by_name(text: str) -> str:
    name = Path(text).stem.lower().replace("-", "_")
    for stage in ("3", "2", "1"):
        if any(sign in name for sign in (f"zero{stage}", f"z{stage}", f"stage{stage}", f"stage_{stage}")):
            return f"zero{stage}" + ("_offload" if "offload" in name or "cpu" in name else "")
    return ""


def settle_fsdp(draft: Draft) -> None:
    """`fsdp: "full_shard auto_wrap offload"` and the block beside it."""
    key, value = draft.find("fsdp")
    block_key, block = draft.find("fsdp_config")
    draft.take("fsdp")
    draft.take("fsdp_config")
    block = block if isinstance(block, dict) else {}
    words = value.replace(",", " ").split() if isinstance(value, str) else value
    if words is True or isinstance(words, list) and any(words):
        put_fsdp(draft, key, value, block_key, block, words if isinstance(words, list) else [])
        return
    draft.quiet += [name for name, each in ((key, value), (block_key, block)) if each not in (MISSING, {})]


def put_fsdp(
    draft: Draft, key: str, value: Any, block_key: str, block: dict[str, Any], words: list[str]
) -> None:
    """FSDP of either version becomes FSDP2; what the block says besides is taken key by key."""
    offload = "offload" in words or is_on(_in(block, "offload_params"))
    draft.put(key, value, {BACKEND: "fsdp2_offload" if offload else "fsdp2"})
    if str(_in(block, "version") or 1) != "2":
        draft.notes.append(
            "backend: FSDP's second version; the first one keeps whole gradients of frozen weights"
        )
    if any(word in ("shard_grad_op", "hybrid_shard") for word in words):
        draft.leave(key, value, "this way of sharding is not offered", "backend.reshard_after_forward: false")
    for name, inner in block.items():
        _fsdp_key(draft, f"{block_key}.{name}", name.removeprefix("fsdp_"), inner)


def _in(block: dict[str, Any], name: str) -> Any:
    return block.get(name, block.get(f"fsdp_{name}"))


FSDP_KEYS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "transformer_layer_cls_to_wrap": lambda value: {
        "backend.wrap_classes": [each.strip() for each in value.split(",")]
        if isinstance(value, str)
        else value
    },
    "activation_checkpointing": lambda value: (
        {"training.activation_checkpointing": True} if is_on(value) else {}
    ),
    "reshard_after_forward": lambda value: (
        {"backend.reshard_after_forward": is_on(value)} if str(value).lower() in ("true", "false") else {}
    ),
}
FSDP_DECIDED = [
    "version",
    "offload_params",
    "auto_wrap_policy",
    "state_dict_type",
    "cpu_ram_efficient_loading",
    "use_orig_params",
    "sync_module_states",
    "backward_prefetch",
    "forward_prefetch",
    "backward_prefetch_policy",
    "limit_all_gathers",
]


def _sharding(draft: Draft, place: str, value: Any) -> None:
    """The first version's ways of sharding: two of them are FSDP2's with and without resharding."""
    way = str(value).rpartition(".")[2].upper()
    if way in ("1", "FULL_SHARD"):
        draft.needless.append(place)
    elif way in ("2", "SHARD_GRAD_OP"):
        draft.put(place, value, {"backend.reshard_after_forward": False})
    else:
        nearest = "backend: multi_gpu" if way in ("3", "NO_SHARD") else "backend: fsdp2, over all cards"
        draft.leave(place, value, "this way of sharding is not offered", nearest)


def _fsdp_key(draft: Draft, place: str, name: str, value: Any) -> None:
    if name == "sharding_strategy" and value:
        _sharding(draft, place, value)
    elif name in FSDP_KEYS:
        ours = FSDP_KEYS[name](value) if value else {}
        if ours:
            draft.put(place, value, ours)
        else:
            draft.quiet.append(place)
    elif name in FSDP_DECIDED:
        draft.needless.append(place)
    elif value:
        draft.leave(place, value, "FSDP2 is set up by the backend here", "backend.wrap_classes")
    else:
        draft.quiet.append(place)
