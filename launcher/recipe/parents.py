"""`extends:` followed upwards: a recipe's file and all its parents', the topmost first."""

from pathlib import Path

from launcher.errors import Problem, RecipeError
from launcher.recipe.document import Document, read_document
from launcher.recipe.library import find
from launcher.recipe.provenance import as_typed, shown


def lineage(path: Path) -> list[Document]:
    """The topmost parent first, the recipe itself last. Raises RecipeError for a cycle or a lost parent."""
    documents = [read_document(path)]
    while (parent := _parent(documents[-1])) is not None:
        if parent in [document.path for document in documents]:
            raise RecipeError(_cycle(documents, parent))
        documents.append(read_document(parent))
    return documents[::-1]


def _parent(document: Document) -> Path | None:
    entry = document.entries.get("extends")
    if entry is None or entry.value is None:
        return None
    where = f"{shown(document.path)}:{entry.line}"
    if isinstance(entry.value, str):
        return find(entry.value, beside=document.path.parent, where=where)
    raise RecipeError(
        Problem(
            where=where,
            what=f"extends: '{as_typed(entry.raw)}' is no parent",
            right="one shipped name, or one file beside this one",
            type="extends: quickstart",
        )
    )


def _cycle(documents: list[Document], parent: Path) -> Problem:
    last = documents[-1]
    story = " -> ".join([*(shown(document.path) for document in documents), shown(parent)])
    return Problem(
        where=f"{shown(last.path)}:{last.entries['extends'].line}",
        what=f"extends: the parents go in a circle: {story}",
        right="a chain that ends in a recipe without extends",
        type="remove this line",
    )
