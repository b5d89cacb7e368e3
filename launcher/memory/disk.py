"""Disk of one run: checkpoints that are kept, the final model, and what offloading to a disk holds."""

from launcher.memory.breakdown import Term
from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes, sizes_of
from launcher.recipe.training import TrainingOptions


def disk(setting: Setting, training: TrainingOptions) -> tuple[Term, ...]:
    """Bytes in the run's folder, a line a term.

    A checkpoint holds an fp32 weight and two moments of every trained parameter, in a form that any backend
    and any number of ranks reads: its size does not depend on them. One more than is kept: the newest is
    whole before the oldest goes; and the best one, which may be older than all of them. The final model is
    the trained weights in fp32 (`train/setup.py` refuses on the same figures).
    """
    sizes = sizes_of(setting)
    saves = training.save_steps is not None or training.load_best_model_at_end
    kept = (training.save_total_limit or 1) + 1 + training.load_best_model_at_end if saves else 0
    terms = []
    if kept:
        held = kept * 12 * sizes.trained
        terms.append(Term(name="checkpoints", num_bytes=held, formula=f"{kept} x 12 p"))
    terms.append(Term(name="final model", num_bytes=4 * sizes.trained, formula="4 p"))
    if setting.backend.endswith("nvme"):
        terms.append(
            Term(name="offloaded to disk", num_bytes=_on_disk(setting, sizes), formula="P x dtype + 12 p")
        )
    return tuple(terms)


def _on_disk(setting: Setting, sizes: Sizes) -> int:
    return setting.shape.num_params * sizes.weight_bytes + 12 * sizes.trained
