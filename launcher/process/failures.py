"""What ended a rank though nobody at this project raised it: told as a finding where its cause is known.

Torch says such things as RuntimeError; the text is all there is. Anything else keeps its
traceback, without secrets.
"""

import traceback
from collections.abc import Mapping

from launcher.errors import EXIT_RESUMABLE, DataError, HardwareError, LauncherError, Problem, TrainError
from launcher.hardware import ports
from launcher.process.siblings import missing_ranks
from launcher.process.symptoms import Symptom, recognise
from launcher.redact import redact


class LostRank(TrainError):  # noqa: N818 (as its siblings in errors)
    """Another rank is gone or never came; the run can be resumed."""

    exit_code = EXIT_RESUMABLE


class LostWorker(DataError):  # noqa: N818
    """A process that prepares batches ended; the run can be resumed."""

    exit_code = EXIT_RESUMABLE


def explain(error: BaseException, environ: Mapping[str, str]) -> LauncherError | None:
    """The error as a finding, or None where its cause is not known."""
    if not isinstance(error, RuntimeError | OSError | EOFError):
        return None
    text = f"{type(error).__name__}: {error}"
    symptom = recognise(text)
    if symptom is None:
        return None
    problem = symptom.problem(text)
    if symptom.is_worker:
        return LostWorker(problem)
    return (
        LostRank(_with_ranks(symptom, problem, environ))
        if symptom.is_peer
        else _port_in_use(problem, environ)
    )


def _with_ranks(symptom: Symptom, problem: Problem, environ: Mapping[str, str]) -> Problem:
    missing = missing_ranks(environ)
    if not missing:
        return problem
    names = ", ".join(f"rank {rank}" for rank in missing)
    return Problem(
        where=f"rank {environ.get('RANK', '0')}",
        what=f"{names} {'is' if len(missing) == 1 else 'are'} missing: {problem.what}",
        right=problem.right,
        type=problem.type,
    )


def _port_in_use(problem: Problem, environ: Mapping[str, str]) -> HardwareError:
    text = environ.get("MASTER_PORT", "")
    if not text.isdigit() or ports.is_free(int(text)):
        return HardwareError(problem)
    return HardwareError(
        Problem(
            where=f"port {text}",
            what=f"the rendezvous port is held by {ports.holder(int(text))}",
            right="another port for this run; nothing is killed for you",
            type=problem.type,
        )
    )


def traceback_of(error: BaseException) -> str:
    """The traceback as Python prints it, without secrets."""
    return redact("".join(traceback.format_exception(error)))
