"""How a run's checkpoints come to their end: stopped and saved, finished already, the best one found."""

from collections.abc import Iterable
from pathlib import Path

from launcher.errors import Interrupted
from launcher.plan.write import write_file
from launcher.train.callbacks.callback import Callback
from launcher.train.callbacks.save import Save
from launcher.train.checkpoint import require_continuity
from launcher.train.checkpoint_files import fault, newest_whole, place_of
from launcher.train.folder import MODEL, SUMMARY, Claim, is_finished
from launcher.train.job import Job
from launcher.train.save_failure import Failure, failure_of, last_save_failed


def saving(callbacks: Iterable[Callback]) -> Save:
    """The one callback that saves."""
    return next(each for each in callbacks if isinstance(each, Save))


def is_ended(job: Job, place: Claim) -> bool:
    """Whether the run to be continued is finished; says so. Every rank calls."""
    options = job.recipe.training

    def look() -> bool:
        if place.checkpoint is not None:
            require_continuity(job, place.checkpoint)
        return is_finished(place, total_steps=job.total_steps, patience=options.early_stopping_patience)

    ended = job.world.broadcast(job.world.agreed(lambda: look() if job.world.is_first else False))
    if ended:
        job.say(f"this run is finished: its model is in {place.folder / MODEL}; nothing is left to do")
        job.say("to train on: max_steps=N or num_train_epochs=N with more than before, or --new")
    return ended


def exported_shapes(job: Job) -> dict[str, tuple[int, ...]]:
    """The parameters of the final model with their shapes: of an adapter what is trained, else all."""
    if job.recipe.adapter.method == "full":
        return job.shapes
    return {name: job.shapes[name] for name, _ in job.strategy.named_trainable()}


def stop_if_asked(job: Job, save: Save) -> None:
    """After the loop: where a signal has ended it, save and raise Interrupted. Every rank calls."""
    if not job.stop.by_signal(job.world) or job.progress.step >= job.total_steps:
        return
    job.say(f"asked to stop: saving step {job.progress.step}")
    if save.save_now(job):
        kept = f"saved as checkpoint-{job.progress.step}: nothing is lost"
    else:
        assert save.failure is not None
        newest, _ = newest_whole(job.folder, sizes_only=True)
        held = f"{newest.name} is the newest whole checkpoint" if newest else "there is no checkpoint"
        kept = f"{save.failure.what()}; {held}"
    job.world.barrier()
    job.stop.end(job.stop.number, kept)


def best_checkpoint(job: Job) -> Path | None:
    """The checkpoint to export in place of the last weights, if it is another one and whole."""
    best = job.progress.best_step
    if not job.recipe.training.load_best_model_at_end or best in (None, job.progress.step):
        return None
    path = place_of(job.folder, int(best))
    reason = job.world.broadcast(fault(path) if job.world.is_first else None)
    if reason is None:
        return path
    job.say(f"{path.name}, the best one, is not whole ({reason}): the last weights are exported instead")
    return None


def tell_of_last_save(job: Job, failure: Failure | None) -> None:
    """Raise SaveFailed where the run's last checkpoint is missing, though its model is there."""
    if failure is not None:
        kept, _ = newest_whole(job.folder, sizes_only=True)
        raise last_save_failed(failure, kept=kept, exported=job.folder / MODEL)


def let_save_end(callbacks: Iterable[Callback], error: Exception, timeout_s: float = 60.0) -> None:
    """While another error ends the run: give a save under way the time to become whole; not if in a hurry."""
    saver = saving(callbacks).saver
    if saver is not None and saver.thread is not None and not isinstance(error, Interrupted):
        saver.thread.join(timeout_s)


def mark_finished(folder: Path, summary: str) -> None:
    """Write the summary, which says that model and run are whole. Raises SaveFailed."""
    try:
        write_file(folder / SUMMARY, summary)
    except OSError as error:
        kept, _ = newest_whole(folder, sizes_only=True)
        failed = failure_of(error, name=SUMMARY, folder=folder, needed_bytes=len(summary), rank=0)
        raise last_save_failed(failed, kept=kept, exported=None) from None


def reopen(folder: Path) -> None:
    """A run that goes on is not finished: its summary goes until it is again."""
    (folder / SUMMARY).unlink(missing_ok=True)
