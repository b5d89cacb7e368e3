"""What is kept of steps whose numbers are not finite: `non_finite/step-N.json` in the run folder."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from launcher.plan.write import write_file
from launcher.train.job import Job
from launcher.train.numbers import Past, spoken
from launcher.train.numbers_inspect import Findings, micro_rows

FOLDER = "non_finite"
# Rows whose text and token ids are written out; the ids of all rows are there anyway.
MOST_TEXTS = 64
# Files of steps that were left out while the run went on.
MOST_FILES = 16


def path_of(folder: Path, step: int) -> Path:
    """The file for a step, counted from 1 as in the log."""
    return folder / FOLDER / f"step-{step}.json"


def evidence(job: Job, past: Sequence[Past], *, step: int, shares: Sequence[float]) -> dict[str, Any]:
    """What is known without running anything again. `step` from 1; `shares` are every rank's of its loss."""
    of_rank = [[part.tolist() for part in micro_rows(job, step - 1, rank)] for rank in range(len(shares))]
    return {
        "step": step,
        "precision": job.plan.precision,
        "backend": job.plan.backend,
        "loss_of_each_rank": [spoken(share) for share in shares],
        "rows": job.order.window(step - 1).tolist(),
        "micro_batches_of_each_rank": of_rank,
        "last_steps": [each.to_dict() for each in past],
        "about_rows": "rows count from 0 in the order of the training rows, after held-out and dropped ones",
    }


def texts(job: Job, rows: Iterable[int]) -> list[dict[str, Any]]:
    """Rows as the model saw them: text, token ids, label or trained positions."""
    return [_text(job, row) for row in list(rows)[:MOST_TEXTS]]


def _text(job: Job, row: int) -> dict[str, Any]:
    store = job.store
    place = slice(int(store.offsets[row]), int(store.offsets[row + 1]))
    ids = store.input_ids[place].tolist()
    found: dict[str, Any] = {"row": row, "text": job.tokenizer.decode(ids), "token_ids": ids}
    if store.sources is not None:
        found["window_of_row"] = int(store.sources[row])
    if store.labels is not None:
        found["label"] = store.labels[row].tolist()
    if store.trained is not None:
        found["trained_tokens"] = int(store.trained[place].sum())
    return found


def suspects(found: Sequence[Findings], rows: Sequence[int]) -> list[int]:
    """The rows to look at: those with bad outputs, else their micro batches', else the whole step's."""
    bad = [row for part in found for row in part.bad_rows]
    near = [row for part in found for row in part.rows]
    return list(dict.fromkeys([*bad, *near])) or list(rows)


def keep(job: Job, facts: dict[str, Any], *, step: int) -> Path:
    """Write the file, from the first rank; its path."""
    path = path_of(job.folder, step)
    if job.world.is_first:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, _text_of(facts))
    return path


def _text_of(facts: dict[str, Any]) -> str:
    """JSON with a line a fact, and a line an entry of a list of objects: token ids are long."""
    lines = [f"  {json.dumps(key)}: {_value_text(_plain(value))}" for key, value in facts.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value_text(value: Any) -> str:
    if not (isinstance(value, list) and value and isinstance(value[0], dict)):
        return json.dumps(value, ensure_ascii=False)
    return "[\n    " + ",\n    ".join(json.dumps(each, ensure_ascii=False) for each in value) + "\n  ]"


def _plain(value: Any) -> Any:
    """JSON's types all the way down."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return spoken(value)
