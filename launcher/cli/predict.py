"""`launcher predict RUN TEXT`: use a trained model on a text that a person types, or on a file's lines."""

import argparse
import json
import shlex
import sys
from pathlib import Path

from launcher.errors import BadValue, Problem

SUMMARY = "use a trained model on a text"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN, then TEXT or --file."""
    parser.add_argument("run", help="a run folder, such as runs/quickstart, or a model folder of one")
    parser.add_argument("text", nargs="*", help="what to classify, or to answer; several words are one text")
    parser.add_argument("--file", help="a text file, one text a line; - for standard input")
    parser.add_argument("--json", action="store_true", help="one JSON object a text")
    parser.add_argument("--max-new-tokens", type=int, default=128, help="longest answer of a causal LM")


def run(args: argparse.Namespace) -> int:
    """Print a result a text."""
    texts = _texts(args)
    from launcher.export.whole_files import require_whole
    from launcher.train.final_model import read_facts

    require_whole(read_facts(Path(args.run))[0])  # refuse a wrong folder before torch is imported
    from launcher.export.predict import Predictor

    for result in Predictor(Path(args.run)).predict(texts, max_new_tokens=args.max_new_tokens):
        print(json.dumps(result, ensure_ascii=False) if args.json else _line(result), flush=True)
    return 0


def _line(result: dict[str, object]) -> str:
    if "label" in result:
        return f"{result['label']}\t{result['probability']}\t{result['text']}"
    if "labels" in result:
        labels = result["labels"]
        assert isinstance(labels, list)
        return f"{', '.join(labels) or '-'}\t{result['text']}"
    if "value" in result:
        return f"{result['value']}\t{result['text']}"
    return str(result["answer"])


def _texts(args: argparse.Namespace) -> list[str]:
    if args.file and not args.text:
        return _lines(args.file)
    if args.text and not args.file and (text := " ".join(args.text).strip()):
        return [text]
    raise BadValue(
        Problem(
            what="nothing to predict on, or both a text and a file",
            right="a text, or --file with one text a line",
            type=f"launcher predict {shlex.quote(args.run)} 'what a lovely film'",
        )
    )


def _lines(name: str) -> list[str]:
    """The texts of a file, one a line. Raises BadValue for what is no such file, or holds none."""
    try:
        content = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadValue(_not_read(name, error)) from error
    texts = [line for line in content.splitlines() if line.strip()]
    if not texts:
        raise BadValue(
            Problem(where=name, what="there is no text in it", right="one text a line", type="--file FILE")
        )
    return texts


def _not_read(name: str, error: OSError | UnicodeDecodeError) -> Problem:
    """Why the file cannot be read; of another encoding, the command that turns it into UTF-8."""
    what = (
        "there is no such file" if isinstance(error, FileNotFoundError) else f"cannot read the texts: {error}"
    )
    typed, path = "--file FILE", Path(name)
    if isinstance(error, IsADirectoryError):
        what = "this is a folder"
    if isinstance(error, UnicodeDecodeError) and path.is_file():
        from launcher.recipe.slips import other_encoding

        if other := other_encoding(path.read_bytes(), path):
            what, typed = f"the file is {other[0]}, not UTF-8", other[1]
    return Problem(where=name, what=what, right="a UTF-8 text file, one text a line", type=typed)
