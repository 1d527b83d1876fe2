"""Lines that still use a word of words.txt, in the source, the tests, the pages and the docs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.shape.sources import python_files

WORDS_FILE = Path(__file__).with_name("words.txt")
EXEMPT_SECTION = "[exempt]"
AREAS = ("source", "tests", "templates", "docs")
OWN_FILES = (Path("tests/shape"), Path("tests/project/test_shape.py"))  # they hold the words themselves
IDENTIFIER = re.compile(r"[A-Za-z_]+")
CAMEL_BORDER = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class Word:
    pattern: re.Pattern[str]
    instead: str
    area: str = ""  # empty: all of them

    @classmethod
    def of(cls, words: str, instead: str, area: str = "") -> "Word":
        return cls(re.compile(f"(?:^|_)(?:{words})(?:_|$)"), instead, area)


@dataclass(frozen=True)
class WordList:
    words: list[Word]
    exempt: list[re.Pattern[str]]

    def find(self, line: str, area: str) -> Word | None:
        """The first word of the list in this line."""
        for pattern in self.exempt:
            line = pattern.sub(" ", line)
        for identifier in IDENTIFIER.findall(line):
            name = CAMEL_BORDER.sub("_", identifier).lower()
            for word in self.words:
                if word.area in ("", area) and word.pattern.search(name):
                    return word
        return None


@dataclass(frozen=True)
class Hit:
    area: str
    path: Path
    line_number: int
    line: str
    word: Word


def read_words(text: str) -> WordList:
    """Each line is a pattern, two or more spaces, and the word to use instead or the reason."""
    words: list[Word] = []
    exempt: list[re.Pattern[str]] = []
    is_exempt = False
    for line in text.splitlines():
        if line == EXEMPT_SECTION:
            is_exempt = True
        elif line and not line.startswith("#"):
            pattern, reason = re.split(r"\s{2,}", line, maxsplit=1)
            if is_exempt:
                exempt.append(re.compile(pattern))
            else:
                spelling, _, area = pattern.partition(" @")
                words.append(Word.of(spelling, reason, area))
    return WordList(words, exempt)


def find_words(tree: Path) -> list[Hit]:
    word_list = read_words(WORDS_FILE.read_text())
    hits: list[Hit] = []
    for area in AREAS:
        for path in area_files(tree, area):
            hits += _find_in_file(path, path.relative_to(tree), area, word_list)
    return hits


def _find_in_file(path: Path, shown_path: Path, area: str, word_list: WordList) -> Iterator[Hit]:
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        word = word_list.find(line, area)
        if word is not None:
            yield Hit(area, shown_path, number, line.strip(), word)


def area_files(tree: Path, area: str) -> Iterator[Path]:
    if area == "source":
        yield from python_files(tree)
    elif area == "tests":
        yield from _test_files(tree)
    elif area == "templates":
        yield from _page_files(tree)
    else:
        yield from sorted(tree.glob("*.md"))
        yield from sorted(tree.glob("docs/**/*.md"))
        yield from sorted(tree.glob("bench/*.md"))
        yield tree / "Makefile"
        yield tree / "pyproject.toml"


def _test_files(tree: Path) -> Iterator[Path]:
    for folder in ("tests", "bench"):
        for path in sorted((tree / folder).rglob("*.py")):
            relative = path.relative_to(tree)
            if not any(relative.is_relative_to(own) for own in OWN_FILES):
                yield path


def _page_files(tree: Path) -> Iterator[Path]:
    """Templates, and the scripts and styles of the pages; those of others are under vendor/."""
    yield from sorted((tree / "templates").rglob("*.html"))
    for pattern in ("*.js", "*.css"):
        for path in sorted((tree / "gateway_app").rglob(pattern)):
            if "vendor" not in path.parts:
                yield path
