"""All code of all pages: run here as a reader would, by a test named here, or shown for a reason.

`tests/support/pages.py` says how each language is run.
"""

import re
from pathlib import Path

import pytest
from tests.support.pages import DOCS, PAGES, ROOT, Reader, find_blocks

README_LINES_MAX = 120
TERMS_MIN = 40
RUN_HERE = {"sql", "python", "sh", "text", "json", "toml"}
WRITTEN = {"html"}  # files of a page that other blocks use
SITE = {"{toctree}", "{include}"}  # directives that build the site
# What needs more than a folder and a shell: the page, the language, and the test that runs it.
ELSEWHERE = {
    ("README.md", "js"): "tests/edge/test_docs.py",
    ("docs/explanation/edge.md", "python"): "tests/edge/test_docs.py",
    ("docs/explanation/edge.md", "js"): "tests/edge/test_docs.py",
    ("docs/explanation/edge.md", "sh"): "tests/edge/test_docs.py",
    ("docs/explanation/recovery.md", "mermaid"): "tests/ha/test_docs.py",
    ("docs/reference/language.md", "plan"): "tests/lang/test_docs.py",
    (
        "docs/how-to/extend/source-or-sink-plugin.md",
        "sql",
    ): "tests/integration/test_source_pages.py",
}


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


def is_run_here(block):
    """A block that is shown is still written where it has a file name."""
    elsewhere = (relative(block.page), block.language) in ELSEWHERE
    return block.language in RUN_HERE | WRITTEN and not elsewhere


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_block_is_run_or_says_why_it_is_only_shown(page):
    for block in find_blocks(page):
        elsewhere = ELSEWHERE.get((relative(page), block.language))
        known = block.shown or elsewhere or block.language in RUN_HERE | SITE | WRITTEN
        assert known, f"{block}: no test runs {block.language!r}; write <!-- shown: REASON -->"
        assert not elsewhere or page.stem in (ROOT / elsewhere).read_text() + elsewhere


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_code_stands_in_fences(page):
    """Indented code has no language, so that nothing can say how it is run."""
    outside = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^\n    (?![-*\d ]).*$", outside, re.MULTILINE)
    assert not indented, f"put it between fences: {indented[0]}"


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(map(is_run_here, find_blocks(p)))], ids=relative
)
def test_the_code_of_a_page_does_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Reader(tmp_path) as reader:
        for block in filter(is_run_here, find_blocks(page)):
            reader.run(block)


def test_every_page_is_reached_from_the_index():
    listed = set()
    for page in PAGES:
        for block in find_blocks(page):
            if block.language == "{toctree}":
                names = [n for n in block.text.split() if not n.startswith(":")]
                listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    missing = {p for p in PAGES if DOCS in p.parents} - listed - {DOCS / "index.md"}
    assert not missing


def test_the_query_of_the_readme_is_the_demos():
    (query,) = [b.text for b in find_blocks(ROOT / "README.md") if b.language == "sql"]
    assert query == (ROOT / "src" / "edgewise" / "node" / "demo.siddhi").read_text()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < README_LINES_MAX


def test_a_term_of_the_glossary_stands_once():
    page = (DOCS / "GLOSSARY.md").read_text()
    rows = re.findall(r"^\| (?!term|---)(.+?) \|", page, re.MULTILINE)
    terms = [term.strip() for row in rows for term in re.split(r",(?![^(]*\))", row)]
    assert len(set(terms)) == len(terms) > TERMS_MIN
