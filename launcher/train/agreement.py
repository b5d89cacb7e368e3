"""One plan for all ranks: made once, by the first, for the weakest machine; then verified by every one."""

from dataclasses import replace
from pathlib import Path

from launcher.errors import LaunchMismatch, Problem
from launcher.facts import Machine, Plan, RunArguments
from launcher.plan.choose import fingerprint, make_plan
from launcher.plan.compare import read_plan, require_same
from launcher.plan.known_shape import known_shape
from launcher.plan.started import Started
from launcher.train.world import World


def agree_on_plan(arguments: RunArguments, started: Started, machine: Machine, world: World) -> Plan:
    """The first rank plans for the weakest machine; the others verify that they mean the same run.

    Raises what planning raises, on every rank, and LaunchMismatch where a rank means another run.
    """
    recipe, num_ranks = started.loaded.recipe, world.num_ranks
    machines = world.gather(machine)
    weakest = replace(
        machine,
        gpu_memory_bytes=min(each.gpu_memory_bytes for each in machines),
        compute_capability=min(each.compute_capability for each in machines),
        cpu_has_bf16=all(each.cpu_has_bf16 for each in machines),
    )
    plan = world.broadcast(
        world.agreed(
            lambda: make_plan(
                recipe,
                name=started.name,
                machine=weakest,
                backend=started.backend,
                num_ranks=num_ranks,
                shape=known_shape(recipe),
            )
        )
    )
    world.agreed(lambda: _keep_to(arguments.plan, plan))
    mine = fingerprint(recipe, started.backend, num_ranks, machine.torch_version)
    world.agreed(lambda: _verify(plan, mine, world.rank))
    return plan


def _keep_to(file: str | None, plan: Plan) -> None:
    """Compare with the plan that was made before, if one was named: ranks, backend, batch."""
    if file is not None:
        require_same(read_plan(Path(file)), plan)


def _verify(plan: Plan, mine: str, rank: int) -> None:
    if plan.fingerprint != mine:
        raise LaunchMismatch(
            Problem(
                where=f"rank {rank}",
                what=f"this rank would run {mine}, the plan is {plan.fingerprint}",
                right="the same recipe, command line and versions on every rank",
                type="start all ranks with one command",
            )
        )
