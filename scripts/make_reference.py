"""Write the generated parts of the manual: docs/recipe.md, recipe.schema.json, tables of docs/from-*.md."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from launcher.recipe.importing.dialect import DIALECTS  # noqa: E402
from launcher.recipe.importing.page import filled  # noqa: E402
from launcher.recipe.json_schema import schema  # noqa: E402
from launcher.recipe.reference_page import markdown  # noqa: E402


def generated() -> dict[Path, str]:
    """Every generated file with its text."""
    docs = ROOT / "docs"
    pages = {docs / f"{dialect.page}.md": dialect for dialect in DIALECTS}
    return {
        docs / "recipe.md": markdown(),
        docs / "recipe.schema.json": json.dumps(schema(), indent=2, ensure_ascii=False) + "\n",
        **{path: filled(path.read_text(encoding="utf-8"), dialect) for path, dialect in pages.items()},
    }


if __name__ == "__main__":
    for path, text in generated().items():
        is_new = not path.exists() or path.read_text(encoding="utf-8") != text
        path.write_text(text, encoding="utf-8")
        print(f"{'written' if is_new else 'same'} {path.relative_to(ROOT)}")
