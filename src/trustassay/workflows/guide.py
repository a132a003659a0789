"""The pages of the guide, which are installed with the program, and a search in them."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from trustassay.errors import UsageError

ERRANDS = ("errands/", "start", "which-metric")
"""Pages that a person looks for more often than their words say."""
BOOST = 1.5
IN_HEADING = 4.0
"""What a word in a heading counts as, in occurrences."""
IN_TITLE = 1.0
"""What a word in the title or the name of a page adds, in units of its rarity."""
_SATURATION = 1.2
"""k1 of BM25: how soon more occurrences of a word add little."""
_STOP = frozenset(
    "a an and are as at be by do does for from how i if in is it my of on or the this to what when "
    "with you your can".split()
)
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class GuidePage:
    """A page of the guide. name: its path without ``.md``, such as ``errands/ci``."""

    name: str
    text: str

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
        """How often each word occurs, those of the title and of headings more."""
        counts: Counter[str] = Counter(words(_COMMENT.sub("", self.text)))
        weights = {word: float(count) for word, count in counts.items()}
        for heading in re.findall(r"^##+ (.+)$", self.prose, re.MULTILINE):
            for word in set(words(heading)):
                weights[word] = weights.get(word, 0.0) + IN_HEADING
        return weights


def pages() -> list[GuidePage]:
    """Return the pages as installed, or of the clone it runs from; UsageError: there are none."""
    folder = Path(str(files("trustassay").joinpath("guide")))
    if not folder.is_dir():
        folder = Path(__file__).parents[3] / "docs"
    result = [
        GuidePage(path.relative_to(folder).with_suffix("").as_posix(), path.read_text("utf-8"))
        for path in sorted(folder.rglob("*.md"))
        if path.relative_to(folder).parts[0] != "api"
    ]
    if not result:
        raise UsageError(f"no pages of the guide in {folder}; install trustassay again")
    return result


def search(query: str, among: Sequence[GuidePage]) -> list[GuidePage]:
    """Return the pages with words of the query, best first, by BM25 without lengths of pages."""
    asked = sorted(set(words(query)))
    rarity = {
        word: math.log(1 + len(among) / (0.5 + sum(word in one.counts for one in among)))
        for word in asked
    }

    def score(one: GuidePage) -> float:
        counts = [(rarity[word], one.counts.get(word, 0.0)) for word in asked]
        # Half of the saturation depends on the length, so that long pages do not always win.
        length = sum(one.counts.values()) / 800
        bound = _SATURATION * (0.5 + 0.5 * length)
        total = sum(rare * count / (count + bound) for rare, count in counts)
        named = words(f"{one.title} {one.name}")
        total += sum(IN_TITLE * rarity[word] for word in asked if word in named)
        return total * (BOOST if one.name.startswith(ERRANDS) else 1.0)

    scores = {one.name: score(one) for one in among}
    return sorted(
        (one for one in among if scores[one.name]), key=lambda one: (-scores[one.name], one.name)
    )


def excerpt(one: GuidePage, query: str) -> str:
    """Return the line of a page with most of the query's words."""
    asked = set(words(query))
    lines = [line.strip() for line in one.prose.splitlines() if line.strip()[:1] not in "#|"]
    return max(lines, key=lambda line: len(asked.intersection(words(line))), default="")


def words(text: str) -> list[str]:
    """Return the words of a text by which pages are searched: lower case, without endings."""
    return [stem(word) for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in _STOP]


def stem(word: str) -> str:
    """Return a word without the common endings of English."""
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending) + ("y" if ending == "ies" else "")
            break
    return word.removesuffix("e") if len(word) > 3 else word
