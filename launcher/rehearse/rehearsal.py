"""The rehearsal itself, stage after stage: shrink, build, run, kill, resume, export, reload, compare."""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.data.place import source_files
from launcher.data.templates import render_prompt
from launcher.errors import LauncherError
from launcher.recipe.dump import to_yaml
from launcher.recipe.load import LoadedRecipe
from launcher.recipe.schema import Recipe
from launcher.rehearse import said
from launcher.rehearse.exported import check_export
from launcher.rehearse.gaps import not_checked
from launcher.rehearse.processes import Own, Processes, Running
from launcher.rehearse.rows import NUM_EVAL, NUM_TRAIN, is_text, layout_of, suffix_of, write_rows
from launcher.rehearse.shrink import NUM_STEPS, SAVE_STEPS, Stage, small_recipe
from launcher.rehearse.verdict import StageFailed, Verdict

_SAME_LOSS = 1e-3
_RELEASED = 200
_SAMPLE_CHARACTERS = 200_000


@dataclass(kw_only=True)
class Rehearsal:
    """One rehearsal in `folder`; `say` tells what is going on."""

    loaded: LoadedRecipe
    folder: Path
    say: Callable[[str], None]
    processes: Processes = field(default_factory=Own)

    def __post_init__(self) -> None:
        """Nothing is found yet."""
        recipe = self.loaded.recipe
        self.verdict = Verdict(
            recipe=self.loaded.name, backend=recipe.backend.name, num_processes=recipe.hardware.gpus
        )
        self.stage = ""

    def run(self) -> Verdict:
        """Every stage until one fails. Always gives the verdict."""
        start = time.perf_counter()
        try:
            self._stages()
        except (LauncherError, StageFailed, TimeoutError) as error:
            self.verdict.failed_stage, self.verdict.message = self.stage, str(error)
        self.verdict.seconds = round(time.perf_counter() - start, 1)
        self.verdict.not_checked = not_checked(self.loaded.recipe, self.verdict)
        return self.verdict

    def _stages(self) -> None:
        with self._stage("shrink", "recipe and batch on the asked ranks"):
            small_recipe(self.loaded.recipe, self._place(None, vocabulary_size=1))
        with self._stage("model", "a tiny model of the same architecture"):
            place = self._build()
        for num_steps in (NUM_STEPS, 8 * NUM_STEPS):
            recipe = small_recipe(self.loaded.recipe, place, num_steps)
            with self._stage("run", f"{num_steps} steps, a checkpoint every {SAVE_STEPS}, until killed"):
                file = self._write(recipe)
                before = self._run_and_kill(file, num_steps)
            if before is not None:
                break
        else:
            raise StageFailed("every run was over before it could be killed")
        with self._stage("resume", "the same command with --resume, to the end"):
            self._resume(file, recipe, before)
        with self._stage("export", "the model folder in a new process"):
            check_export(recipe, self.folder, self._run_folder, self.processes, self.verdict)

    @contextmanager
    def _stage(self, name: str, what: str) -> Iterator[None]:
        self.stage, start = name, time.perf_counter()
        self.say(f"{name:7} {what}")
        try:
            yield
        finally:
            spent = self.verdict.stage_seconds.get(name, 0.0) + time.perf_counter() - start
            self.verdict.stage_seconds[name] = round(spent, 1)

    def _place(self, rows: tuple[Path, Path | None] | None, *, vocabulary_size: int) -> Stage:
        train, evaluation = rows or (None, None)
        return Stage(
            model=self.folder / "model",
            runs=self.folder / "runs",
            vocabulary_size=vocabulary_size,
            train_file=train,
            eval_file=evaluation,
        )

    def _build(self) -> Stage:
        recipe = self.loaded.recipe
        rows = self._rows(recipe)
        from launcher.rehearse.model_torch import write_model  # imports torch: after what is cheap

        train = rows[0] if rows else Path(recipe.data.train_file)
        built = write_model(
            recipe.model,
            self.folder / "model",
            task=recipe.task,
            seed=recipe.training.seed,
            texts=_sample(train),
        )
        self.verdict.model = f"{built.architecture}: {built.sizes} ({built.config_source})"
        self.verdict.tokenizer = built.tokenizer_source
        self.say(f"        {built.architecture}, {built.sizes}")
        return self._place(rows, vocabulary_size=built.vocabulary_size)

    def _rows(self, recipe: Recipe) -> tuple[Path, Path | None] | None:
        """Made-up files where the recipe's own are not here; None where they are."""
        data = recipe.data
        if source_files(Path(data.train_file)):
            self.verdict.rows = f"up to {NUM_TRAIN} rows of {data.train_file}, drawn by seed"
            return None
        train = write_rows(recipe, self.folder / f"train{suffix_of(data.train_file)}", NUM_TRAIN, seed=1)
        evaluation = None
        if data.eval_file:
            file = self.folder / f"eval{suffix_of(data.eval_file)}"
            evaluation = write_rows(recipe, file, NUM_EVAL, seed=2)
        self.verdict.rows = f"{NUM_TRAIN} made-up {layout_of(recipe)} rows: {data.train_file} is not here"
        return train, evaluation

    def _write(self, recipe: Recipe) -> Path:
        shutil.rmtree(self.folder / "runs", ignore_errors=True)
        file = self.folder / f"{self.loaded.name}.yaml"
        file.write_text(to_yaml(recipe), encoding="utf-8")
        return file

    @property
    def _run_folder(self) -> Path:
        return self.folder / "runs" / self.loaded.name

    def _start(self, file: Path, log: str, words: Sequence[str] = ()) -> Running:
        recipe = self.loaded.recipe
        return self.processes.run(file, recipe.backend.name, recipe.hardware.gpus, words, self.folder / log)

    def _run_and_kill(self, file: Path, num_steps: int) -> dict[int, dict[str, Any]] | None:
        """The steps logged before the kill; None where the run was over first."""
        run = self._run_folder

        with self._start(file, "run.log") as started:
            code = started.wait_until(lambda: is_held_between_saves(started, run, num_steps))
            killed = started.kill_ranks() if code is None else []
            code = started.wait() if code is None else code
        if code == 0:
            return None
        self._read(started.text)
        if len(killed) != self.verdict.num_processes:
            raise StageFailed(f"{said.part_reached(started.text)}:\n{said.message(started.text)}")
        steps = said.steps_logged(run)
        self.verdict.killed_at_step = max(steps)
        self.say(f"        {len(killed)} rank(s) killed at step {max(steps)}")
        return steps

    def _read(self, text: str) -> None:
        """What the run says about itself in its first seconds."""
        self.verdict.in_use = said.backend(text, self.verdict.backend)
        self.verdict.pieces = said.sharding(text)
        self.verdict.precision = said.precision(text)

    def _resume(self, file: Path, recipe: Recipe, before: dict[int, dict[str, Any]]) -> None:
        words = ["--resume"]
        if hasattr(recipe.backend, "stage3_param_persistence_threshold"):
            # Every tiny parameter is below the real threshold and would stay whole: now they are released.
            words.append(f"backend.stage3_param_persistence_threshold={_RELEASED}")
        with self._start(file, "resume.log", words) as started:
            code = started.wait()
        if code != 0:
            raise StageFailed(f"{said.part_reached(started.text)}:\n{said.message(started.text)}")
        self.verdict.resumed_at_step = said.resumed_step(started.text)
        self._check_steps(recipe, before)
        summary = json.loads((self._run_folder / "summary.json").read_text(encoding="utf-8"))
        self.verdict.evaluated = summary["quality"]

    def _check_steps(self, recipe: Recipe, before: dict[int, dict[str, Any]]) -> None:
        steps, wanted = said.steps_logged(self._run_folder), recipe.training.max_steps or 0
        self.verdict.losses = [steps[step]["loss"] for step in sorted(steps)]
        resumed = self.verdict.resumed_at_step
        if resumed is None:
            raise StageFailed("the run did not say that it went on from a checkpoint")
        if sorted(steps) != list(range(1, wanted + 1)):
            raise StageFailed(f"steps 1 to {wanted} are not logged once each: {sorted(steps)}")
        if not said.all_finite(steps):
            raise StageFailed(f"losses are not finite: {self.verdict.losses}")
        again = [step for step in sorted(before) if step > resumed]
        for step in again:
            then, now = before[step]["loss"], steps[step]["loss"]
            if then is None or abs(then - now) > _SAME_LOSS * max(1.0, abs(then)):
                raise StageFailed(f"step {step} had loss {then} before the kill and {now} after the resume")
        self.verdict.repeated_steps = again


def is_held_between_saves(running: Running, run: Path, num_steps: int) -> bool:
    """Whether the ranks stand still with a step logged behind the last save, and another one to come.

    They are held while that is looked at: whoever looks may be slower than a tiny model's step.
    """
    if max(said.steps_logged(run), default=0) <= SAVE_STEPS:
        return False
    running.hold_ranks()
    saves = [int(path.parent.name.partition("-")[2]) for path in run.glob("checkpoint-*/manifest.json")]
    if saves and max(saves) < max(said.steps_logged(run)) < num_steps:
        return True
    running.let_ranks_go()
    return False


def _sample(path: Path) -> list[str]:
    """What a stand-in tokenizer learns from: the start of the data file, and the usual prompt."""
    files = [each for each in source_files(path) if is_text(each)]
    text = ""
    if files:
        with files[0].open(encoding="utf-8", errors="replace") as file:
            text = file.read(_SAMPLE_CHARACTERS)
    return [*text.splitlines(), *([render_prompt("a", "b", None, "alpaca")] * 3)]
