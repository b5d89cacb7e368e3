"""Rules about what is measured on which rows, and what is decided by it."""

from collections.abc import Iterator

from launcher.data.layout import LAYOUTS
from launcher.errors import Problem
from launcher.recipe.given import Given, Notice, Rule
from launcher.recipe.schema import Recipe
from launcher.registry import nearest

METRICS = {
    "classification": ("accuracy", "macro_f1", "weighted_f1", "loss"),
    "causal_lm": ("loss", "perplexity"),
}
LABEL_METRICS = {
    "set": ("micro_f1", "macro_f1", "accuracy", "loss"),
    "number": ("spearman", "pearson", "mse", "loss"),
}


def metrics_of(recipe: Recipe) -> tuple[str, ...]:
    """What is measured of a recipe's task, the usual one first; the layout says what labels are."""
    layout = recipe.data.layout
    labels = LAYOUTS.get(layout).labels if layout in LAYOUTS.names() else "class"
    return LABEL_METRICS.get(labels, METRICS[recipe.task])


def one_evaluation_source(given: Given) -> Iterator[Problem]:
    """Held-out rows come from a file or from the training rows."""
    data = given.recipe.data
    if data.eval_file is not None and data.eval_fraction is not None:
        what = f"{data.eval_fraction:g} and data.eval_file: {data.eval_file} both say what to evaluate on"
        yield given.problem("data.eval_fraction", what, "one of the two", "eval_file: null")


def best_model_can_be_chosen(given: Given) -> Iterator[Problem]:
    """The best checkpoint needs a metric, rows to measure it on, and checkpoints to choose from."""
    training = given.recipe.training
    if not training.load_best_model_at_end:
        return
    needs = {
        "metric_for_best_model": (training.metric_for_best_model, metrics_of(given.recipe)[0]),
        "eval_steps": (training.eval_steps, "epoch"),
        "save_steps": (training.save_steps, "epoch"),
        "eval_fraction": (given.evaluates or None, "0.1"),
    }
    missing = {key: example for key, (value, example) in needs.items() if value is None}
    if missing:
        yield given.problem(
            "training.load_best_model_at_end",
            f"the best model cannot be chosen without {', '.join(missing)}",
            "a metric, rows to evaluate on, and an interval for evaluating and for saving",
            ", ".join(f"{key}: {example}" for key, example in missing.items()),
        )


def early_stop_can_be_told(given: Given) -> Iterator[Problem]:
    """A run that ends when evaluation gets no better has to evaluate on the way."""
    training = given.recipe.training
    if training.early_stopping_patience is not None and (training.eval_steps is None or not given.evaluates):
        yield given.problem(
            "training.early_stopping_patience",
            "the run is not evaluated on the way: nothing tells when to stop",
            "rows to evaluate on, and an interval",
            "eval_steps: epoch, and eval_file: FILE or eval_fraction: 0.1",
        )


def metric_belongs_to_the_task(given: Given) -> Iterator[Problem]:
    """A classifier has accuracy and F1, a language model perplexity; both have loss."""
    metric, known = given.recipe.training.metric_for_best_model, metrics_of(given.recipe)
    if metric is not None and metric not in known:
        layout = given.recipe.data.layout
        kind = layout if known != METRICS[given.recipe.task] else given.recipe.task
        what = f"'{metric}' is not measured for {kind}"
        close = nearest(metric.removeprefix("eval_"), known) or known[0]
        yield given.problem(
            "training.metric_for_best_model",
            what,
            f"one of: {', '.join(known)}",
            f"metric_for_best_model: {close}",
        )


def evaluation_without_rows(given: Given) -> Iterator[str]:
    """Nothing is evaluated without held-out rows."""
    if given.evaluates:
        return
    keys = ("training.eval_steps", "training.per_device_eval_batch_size", "data.max_eval_rows")
    for key in (*keys, "training.metric_for_best_model"):
        if given.is_given(key) and not (
            key == "training.eval_steps" and given.recipe.training.eval_steps is None
        ):
            yield given.no_effect(key, "no rows are held out; type eval_fraction=0.1 or eval_file=FILE")


PROBLEMS: tuple[Rule, ...] = (
    one_evaluation_source,
    best_model_can_be_chosen,
    early_stop_can_be_told,
    metric_belongs_to_the_task,
)
NO_EFFECT: tuple[Notice, ...] = (evaluation_without_rows,)
