"""Every link of the manual leads somewhere, also to the heading that it names."""

import re
from pathlib import Path

import pytest

from tests.docs.manual import INLINE, LINK, PAGES, ROOT, anchors, links, prose, slug

# Plain paths below the repository's own folders; those with <name>, * or capitals stand for others.
REPOSITORY_PATH = re.compile(r"(?:launcher|tests|docs|recipes|scripts|benchmarks|constraints)/[a-z0-9_./-]+")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    wrong = [link for link in LINK.findall(prose(page)) if not leads_somewhere(page, link)]
    assert wrong == []


def leads_somewhere(page: Path, link: str) -> bool:
    if link.startswith(("http://", "https://", "mailto:")):
        return True
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    if not target.exists():
        return False
    return not anchor or target.suffix != ".md" or anchor in anchors(target)


def test_the_check_finds_what_is_wrong(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `code` title: here\n", encoding="utf-8")
    assert slug("A `code` title: here") == "a-code-title-here"
    assert leads_somewhere(page, "#a-code-title-here")
    assert not leads_somewhere(page, "#elsewhere")
    assert not leads_somewhere(page, "nowhere.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_of_the_repository_exist(page: Path) -> None:
    named = [text for text in INLINE.findall(prose(page)) if REPOSITORY_PATH.fullmatch(text)]
    assert [text for text in named if not (ROOT / text).exists()] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    docs = ROOT / "docs"
    reached, open_pages = set(), [docs / "README.md"]
    while open_pages:
        page = open_pages.pop()
        reached.add(page)
        for link in LINK.findall(prose(page)):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.exists() and target not in reached:
                open_pages.append(target)
    assert sorted(page.name for page in docs.glob("*.md") if page not in reached) == []


def test_there_are_links() -> None:
    assert len(list(links())) > 50
