"""An imported recipe as a file to edit, and the list of what became of every key."""

from collections.abc import Iterator
from typing import Any

from launcher.recipe.dump import written
from launcher.recipe.importing.fit import TO_SAY
from launcher.recipe.importing.importer import Imported
from launcher.recipe.keys import PIECES, fields_of, known, sections
from launcher.recipe.provenance import as_typed

_SAY = {
    "model.model_name_or_path": "yours to say: a hub id, or a folder",
    "data.train_file": "yours to say: your rows",
    "task": "yours to say: classification or causal_lm",
}


def recipe_text(imported: Imported) -> str:
    """The recipe: only what the file said, in the schema's order, what is still to be said marked."""
    lines = [f"# imported from {imported.source} ({imported.dialect.title})"]
    told = _without_defaults(imported.values)
    values = {key: told[key] for key in _ordered(told)}
    if "summary" not in values:
        lines.append(f"summary: {written(_summary(imported))}")
    section = ""
    for key, value in values.items():
        name, _, leaf = key.partition(".")
        if leaf and name != section:
            section = name
            lines += ["", f"{name}:"]
        mark = f"  # {_SAY[key]}" if key in imported.to_say else ""
        lines.append(f"{'  ' if leaf else ''}{leaf or name}: {written(value)}{mark}")
    lines += [*_left(imported)]
    return _writable("\n".join(lines) + "\n")


def _writable(text: str) -> str:
    """Halves of characters, which JSON's escapes can make and no file holds, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


# Written also where they are as here by default: what a person turns first.
_ALWAYS = (
    *("global_batch_size", "per_device_train_batch_size", "learning_rate", "num_train_epochs"),
    *("max_length", "lora_r", "lora_alpha"),
)


def _without_defaults(values: dict[str, Any]) -> dict[str, Any]:
    """Without what would be so anyway, and is no first thing to turn."""
    return {
        key: value
        for key, value in values.items()
        if key.endswith(_ALWAYS) or key in TO_SAY or not _is_default(key, value, values)
    }


def _is_default(key: str, value: Any, values: dict[str, Any]) -> bool:
    section, _, leaf = key.partition(".")
    if section in PIECES:
        choice = PIECES[section][0]
        info = fields_of(section, values.get(f"{section}.{choice}")).get(leaf) if leaf != choice else None
    else:
        info = known().get((section, leaf) if leaf else (section,))
    if info is None or info.is_required():
        return False
    return bool((tuple(value) if isinstance(value, list) else value) == info.default)


def _summary(imported: Imported) -> str:
    model = str(imported.values["model.model_name_or_path"]).rstrip("/").rpartition("/")[2]
    method = imported.values.get("adapter.method", "full")
    return f"{method} of {'a model to be named' if model == TO_SAY['model.model_name_or_path'] else model}"


def _ordered(values: dict[str, Any]) -> list[str]:
    """Single keys first, then the sections as the schema has them; columns are one mapping."""
    folded = _folded(values)
    values.clear()
    values |= folded
    places = {".".join(path): number for number, path in enumerate(known())}
    tops = [key for key in values if "." not in key]
    rest = [key for key in values if "." in key]
    order = {name: number for number, name in enumerate(sections())}
    return [
        *sorted(tops, key=lambda key: places.get(key, 0)),
        *sorted(rest, key=lambda key: (order.get(key.partition(".")[0], 0), places.get(key, 0))),
    ]


def _folded(values: dict[str, Any]) -> dict[str, Any]:
    """`data.columns.text` and its like as one mapping each."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        parts = key.split(".")
        if len(parts) > 2:
            found.setdefault(".".join(parts[:2]), {})[".".join(parts[2:])] = value
        else:
            found[key] = value
    return found


def _left(imported: Imported) -> Iterator[str]:
    if imported.left:
        yield ""
        yield "# not carried over:"
        for each in imported.left:
            yield f"#   {_one_line(each.theirs)}: {_one_line(each.value)} ({_one_line(each.why)})"


def _one_line(value: Any) -> str:
    return " ".join(as_typed(value).split())


def report(imported: Imported) -> str:
    """What became of every key, for a person: carried over, left with reasons, saying nothing."""
    lines = [f"{imported.source}: {imported.dialect.title}"]
    lines += [f"carried over: {len(imported.carried)}"]
    for each in imported.carried:
        ours = ", ".join(f"{key}: {written(value)}" for key, value in each.ours.items())
        lines.append(
            f"  {each.theirs}: {_one_line(each.value)}" + (f" -> {ours}" if ours else " (with others)")
        )
    lines += [*_told_left(imported)]
    if imported.quiet:
        lines.append(f"off, empty or left to the tool there: {', '.join(imported.quiet)}")
    if imported.needless:
        lines.append(f"needs no saying here: {', '.join(imported.needless)}")
    lines += [f"note: {note}" for note in imported.notes]
    lines += [f"yours to say: {key} ({_SAY[key].partition(': ')[2]})" for key in imported.to_say]
    return "\n".join(lines)


def _told_left(imported: Imported) -> Iterator[str]:
    yield f"not carried over: {len(imported.left)}"
    for each in imported.left:
        yield f"  {each.place}  {each.theirs}: {_one_line(each.value)}"
        yield f"    why: {_one_line(each.why)}"
        if each.nearest:
            yield f"    nearest: {_one_line(each.nearest)}"
