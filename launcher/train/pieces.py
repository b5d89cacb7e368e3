"""How a sharded parameter lies on the ranks: the line that shows the division instead of claiming it."""

from math import prod

from launcher.train.job import Job


def pieces_line(job: Job) -> str:
    """The largest divided parameter's whole shape and each rank's piece; empty where nothing is divided.

    Every rank must call.
    """
    named = dict(job.module.named_parameters())
    whole = {name: tuple(getattr(p, "ds_shape", p.shape)) for name, p in named.items()}
    sizes = {name: prod(shape) for name, shape in whole.items()}
    local = {name: tuple(tensor.shape) for name, tensor in job.strategy.local_tensors()}
    divided = [name for name in local if name in whole and prod(local[name]) < sizes[name]]
    shown = max(divided, key=lambda name: sizes[name], default="")
    on_ranks = job.world.gather((shown, local.get(shown)))
    if not shown or len({name for name, _ in on_ranks}) > 1:
        return ""
    pieces = ", ".join(f"rank {rank} {shape}" for rank, (_, shape) in enumerate(on_ranks))
    return f"sharded: {shown} {whole[shown]} is {pieces}"
