"""Rules between keys: small named functions, each giving findings about one recipe.

`PROBLEMS` make a recipe unusable. `NO_EFFECT` are options that are given and change nothing, and
surprises worth one line. Rules about one key alone live beside that key; files are `check`'s.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.backends.support import Refused, Upstream, cell
from launcher.data.layout import LAYOUTS
from launcher.errors import BadValue, Problem, UnknownSetting
from launcher.hardware import catalog
from launcher.recipe.batch import solve
from launcher.recipe.build import value_at
from launcher.recipe.freezing_rules import freezing_is_possible, phases_that_are_not_reached
from launcher.recipe.optimizer_rules import adam_options_without_adam, optimizer_runs_on_the_backend
from launcher.recipe.provenance import DEFAULT, Origin
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
# Values that ask for nothing: a resolved recipe writes them too.
_UNSAID: tuple[object, ...] = (None, {}, "auto", False, "none", "completions")
TEMPLATES = ("auto", "chat", "chatml", "alpaca", "plain", "none")


@dataclass(frozen=True, kw_only=True)
class Given:
    """A recipe with the origin of every value: what a rule looks at."""

    recipe: Recipe
    origins: Mapping[str, Origin]

    def origin(self, key: str) -> Origin:
        """Where the key's value came from; for a mapping, its first name's."""
        inside = (origin for each, origin in self.origins.items() if each.startswith(f"{key}."))
        return self.origins.get(key) or next(inside, DEFAULT)

    def is_given(self, key: str) -> bool:
        """Whether somebody wrote the key, whatever the value."""
        return self.origin(key).kind not in ("default", "derived")

    def at(self, key: str) -> str:
        """The place where the key was written; the recipe's own file where it was not."""
        return self.origin(key).place() if self.is_given(key) else self.file()

    def file(self) -> str:
        """The recipe's file, without a line."""
        own = next((each for each in self.origins.values() if each.kind == "recipe"), DEFAULT)
        return own.place().rpartition(":")[0]

    def problem(self, key: str, what: str, right: str, type_: str) -> Problem:
        """A finding at the place of `key`."""
        return Problem(where=self.at(key), what=f"{key}: {what}", right=right, type=type_)

    @property
    def evaluates(self) -> bool:
        """Whether rows are held out."""
        return self.recipe.data.eval_file is not None or self.recipe.data.eval_fraction is not None


Rule = Callable[[Given], Iterator[Problem]]
Notice = Callable[[Given], Iterator[str]]


def metrics_of(recipe: Recipe) -> tuple[str, ...]:
    """What is measured of a recipe's task, the usual one first; the layout says what labels are."""
    layout = recipe.data.layout
    labels = LAYOUTS.get(layout).labels if layout in LAYOUTS.names() else "class"
    return LABEL_METRICS.get(labels, METRICS[recipe.task])


def problems_of(recipe: Recipe, origins: Mapping[str, Origin]) -> list[Problem]:
    """Everything between keys that makes the recipe unusable."""
    given = Given(recipe=recipe, origins=origins)
    return [problem for rule in PROBLEMS for problem in rule(given)]


def notices_of(recipe: Recipe, origins: Mapping[str, Origin]) -> list[str]:
    """Options without effect and surprises, one line each."""
    given = Given(recipe=recipe, origins=origins)
    return [notice for rule in NO_EFFECT for notice in rule(given)]


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


def scaling_has_a_reference(given: Given) -> Iterator[Problem]:
    """A rate can be scaled only from the batch that it was chosen for."""
    training = given.recipe.training
    if training.lr_scaling != "none" and training.lr_reference_batch_size is None:
        yield given.problem(
            "training.lr_scaling",
            f"'{training.lr_scaling}' has no batch to scale from",
            f"lr_reference_batch_size: the batch for which {training.learning_rate:g} was chosen",
            "lr_reference_batch_size: 8",
        )


def warmup_is_whole_steps(given: Given) -> Iterator[Problem]:
    """Below 1 warm-up is a share, from 1 it counts steps."""
    warmup = given.recipe.training.warmup
    if warmup >= 1 and warmup != int(warmup):
        right = "a share below 1, or a whole number of steps"
        yield given.problem(
            "training.warmup", f"{warmup:g} is neither a share nor a number of steps", right, "warmup: 0.1"
        )


def batch_divides_over_the_cards(given: Given) -> Iterator[Problem]:
    """The global batch must be made exactly by the cards that the recipe names."""
    training, gpus = given.recipe.training, given.recipe.hardware.gpus
    micro = training.per_device_train_batch_size
    try:
        solve(training.global_batch_size, None if micro == "auto" else micro, gpus)
    except BadValue as error:
        yield from (replace(each, where=given.at("training.global_batch_size")) for each in error.problems)


def backend_takes_the_cards(given: Given) -> Iterator[Problem]:
    """Some backends are for a limited number of processes."""
    backend, gpus = BACKENDS.get(given.recipe.backend.name), given.recipe.hardware.gpus
    if backend.max_ranks is not None and gpus > backend.max_ranks:
        if backend.takes_all_cards:
            what = f"{backend.name} is one process that takes every visible card, hardware.gpus is {gpus}"
            right = "gpus: 1, and the cards in CUDA_VISIBLE_DEVICES"
            yield given.problem("backend.name", what, right, "gpus=1")
            return
        others = [each.name for each in BACKENDS if each.max_ranks is None]
        what = f"{backend.name} runs {backend.max_ranks} process, but hardware.gpus is {gpus}"
        right = f"gpus: {backend.max_ranks}, or one of: {', '.join(others)}"
        yield given.problem("backend.name", what, right, f"backend: {others[0] if others else backend.name}")


def method_runs_on_the_backend(given: Given) -> Iterator[Problem]:
    """A combination that cannot work is refused before anything is downloaded."""
    method, backend = given.recipe.adapter.method, given.recipe.backend.name
    quantised = given.recipe.model.is_quantised
    found = cell(method, backend, quantised=quantised)
    if isinstance(found, Refused):
        key = "backend.name"
        kind = f"{method} over quantised weights" if quantised else f"method {method}"
        what = f"{kind} does not run on {backend}: {found.reason}"
        yield given.problem(
            key,
            what,
            f"{found.alternative}, or another line of `launcher matrix`",
            (f"backend: {found.alternative}"),
        )


def packed_weights_stay_frozen(given: Given) -> Iterator[Problem]:
    """4-bit and 8-bit weights cannot be updated, and are one or the other."""
    model, method = given.recipe.model, given.recipe.adapter.method
    if model.load_in_4bit and model.load_in_8bit:
        what = "true, and model.load_in_4bit too"
        yield given.problem("model.load_in_8bit", what, "one of the two", "load_in_8bit: false")
    if model.is_quantised and METHODS.get(method).trains_base:
        key = "model.load_in_4bit" if model.load_in_4bit else "model.load_in_8bit"
        what = f"method {method} trains the weights, and packed ones cannot be trained"
        yield given.problem(key, what, "an adapter over the packed weights", "adapter: lora")


def cache_methods_keep_activations(given: Given) -> Iterator[Problem]:
    """Recomputing activations turns the key-value cache off, through which a prefix reaches attention."""
    recipe = given.recipe
    method = METHODS.get(recipe.adapter.method)
    if method.needs_cache and recipe.training.activation_checkpointing:
        yield given.problem(
            "training.activation_checkpointing",
            f"method {method.name} reaches attention through the key-value cache, which it turns off",
            f"{method.name} without checkpointing, or p_tuning or lora with it",
            "activation_checkpointing: false, or adapter: p_tuning",
        )


def gpu_is_known(given: Given) -> Iterator[Problem]:
    """A named card must be in the table of cards."""
    name = given.recipe.hardware.gpu
    if name is None:
        return
    try:
        catalog.get(name)
    except UnknownSetting as error:
        yield from (
            replace(each, where=given.at("hardware.gpu"), what=f"hardware.gpu: {each.what}")
            for each in error.problems
        )


def trained_weights_are_not_half(given: Given) -> Iterator[Problem]:
    """A gradient scaler cannot work on weights that are themselves float16."""
    recipe = given.recipe
    if recipe.model.dtype == "float16" and METHODS.get(recipe.adapter.method).trains_base:
        yield given.problem(
            "model.dtype",
            f"'float16' weights cannot be trained by method {recipe.adapter.method}: gradients underflow",
            "dtype: auto (float32 weights) with precision: fp16; or adapter: lora",
            "dtype: auto",
        )


def labels_are_distinct(given: Given) -> Iterator[Problem]:
    """Label names are the ids' names: at least two, none twice."""
    labels = given.recipe.data.labels
    if labels is not None and (len(set(labels)) != len(labels) or len(labels) < 2):
        twice = sorted({label for label in labels if labels.count(label) > 1})
        what = f"{', '.join(twice)} stand twice" if twice else f"{len(labels)} label is too few"
        yield given.problem(
            "data.labels", what, "two or more different names", "labels: [negative, positive]"
        )


def trackers_agree(given: Given) -> Iterator[Problem]:
    """`none` beside a tracker's name says two things."""
    names = given.recipe.tracking.report_to
    if "none" in names and len(set(names)) > 1:
        what = f"none and {', '.join(name for name in names if name != 'none')} contradict each other"
        yield given.problem("tracking.report_to", what, "none alone, or the trackers", "report_to: none")


def template_is_known(given: Given) -> Iterator[Problem]:
    """An instruction becomes a prompt by one of a few templates."""
    name = given.recipe.data.template
    if name not in TEMPLATES:
        close = nearest(name, TEMPLATES) or "auto"
        yield given.problem(
            "data.template",
            f"unknown template '{name}'",
            f"one of: {', '.join(TEMPLATES)}",
            f"template: {close}",
        )


def layout_is_for_the_task(given: Given) -> Iterator[Problem]:
    """A layout belongs to one task, and only its roles can be given columns."""
    name, task = given.recipe.data.layout, given.recipe.task
    fitting = [layout for layout in LAYOUTS if layout.task == task]
    names = ", ".join(layout.name for layout in fitting)
    if name != "auto" and name not in LAYOUTS.names():
        what = f"unknown layout '{name}'"
        close = nearest(name, LAYOUTS.names()) or "auto"
        yield given.problem("data.layout", what, f"one of: auto, {names}", f"layout: {close}")
    elif name != "auto" and LAYOUTS.get(name).task != task:
        what = f"'{name}' is for task {LAYOUTS.get(name).task}, the recipe's task is {task}"
        yield given.problem("data.layout", what, f"one of: auto, {names}", "layout: auto")


def columns_are_roles(given: Given) -> Iterator[Problem]:
    """Columns are given to roles that some layout of the task has."""
    roles = [role.name for layout in LAYOUTS if layout.task == given.recipe.task for role in layout.roles]
    known = list(dict.fromkeys(roles))
    for role, column in given.recipe.data.columns.items():
        if role not in known:
            key = f"data.columns.{role}"
            typed = f"columns: {{{nearest(role, known) or known[0]}: {column}}}"
            yield given.problem(key, f"'{role}' is no role of a row", f"one of: {', '.join(known)}", typed)


def stride_is_for_windows(given: Given) -> Iterator[Problem]:
    """A stride says how far apart windows start."""
    data = given.recipe.data
    if data.window_stride is not None and data.overflow != "windows":
        yield given.problem(
            "data.window_stride",
            "there are no windows to stride over",
            "overflow: windows, or no window_stride",
            "overflow: windows",
        )


def pip_package_has_a_folder(given: Given) -> Iterator[Problem]:
    """An empty distribution's name finds nothing."""
    name = given.recipe.model.pip_package
    if name is not None and not name.partition("/")[0].strip():
        yield given.problem(
            "model.pip_package",
            f"'{name}' names no distribution",
            "distribution/folder",
            "pip_package: name/model",
        )


def emulated_bf16(given: Given) -> Iterator[str]:
    """Volta and Turing have no bf16 units; torch emulates them in silence."""
    gpu, training = given.recipe.hardware.gpu, given.recipe.training
    if gpu is None or catalog.get(gpu).has_bf16:
        return
    card = catalog.get(gpu)
    story = f"training.precision: {card.name} ({card.architecture}) has no bf16 units"
    place = given.at("training.precision")
    if training.precision == "bf16":
        yield f"{place}  {story}: a run on it stops; type precision=auto (fp16), or bf16-emulated (slow)"
    if training.precision == "bf16-emulated":
        yield f"{place}  {story}: emulation is several times slower than fp16"
    if training.tf32 is True:
        yield _no_effect(given, "training.tf32", f"{card.name} has no TF32")


def not_proven_here(given: Given) -> Iterator[str]:
    """A combination that the libraries support and no test here has compared."""
    recipe = given.recipe
    found = cell(recipe.adapter.method, recipe.backend.name, quantised=recipe.model.is_quantised)
    if isinstance(found, Upstream):
        yield f"{given.at('backend.name')}  backend.name: warning: {found.warning}"


def reference_without_scaling(given: Given) -> Iterator[str]:
    """A reference batch does nothing while the rate is not scaled."""
    training = given.recipe.training
    if training.lr_reference_batch_size is not None and training.lr_scaling == "none":
        yield _no_effect(
            given, "training.lr_reference_batch_size", "lr_scaling is none; type lr_scaling=linear or sqrt"
        )


def options_of_the_other_task(given: Given) -> Iterator[str]:
    """Some keys matter only to classifiers, some only to language models."""
    only = {
        "classification": ("data.labels", "data.context.turns", "data.class_weights"),
        "causal_lm": (
            "training.loss_chunk_bytes",
            "data.template",
            "data.fill",
            "data.packing",
            "data.train_on",
        ),
    }
    for task, keys in only.items():
        if task != given.recipe.task:
            for key in keys:
                says = value_at(given.recipe, tuple(key.split("."))) not in _UNSAID
                if given.is_given(key) and says:  # a resolved recipe writes every key, empty ones too
                    yield _no_effect(given, key, f"only {task} uses it")


def evaluation_without_rows(given: Given) -> Iterator[str]:
    """Nothing is evaluated without held-out rows."""
    if given.evaluates:
        return
    keys = ("training.eval_steps", "training.per_device_eval_batch_size", "data.max_eval_rows")
    for key in (*keys, "training.metric_for_best_model"):
        if given.is_given(key) and not (
            key == "training.eval_steps" and given.recipe.training.eval_steps is None
        ):
            yield _no_effect(given, key, "no rows are held out; type eval_fraction=0.1 or eval_file=FILE")


def batch_left_to_the_default(given: Given) -> Iterator[str]:
    """Other tools take the rows of one card for the batch; here the global batch has a default."""
    training = given.recipe.training
    if given.is_given("training.per_device_train_batch_size") and not given.is_given(
        "training.global_batch_size"
    ):
        key = "training.per_device_train_batch_size"
        size = training.global_batch_size
        yield f"{given.at(key)}  {key}: a step has {size} rows over all cards, by default"


def micro_batch_above_the_batch(given: Given) -> Iterator[str]:
    """An upper bound that is never reached."""
    training, gpus = given.recipe.training, given.recipe.hardware.gpus
    micro = training.per_device_train_batch_size
    if micro != "auto" and micro > training.global_batch_size // gpus:
        share = training.global_batch_size // gpus
        yield _no_effect(
            given, "training.per_device_train_batch_size", f"a card's share of the batch is {share} rows"
        )


def warmup_that_never_ends(given: Given) -> Iterator[str]:
    """The highest rate is never reached when warm-up is as long as the run."""
    training = given.recipe.training
    if training.max_steps is not None and training.warmup >= 1 and training.warmup >= training.max_steps:
        what = f"{training.warmup:g} steps of {training.max_steps}: the rate is never fully reached"
        yield f"{given.at('training.warmup')}  training.warmup: {what}"


def half_weights_lose_updates(given: Given) -> Iterator[str]:
    """Trained weights of 8 significant bits do not move by less than 1/512 of themselves."""
    recipe = given.recipe
    if recipe.model.dtype == "bfloat16" and METHODS.get(recipe.adapter.method).trains_base:
        what = "updates below 1/512 of a bfloat16 weight are rounded away, in silence"
        right = "dtype=auto with precision=bf16 keeps fp32 weights for 8 more bytes a trained parameter"
        yield f"{given.at('model.dtype')}  model.dtype: warning: {what}; {right}"


def scale_without_fp16(given: Given) -> Iterator[str]:
    """Only fp16 has a loss scale, and only half precision has modules to keep out of it."""
    training = given.recipe.training
    key, default = "training.min_loss_scale", type(training).model_fields["min_loss_scale"].default
    if training.min_loss_scale != default and training.precision not in ("fp16", "auto"):
        yield _no_effect(given, key, f"precision {training.precision} has no loss scale")
    if training.fp32_modules and training.precision == "fp32":
        yield _no_effect(given, "training.fp32_modules", "precision is fp32")


def card_for_a_cpu(given: Given) -> Iterator[str]:
    """A card is named for a job that must run on the CPU."""
    hardware = given.recipe.hardware
    if hardware.device == "cpu" and hardware.gpu is not None:
        yield _no_effect(given, "hardware.gpu", "hardware.device is cpu")


def _no_effect(given: Given, key: str, why: str) -> str:
    return f"{given.at(key)}  {key}: has no effect: {why}"


PROBLEMS: tuple[Rule, ...] = (
    one_evaluation_source,
    best_model_can_be_chosen,
    early_stop_can_be_told,
    metric_belongs_to_the_task,
    scaling_has_a_reference,
    warmup_is_whole_steps,
    batch_divides_over_the_cards,
    backend_takes_the_cards,
    method_runs_on_the_backend,
    packed_weights_stay_frozen,
    cache_methods_keep_activations,
    gpu_is_known,
    trained_weights_are_not_half,
    labels_are_distinct,
    trackers_agree,
    template_is_known,
    layout_is_for_the_task,
    columns_are_roles,
    stride_is_for_windows,
    pip_package_has_a_folder,
    freezing_is_possible,
    optimizer_runs_on_the_backend,
)
NO_EFFECT: tuple[Notice, ...] = (
    emulated_bf16,
    not_proven_here,
    reference_without_scaling,
    options_of_the_other_task,
    evaluation_without_rows,
    batch_left_to_the_default,
    micro_batch_above_the_batch,
    warmup_that_never_ends,
    card_for_a_cpu,
    half_weights_lose_updates,
    scale_without_fp16,
    phases_that_are_not_reached,
    adam_options_without_adam,
)
