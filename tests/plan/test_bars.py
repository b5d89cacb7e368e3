"""Bars of text and pictures: what is drawn adds up, and the card's end is marked."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

import pytest

from launcher.errors import RecipeError
from launcher.memory.breakdown import Breakdown, Phase, Standing, Term
from launcher.plan.bars import bar_lines, glyphs
from launcher.plan.picture import svg_text, write_png
from launcher.units import GIB


def term(name: str, gib: float) -> Term:
    return Term(name=name, num_bytes=int(gib * GIB), formula="f")


FOUND = Breakdown(
    phases=(
        Phase(name="load", terms=(term("weights", 6),)),
        Phase(name="backward", terms=(term("weights", 6), term("activations", 3), term("gradients", 3))),
        Phase(name="optimizer", terms=(term("weights", 6), term("states <8-bit>", 4))),
    ),
    reserved_bytes=(12 * GIB, 13 * GIB),
    process_bytes=(12 * GIB, 14 * GIB),
    standing=Standing(kind="derived"),
)


def test_bars_are_as_long_as_their_share_of_the_card() -> None:
    lines = bar_lines(FOUND, 24 * GIB, width=48)
    bars = {line.split()[0]: line.split("|")[1] for line in lines if line.count("|") == 2 and line[0] != " "}
    assert {name: len(bar.strip()) for name, bar in bars.items()} == {
        "load": 12, "backward": 24, "optimizer": 20,
    }  # fmt: skip
    assert bars["backward"].strip() == "W" * 12 + "A" * 6 + "G" * 6
    assert [line for line in lines if "<- peak" in line] == [
        line for line in lines if line.startswith("backward")
    ]


def test_what_is_over_the_card_reaches_past_its_mark() -> None:
    ruler, *bars = bar_lines(FOUND, 8 * GIB, width=48)[:4]
    end = ruler.index(">")
    assert len(bars[1].rstrip().split("|")[1].rstrip()) == 48
    assert end < len(ruler) - 10 and bars[1][end + 1] not in " |"


def test_every_term_has_a_letter_of_its_own() -> None:
    names = ["weights", "words", "wow", "a", "aa"]
    assert len(set(glyphs(names).values())) == len(names)


def test_the_svg_is_well_formed_and_drawn_to_scale() -> None:
    tree = ElementTree.fromstring(svg_text(FOUND, 24 * GIB, title="a < b & c"))
    boxes = [box for box in tree.iter("{http://www.w3.org/2000/svg}rect") if len(box)]
    widths = [float(box.attrib["width"]) for box in boxes]
    assert widths[2] / widths[1] == pytest.approx(0.5, abs=0.01)
    assert len(boxes) == sum(len(phase.terms) for phase in FOUND.phases)
    assert "states <8-bit>: 4.00 GiB = f" in [box[0].text for box in boxes]


def test_a_png_needs_matplotlib_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "plan.png"
    if importlib.util.find_spec("matplotlib"):
        write_png(path, FOUND, 24 * GIB, title="t")
        assert path.read_bytes().startswith(b"\x89PNG")
    else:
        with pytest.raises(RecipeError, match="pip install matplotlib"):
            write_png(path, FOUND, 24 * GIB, title="t")
