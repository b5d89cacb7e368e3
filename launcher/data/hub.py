"""Data sets by their hub id, and folders that `datasets` has saved."""

from pathlib import Path
from typing import Any

from launcher.data.arrow import load_package, table_of
from launcher.data.place import hub_name
from launcher.data.reading import Reading
from launcher.data.table import Table
from launcher.errors import DataError, Problem
from launcher.registry import nearest

_ROWS_AT_ONCE = 1024


def load_hub(path: Path, reading: Reading) -> Table:
    """One split of a hub data set. Raises DataError where it cannot be had, naming the way out."""
    datasets = load_package("datasets", path)
    name, revision = hub_name(path)
    datasets.disable_progress_bars()
    try:
        found = datasets.load_dataset(name, reading.subset, split=reading.split, revision=revision)
    except Exception as error:  # the library raises its own, the hub's, and plain OSErrors alike
        raise DataError(_unreachable(name, reading, error)) from None
    return _table(found, Path(f"hf://{name}"), reading)


def load_saved(path: Path, reading: Reading) -> Table:
    """One split of a folder that save_to_disk wrote. Raises DataError where it does not load."""
    datasets = load_package("datasets", path)
    datasets.disable_progress_bars()
    try:
        found = datasets.load_from_disk(str(path))
    except Exception as error:  # damaged files raise what the library below raises
        raise DataError(
            Problem(
                where=str(path),
                what=f"the saved data set does not load: {_first_line(error)}",
                right="a folder that save_to_disk wrote, whole",
                type="save it again",
            )
        ) from None
    return _table(_split(found, path, reading), path, reading)


def _split(found: Any, path: Path, reading: Reading) -> Any:
    if not hasattr(found, "keys"):
        return found
    if reading.split in found:
        return found[reading.split]
    names = sorted(found)
    key = "data.train_split" if reading.key == "data.train_file" else "data.eval_split"
    raise DataError(
        Problem(
            where=str(path),
            what=f"there is no split '{reading.split}'",
            right=f"one of: {', '.join(names)}",
            type=f"{key}={nearest(reading.split or '', names) or names[0]}",
        )
    )


def _table(found: Any, path: Path, reading: Reading) -> Table:
    parts = found.with_format("arrow").iter(batch_size=_ROWS_AT_ONCE)
    return table_of(parts, found.column_names, path, found.features)


def _unreachable(name: str, reading: Reading, error: Exception) -> Problem:
    return Problem(
        where=reading.key,
        what=f"'{name}' is no file here, and as a hub data set it cannot be had "
        f"(split {reading.split}{f', subset {reading.subset}' if reading.subset else ''}): "
        f"{_first_line(error)}",
        right="a file that exists, or a data set that the hub (or its cache here) has",
        type=f"{reading.key}=FILE; offline: HF_ENDPOINT=MIRROR, or datasets' save_to_disk elsewhere and "
        f"{reading.key}=FOLDER",
    )


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]
