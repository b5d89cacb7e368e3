"""Write what is generated about the shipped recipes; `make recipes` calls this.

    python scripts/make_recipe_table.py [--check]

Three things come from the planner and are never typed: the first comment of every recipe file, the table in
`recipes/README.md`, and `recipes/index.json`, from which `launcher ls` is quick. `--check` writes nothing and
gives 1 where a file would change. Needs neither torch nor a card.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from launcher.errors import LauncherError
from launcher.plan.fit import why_not
from launcher.plan.forecast import Forecast, Question, forecast
from launcher.plan.prices import VARIABLE
from launcher.plan.standing import of_time
from launcher.recipe import library
from launcher.recipe.listing import INDEX, Listed, entry, read_listed
from launcher.recipe.load import load_recipe
from launcher.recipe.parents import lineage
from launcher.units import GIB, format_seconds

ROWS = 1000
RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"
# Which of the practice guides a job comes from; one that extends it comes from there too.
SOURCES = {
    "roberta_large_meld_3090": "MELD guide, RTX 3090",
    "bert_base_imdb_3090": "IMDb guide, RTX 3090",
    "full_0.5b_v100": "0.5B generator guide, V100",
    "adapter_0.5b_v100": "0.5B generator guide, V100",
    "prefix_0.5b_v100": "0.5B generator guide, V100",
    "full_0.5b_a100": "0.5B generator guide, A100",
    "lora_0.5b_3060": "0.5B generator guide, next steps",
    "lora_7b_3090": "7B on rented cards guide, 24 GB",
    "ptuning_7b_3090": "7B on rented cards guide, few rows",
    "full_7b_4x3090_zero3_offload": "7B on rented cards guide, full",
    "full_7b_8xa100_fsdp2": "7B on rented cards guide, full",
    "full_7b_3090": "7B on rented cards guide, full",
    "full_3b_a100_40g": "7B on rented cards guide, 40 GB",
}
HEAD = """# The recipe library

Written by `scripts/make_recipe_table.py` (`make recipes`); edit the recipes, not this file.

`launcher ls` lists, `launcher cat NAME` prints, `launcher plan NAME` shows the whole sum, `launcher run NAME`
trains. A name is `<model or task>_<method>_<card>`; jobs of the guides that name no model say the method
first (`lora_7b_3090`); a classifier that says no method trains every weight; several cards are `2x3090`, with
the backend behind them. `extends: NAME` in a file of your own starts from any of them.

Memory is what one card must hold at the worst moment of a step, allocated, at the full `max_length`; a recipe
is listed as fitting only if the driver's context and a margin for stranded blocks fit beside it. Standing is
how far to trust that figure: validated on so many measurements, with the 90th percentile of the errors, or
derived and not measured. Time is for 1,000 rows once, every row at full length: shorter rows take less. Cost
is that time at the prices seen in `launcher/hardware/gpus.csv`, on all cards. Host RAM counts all ranks of a
machine, while loading or training, whichever is more. Disk is checkpoints and the final model.
"""

COLUMNS = ["recipe", "job", "card", "method", "backend", "peak", "standing", "host RAM", "disk", "1,000 rows"]
COLUMNS += ["cost", "quality, measured", "from"]
NOT_COLUMNS = ["recipe", "job", "card", "method", "backend", "verdict", "fits with"]
STAR = "\\* in the range that was compared with published runs; the other times are derived from data sheets."
NOT = "Kept so that the answer can be read: `launcher plan NAME` works for these too."


@dataclass(frozen=True, kw_only=True)
class Row:
    """A recipe's line, and its plan where a card is named and nothing is refused."""

    listed: Listed
    plan: Forecast | None
    refused: str = ""

    @property
    def peak_gib(self) -> float | None:
        """Planned for one card."""
        return None if self.plan is None else round(self.plan.asked.breakdown.peak_bytes / GIB, 1)


def row(name: str) -> Row:
    """Plan a recipe as written. A job that is refused keeps the reason."""
    listed = read_listed(name)
    try:
        loaded = load_recipe(name)
        plan = forecast(Question(loaded=loaded, rows=ROWS)) if loaded.recipe.hardware.gpu else None
    except LauncherError as error:
        return Row(listed=listed, plan=None, refused=error.problems[0].what.partition(": ")[2])
    return Row(listed=listed, plan=plan)


def standing(plan: Forecast) -> str:
    """Of the memory: validated with its figures, or derived."""
    found = plan.asked.breakdown.standing
    if found.kind != "validated":
        return "derived"
    return f"validated on {found.num_measurements}, p90 {found.p90_error:.1%}"


def seconds_for_rows(plan: Forecast) -> float:
    """Seconds for 1,000 rows of full length."""
    assert plan.asked.time is not None, "a card is named"
    return ROWS / plan.asked.time.rows_per_s


def cost(plan: Forecast) -> str:
    """Of 1,000 rows on all cards, where a price was seen."""
    if plan.price is None:
        return "-"
    hours = seconds_for_rows(plan) / 3600 * plan.num_ranks
    low, high = hours * plan.price.low, hours * plan.price.high
    amounts = list(dict.fromkeys(f"{amount:.{2 if amount >= 0.1 else 3}f}" for amount in (low, high)))
    return f"{'-'.join(amounts)} {plan.price.currency}"


def time_standing(plan: Forecast) -> str:
    """Of the time: in the range that was compared with published runs, or derived from the data sheet."""
    assert plan.gpu is not None, "a card is named"
    setting = plan.asked.candidate.setting
    said = of_time(
        plan.gpu,
        is_decoder=setting.shape.is_decoder,
        backend=plan.asked.candidate.backend,
        recomputes=setting.checkpointing == "full",
        precision=setting.precision,
    )
    return "derived" if said.startswith("derived") else "compared"


def source(name: str) -> str:
    """The guide that the job, or the job that it extends, is from."""
    stems = [document.path.stem for document in lineage(library.find(name))]
    return next((SOURCES[stem] for stem in reversed(stems) if stem in SOURCES), "-")


def header(row: Row) -> str:
    """The first line of a recipe: what to expect on its card."""
    if row.refused:
        return f"{library.PLANNED}refused: {row.refused}"
    if row.plan is None:
        return f"{library.PLANNED}for any machine without a card; launcher plan says what it needs there"
    if not row.plan.fits:
        return f"{library.PLANNED}does not fit: {why_not(row.plan.asked)}"
    peak, usable = f"{row.peak_gib:.1f}", row.plan.usable_bytes / GIB
    time = f"{format_seconds(seconds_for_rows(row.plan))} for 1,000 full rows ({time_standing(row.plan)})"
    return f"{library.PLANNED}peak {peak} of {usable:.1f} GiB ({standing(row.plan)}); {time}"


def with_header(text: str, line: str) -> str:
    """The file's text with this line in front, in place of the one that stands there."""
    first, _, rest = text.partition("\n")
    return f"{line}\n{rest if first.startswith(library.PLANNED.strip()) else text}"


def quality() -> str:
    """Of the quickstart, as measured on two CPU cores."""
    found = json.loads((RESULTS / "quickstart_quality-cpu-2-cores.json").read_text(encoding="utf-8"))
    figures = found["figures"]
    seeds = sum("seed" in run["name"] for run in figures["runs"])
    spread = figures["accuracy_stdev_over_seeds"]
    return f"accuracy {figures['accuracy']:.3f} ± {spread:.3f} ({seeds} seeds)"


def fitting_line(row: Row) -> list[str]:
    """The cells of a job that fits, or that is for any machine."""
    listed, plan = row.listed, row.plan
    known = [f"`{listed.name}`", listed.summary, listed.card, listed.method, listed.backend]
    measured = quality() if listed.name == "quickstart" else "-"
    if plan is None:
        return [*known, "-", "-", "-", "-", "-", "-", measured, source(listed.name)]
    usable = plan.usable_bytes / GIB
    disk = sum(term.num_bytes for term in plan.disk_terms) / GIB
    time = f"{format_seconds(seconds_for_rows(plan))}{'' if time_standing(plan) == 'derived' else ' *'}"
    figures = [f"{row.peak_gib:.1f} of {usable:.1f} GiB", standing(plan), f"{plan.host_bytes / GIB:.1f} GiB"]
    return [*known, *figures, f"{disk:.1f} GiB", time, cost(plan), measured, source(listed.name)]


def refused_line(row: Row) -> list[str]:
    """The cells of a job that does not fit."""
    listed, plan = row.listed, row.plan
    known = [f"`{listed.name}`", listed.summary, listed.card, listed.method, listed.backend]
    if plan is None:
        return [*known, f"refused: {row.refused}", "-"]
    typed = "nothing planned"
    if plan.chosen is not None:
        host = f", {plan.host_bytes / GIB:.0f} GiB of host RAM"
        typed = f"`{plan.chosen.candidate.typed}`{host}"
    return [*known, f"does not fit: {why_not(plan.asked)}", typed]


def table(columns: list[str], lines: list[list[str]]) -> str:
    """A Markdown table."""
    cells = [columns, ["---"] * len(columns), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def readme(rows: list[Row], refused: list[Row]) -> str:
    """The text of recipes/README.md."""
    ordered = sorted(rows, key=lambda row: (row.listed.task, row.listed.method, row.listed.name))
    groups = {"classification": "Classifiers", "causal_lm": "Language models"}
    parts = [HEAD]
    for task, title in groups.items():
        lines = [fitting_line(row) for row in ordered if row.listed.task == task]
        parts.append(f"\n## {title}\n\n{table(COLUMNS, lines)}")
    parts.append(f"\n{STAR}\n\n## Asked for, and not fitting\n\n{NOT}\n\n")
    parts.append(table(NOT_COLUMNS, [refused_line(row) for row in refused]))
    return "".join(parts)


def wanted() -> Iterator[tuple[Path, str]]:
    """Every generated file with its text. Headers first: the index holds the files' digests."""
    rows = [row(name) for name in library.names()]
    refused = [row(name) for name in library.refused_names()]
    for each in (*rows, *refused):
        path = library.find(each.listed.name)
        yield path, with_header(path.read_text(encoding="utf-8"), header(each))
    yield library.folder() / "README.md", readme(rows, refused)
    index = {each.listed.name: entry(each.listed, each.peak_gib) for each in rows}
    yield library.folder() / INDEX, json.dumps(index, indent=1, ensure_ascii=False) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Write what differs, or only say so."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where a file would change")
    only_check = parser.parse_args(argv).check
    os.environ.pop(VARIABLE, None)  # a person's own prices do not belong into the table
    changed = []
    for path, text in wanted():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            changed.append(path.name)
            if not only_check:
                path.write_text(text, encoding="utf-8")
    print(f"{'would change' if only_check else 'written'}: {', '.join(changed) or 'nothing'}")
    return int(only_check and bool(changed))


if __name__ == "__main__":
    raise SystemExit(main())
