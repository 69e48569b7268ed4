"""What is cited is there: ``redo-format``, a section sign, ``4.6`` is a heading.

So is what is cited by the words of a heading: ``architecture, “Accounting”``.

Documents are the pages of docs/internals, cited by their names without ``.md``. A citation without
a name is of the document named before it in the same docstring, comment or paragraph; on a page of
docs/internals it is of that page.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
INTERNALS: Final = ROOT / "docs" / "internals"
FOLDERS: Final = ("olr_pg", "tests", "docs", "tools")
SUFFIXES: Final = {".py", ".md", ".sql", ".sh", ".toml", ".yml", ".yaml"}

SIGN: Final = "\N{SECTION SIGN}"
"""Written so that this file cites nothing."""

NUMBERED: Final = ("redo-format", "values-and-lobs", "dictionary", "type-mapping")
"""Pages whose headings are numbered."""

TITLED: Final = {
    "architecture": INTERNALS / "architecture.md",
    "protocol": ROOT / "docs" / "protocol.md",
}
"""Pages that are cited by the words of their headings."""

NEIGHBOURS: Final = ("design", "apply", "peers", "protocol", "spark", "style", "architecture")
"""Names that look like documents and have no numbered page."""

CITED: Final = re.compile(
    rf"(?:(?P<word>[A-Za-z][\w-]*)(?:\.md)?[`\]]*(?:\([^()\s]*\))?\s+)?"
    rf"{SIGN}\s?(?P<section>\d+(?:\.\d+)?|\S*)"
)
"""A section sign, the word before it and the number behind it."""

IN_A_ROW: Final = re.compile(r"\s*(?:,|–|-|and|or|,\s+and)\s*")
"""What may stand between the citations of one list."""

STRINGS: Final = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
"""What strings are made of; Python 3.12 parts the f-strings."""

HEADING: Final = re.compile(r"^#{2,4} (\d+(?:\.\d+)?)\.?\s", re.MULTILINE)

TITLE: Final = re.compile(r"^#{2,4} (.*)$", re.MULTILINE)

QUOTED: Final = re.compile(r"\b(architecture|protocol),?((?:,?\s*[“\"][^”\"]+[”\"])+)")
"""A page and the headings that are cited of it, in quotes."""


class Block(NamedTuple):
    """A docstring, a run of comment lines, or a paragraph; `line` is its first."""

    line: int
    text: str


class Citation(NamedTuple):
    """One section of a document that a file cites; no document where none is told."""

    path: str
    line: int
    document: str | None
    section: str

    @property
    def place(self) -> str:
        """Where it is and what it says, for a message."""
        return f"{self.path}:{self.line}: {self.document or 'no document'} {SIGN}{self.section}"


def python_blocks(source: str) -> Iterator[Block]:
    """The strings and the runs of comment lines of a module."""
    run: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if run and token.start[0] != last + 1:
                yield Block(first, "\n".join(run))
                run = []
            if not run:
                first = token.start[0]
            run.append(token.string.lstrip("#"))
            last = token.start[0]
        elif token.type in STRINGS:
            yield Block(token.start[0], token.string)
    if run:
        yield Block(first, "\n".join(run))


def paragraphs(source: str) -> Iterator[Block]:
    """The paragraphs of a page, each row of a table and each item of a list by itself."""
    run: list[str] = []
    first = 0
    for number, line in enumerate(source.split("\n"), 1):
        alone = line.startswith("|")
        if run and (alone or not line.strip() or re.match(r"\s*(?:[*#-]|\d+\.) ?", line)):
            yield Block(first, "\n".join(run))
            run = []
        if alone:
            yield Block(number, line)
        elif line.strip():
            if not run:
                first = number
            run.append(line)
    if run:
        yield Block(first, "\n".join(run))


def citations(path: str, source: str) -> Iterator[Citation]:
    """What a file cites, in its order.

    Args:
        path: relative to the repository.
        source: its text.
    """
    folder, _, name = path.rpartition("/")
    own = name.removesuffix(".md") if folder == "docs/internals" else None
    for block in (python_blocks if path.endswith(".py") else paragraphs)(source):
        document, end = own, 0
        for found in CITED.finditer(block.text):
            sign = block.text.index(SIGN, found.start())
            if found["word"] in NUMBERED or found["word"] in NEIGHBOURS:
                document = found["word"]
            elif own and not (end and IN_A_ROW.fullmatch(block.text[end:sign])):
                document = own
            line = block.line + block.text.count("\n", 0, sign)
            yield Citation(path, line, document, found["section"])
            end = found.end()


def files() -> Iterator[Path]:
    """The files that may cite, this one apart."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and path != Path(__file__) and path.is_file():
                yield path


@cache
def all_citations() -> tuple[Citation, ...]:
    """The citations of the whole repository."""
    return tuple(
        one
        for path in files()
        if SIGN in (source := path.read_text("utf-8"))
        for one in citations(path.relative_to(ROOT).as_posix(), source)
    )


def sections(page: str) -> list[str]:
    """The numbers of a page's headings, outside of its code."""
    return HEADING.findall(re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL))


CODE: Final = "olr_pg/redo/kernel.py"
PAGE: Final = "docs/internals/redo-format.md"
SOURCES: Final = {
    "one": (CODE, '"""Facts: redo-format @4.6."""', ["redo-format 4.6"]),
    "a range": (CODE, "# redo-format @4.0–@4.2", ["redo-format 4.0", "redo-format 4.2"]),
    "remarks between": (
        CODE,
        "# redo-format @4.8 (of a pair), @5.2 (sizes)",
        ["redo-format 4.8", "redo-format 5.2"],
    ),
    "two documents": (
        CODE,
        "# dictionary @2.3, @2.6, redo-format @6.1 and @7",
        ["dictionary 2.3", "dictionary 2.6", "redo-format 6.1", "redo-format 7"],
    ),
    "cut by a line": (CODE, '"""A set (values-and-lobs\n    @17.1)."""', ["values-and-lobs 17.1"]),
    "a comment of two lines": (CODE, "# type-mapping\n# @4.5", ["type-mapping 4.5"]),
    "another docstring": (
        CODE,
        '"""Facts: redo-format @4."""\n\ndef f():\n    """As said (@5.7)."""\n',
        ["redo-format 4", "None 5.7"],
    ),
    "a document without a page": (CODE, "# design @5, @6", ["design 5", "design 6"]),
    "no number": (CODE, "# redo-format @", ["redo-format "]),
    "the page itself": (PAGE, "The layout of @4.3, see @5.", ["redo-format 4.3", "redo-format 5"]),
    "another page and back": (
        PAGE,
        "[dictionary](dictionary.md) @2.7, @4 and @5, as `values-and-lobs` @1 says (@6).",
        ["dictionary 2.7", "dictionary 4", "dictionary 5", "values-and-lobs 1", "redo-format 6"],
    ),
    "rows of a table": (
        "docs/lobs.md",
        "| redo-format @1 | a |\n| b | @2 |",
        ["redo-format 1", "None 2"],
    ),
}
"""Of each: the path of a file, what is in it with @ for the sign, and what it cites."""


@pytest.mark.parametrize("case", SOURCES)
def test_forms_of_citations(case: str) -> None:
    path, source, expected = SOURCES[case]
    found = [f"{one.document} {one.section}" for one in citations(path, source.replace("@", SIGN))]
    assert found == expected


def test_a_citation_tells_its_line() -> None:
    source = f'"""One.\n\nTwo {SIGN}3.\n"""\n\n# Four.\n# redo-format {SIGN}5\n'
    assert [one.place for one in citations(CODE, source)] == [
        f"{CODE}:3: no document {SIGN}3",
        f"{CODE}:7: redo-format {SIGN}5",
    ]


@pytest.mark.parametrize("name", NUMBERED)
def test_a_cited_section_is_a_heading(name: str) -> None:
    there = set(sections((INTERNALS / f"{name}.md").read_text("utf-8")))
    missing = [
        one.place for one in all_citations() if one.document == name and one.section not in there
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("name", NUMBERED)
def test_a_number_heads_one_section(name: str) -> None:
    counts = Counter(sections((INTERNALS / f"{name}.md").read_text("utf-8")))
    assert [number for number, count in counts.items() if count > 1] == []


def test_every_citation_names_a_page() -> None:
    nameless = [one.place for one in all_citations() if one.document not in NUMBERED]
    assert not nameless, "\n".join(nameless)


def test_every_section_sign_is_a_citation() -> None:
    cited = Counter(one.path for one in all_citations())
    for path in files():
        signs = path.read_text("utf-8").count(SIGN)
        assert cited[path.relative_to(ROOT).as_posix()] == signs, path


def quoted(source: str) -> Iterator[tuple[str, str]]:
    """Page and heading of what a module cites by the words of a heading."""
    for block in python_blocks(source):
        text = re.sub(r"\s*\n[\s#]*", " ", block.text)
        for page, headings in QUOTED.findall(text):
            for heading in re.findall(r"[“\"]([^”\"]+)[”\"]", headings):
                yield page, heading


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# architecture, “Java”, “Applying” and more", ["Java", "Applying"]),
        ('"""One (architecture, “Few\n    large cells”)."""', ["Few large cells"]),
        ("# of the protocol, “Frames”\n# or protocol “A\n# b”", ["Frames", "A b"]),
        ("# the protocol gives “names”", []),
    ],
)
def test_forms_of_quoted_headings(source: str, expected: list[str]) -> None:
    assert [heading for _, heading in quoted(source + "\n")] == expected


def test_a_quoted_heading_is_one() -> None:
    titles = {name: set(TITLE.findall(path.read_text("utf-8"))) for name, path in TITLED.items()}
    cited = [
        (path, *one)
        for path in files()
        if path.suffix == ".py"
        and ("architecture" in (text := path.read_text("utf-8")) or "protocol" in text)
        for one in quoted(text)
    ]
    assert {page for _, page, _ in cited} == set(TITLED)
    wrong = [f"{path}: {page}, {title}" for path, page, title in cited if title not in titles[page]]
    assert not wrong, "\n".join(wrong)
