"""``trustassay help``: pages of the guide, which are installed with the program, and a search."""

import math
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from trustassay.cli.options import with_options
from trustassay.errors import UsageError
from trustassay.runs.options import (
    Flag,
)

BOOSTED_PAGES = ("errands/", "start", "which-metric")
"""Prefixes of pages that people look for most often; their scores are multiplied by ``BOOST``."""
BOOST = 1.5
HEADING_WEIGHT = 4.0
"""A word in a heading counts as this many further occurrences."""
TITLE_WEIGHT = 1.0
"""A word in the title or name of a page adds its rarity times this weight."""
_SATURATION = 1.2
"""k1 of BM25: the larger, the more further occurrences of a word add."""
_STOP_WORDS = frozenset(
    "a an and are as at be by do does for from how i if in is it my of on or the this to what when "
    "with you your can".split()
)
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class GuidePage:
    """A page of the guide."""

    name: str
    """Its path without ``.md``, such as ``errands/ci``."""
    text: str
    """Its Markdown."""

    @property
    def title(self) -> str:
        """The first heading."""
        match = re.search(r"^# (.+)$", self.text, re.MULTILINE)
        return match[1].replace("`", "") if match else self.name

    @cached_property
    def prose(self) -> str:
        """The text without code and comments."""
        return _COMMENT.sub("", _FENCE.sub("", self.text))

    @cached_property
    def counts(self) -> Mapping[str, float]:
        """The weighted number of occurrences of each word; words in headings weigh more."""
        counts: Counter[str] = Counter(split_words(_COMMENT.sub("", self.text)))
        weights = {word: float(count) for word, count in counts.items()}
        for heading in re.findall(r"^##+ (.+)$", self.prose, re.MULTILINE):
            # set(): a heading that repeats a word must not count twice.
            for word in set(split_words(heading)):
                weights[word] = weights.get(word, 0.0) + HEADING_WEIGHT
        return weights


def read_pages() -> list[GuidePage]:
    """Read the installed pages, or those of the clone it runs from; UsageError: there are none."""
    folder = Path(str(files("trustassay").joinpath("guide")))
    if not folder.is_dir():
        # An editable install has no copy of the pages, so read those of the clone.
        folder = Path(__file__).parents[3] / "docs"
    result = [
        GuidePage(path.relative_to(folder).with_suffix("").as_posix(), path.read_text("utf-8"))
        for path in sorted(folder.rglob("*.md"))
        # The API pages are generated from docstrings and are empty as files.
        if path.relative_to(folder).parts[0] != "api"
    ]
    if not result:
        raise UsageError(f"{folder}: the pages of the guide are missing; install trustassay again")
    return result


def search(query: str, pages: Sequence[GuidePage]) -> list[GuidePage]:
    """Return the pages with words of the query, best first, by BM25 with weak length correction."""
    query_words = sorted(set(split_words(query)))
    rarity = {
        # Rarity is the inverse document frequency of BM25; 0.5 avoids a division by zero.
        word: math.log(1 + len(pages) / (0.5 + sum(word in page.counts for page in pages)))
        for word in query_words
    }

    def score(page: GuidePage) -> float:
        counts = [(rarity[word], page.counts.get(word, 0.0)) for word in query_words]
        # Half of the saturation depends on the length, so that long pages do not always win.
        length = sum(page.counts.values()) / 800
        bound = _SATURATION * (0.5 + 0.5 * length)
        total = sum(rare * count / (count + bound) for rare, count in counts)
        heading_words = split_words(f"{page.title} {page.name}")
        total += sum(TITLE_WEIGHT * rarity[word] for word in query_words if word in heading_words)
        return total * (BOOST if page.name.startswith(BOOSTED_PAGES) else 1.0)

    scores = {page.name: score(page) for page in pages}
    return sorted(
        (page for page in pages if scores[page.name]),
        key=lambda page: (-scores[page.name], page.name),
    )


def find_excerpt(page: GuidePage, query: str) -> str:
    """Return the line of a page that has the most words of the query."""
    # Headings and tables (lines that begin with # or |) read badly as an excerpt.
    query_words = set(split_words(query))
    lines = [line.strip() for line in page.prose.splitlines() if line.strip()[:1] not in "#|"]
    return max(lines, key=lambda line: len(query_words.intersection(split_words(line))), default="")


def split_words(text: str) -> list[str]:
    """Split a text into the words that are searched: lower case, stemmed, no stop words."""
    return [
        stem(word) for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in _STOP_WORDS
    ]


def stem(word: str) -> str:
    """Strip the common English endings of a word."""
    # Longer endings first: "queries" must match "ies" before "es".
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            # "queries" and "query" have to meet; "es" and "ed" may leave a final "e" to strip.
            word = word.removesuffix(ending) + ("y" if ending == "ies" else "")
            break
    return word.removesuffix("e") if len(word) > 3 else word


MAX_PAGES_SHOWN = 5
"""Pages of the guide that a search lists."""


@with_options
def help_command(
    words: Annotated[
        list[str] | None,
        Flag("WORDS", "Words to search for, or the name of a page to print."),
    ],
) -> None:
    """Search the guide that is installed with trustassay; without words, list its pages.

    \b
    trustassay help compare two models
    trustassay help errands/ci
    """
    pages = {page.name: page for page in read_pages()}
    if not words:
        for page in pages.values():
            typer.echo(f"{page.name:<28} {page.title}")
        return
    # The name of a page prints it; every other word is searched for.
    if len(words) == 1 and words[0] in pages:
        typer.echo(pages[words[0]].text)
        return
    query = " ".join(words)
    result = search(query, list(pages.values()))[:MAX_PAGES_SHOWN]
    if not result:
        raise UsageError(
            f"no page of the guide contains {query!r}; `trustassay help` lists the pages"
        )
    for page in result:
        typer.echo(f"{page.name}: {page.title}")
        for line in textwrap.wrap(find_excerpt(page, query), 92)[:2]:
            typer.echo(f"    {line}")
    typer.echo(f"\nto read a page: trustassay help {result[0].name}")
