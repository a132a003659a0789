"""The options of ``judge``; rubrics: what is judged, on which levels, and what the judge sees."""

import hashlib
import math
import os
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from trustassay.errors import UsageError, check_choices, check_least, did_you_mean
from trustassay.metric import Metric
from trustassay.prompts import Prompt

Aggregate = Literal["mean", "median", "majority", "expected"]
By = Literal["model", "entailer"]
Order = Literal["gold-first", "answer-first", "both"]

ENTAILER_PASSES = 0.5
"""The score from which an answer passes where an entailer judges: entailed more than denied."""


@dataclass(frozen=True)
class JudgeOptions(Metric):
    """Options of :class:`~trustassay.metrics.judge.metric.Judge`, checked.

    Args:
        rubric: ``truthfulness``, ``informativeness``, ``verdict``, ``answer``, ``code``,
            ``categories``, or a YAML file.
        by: ``model`` asks the run's judges; ``entailer`` asks the run's entailer, with no rubric.
        repeats: how often each judge is asked in each order.
        aggregate: how votes become a score: ``mean``, ``median``, ``majority`` (of several, the
            lowest), or ``expected``, the mean over the levels by their log-probabilities.
        threshold: the value from which a vote passes; without it as the rubric says.
        early: stop asking when no further vote can change the verdict. Means and deviations are
            then those of fewer votes.
        order: what the judge reads first; ``both`` asks twice and measures the difference.
        logprobs: ask for the log-probabilities of the levels.
        constrained: hold the reply to a JSON schema, where the endpoint can do so.
        prompt: file of a template in place of the one that ships.
        temperature, max_tokens: of every call; a temperature of ``None`` leaves it to the judge.
    """

    rubric: str = "truthfulness"
    by: By = "model"
    repeats: int = 1
    aggregate: Aggregate = "mean"
    threshold: float | None = None
    early: bool = False
    order: Order = "gold-first"
    logprobs: bool = False
    constrained: bool = False
    prompt: str | None = None
    temperature: float | None = 0.0
    max_tokens: int = 300

    def __post_init__(self) -> None:
        check_choices(self, by=By, aggregate=Aggregate, order=Order)
        check_least(self, repeats=1, max_tokens=1, temperature=0)
        scale = self.scale  # an unknown name or a faulty file is to fail here
        _ = self.template
        plain = JudgeOptions.__dataclass_fields__
        for option in ("rubric", "repeats", "aggregate", "early", "order", "logprobs", "prompt"):
            if self.by == "entailer" and getattr(self, option) != plain[option].default:
                raise UsageError(f"{option}: an entailer judges truthfulness alone, and once")
        low, high = self.score_range
        if self.threshold is not None and not low <= self.threshold <= high:
            raise UsageError(f"threshold: expected {low:g} to {high:g}, got {self.threshold:g}")
        if self.threshold is not None and not scale.ordinal:
            raise UsageError(f"threshold: the rubric {scale.name} has no order of levels")
        if self.aggregate == "expected" and not (self.logprobs and scale.ordinal):
            raise UsageError("aggregate: expected takes logprobs=yes and an ordinal rubric")
        if self.order != "gold-first" and "gold" not in (*scale.shows, *scale.shows_if_there):
            raise UsageError(f"order: the rubric {scale.name} shows no gold answer")

    @property
    def score_range(self) -> tuple[float, float]:
        """The values of the rubric's levels; 0 to 1 of an entailer."""
        return (0.0, 1.0) if self.by == "entailer" else self.scale.range

    @cached_property
    def scale(self) -> "Rubric":
        """The rubric itself."""
        return read_rubric(self.rubric)

    @cached_property
    def template(self) -> Prompt | None:
        """The user's own prompt."""
        return None if self.prompt is None else Prompt.read(self.prompt)

    @property
    def passes_from(self) -> float:
        """The value from which a vote passes."""
        if self.threshold is not None:
            return self.threshold
        return ENTAILER_PASSES if self.by == "entailer" else self.scale.passes


SHIPPED = ("truthfulness", "informativeness", "verdict", "answer", "code", "categories")
"""The names of the rubrics that come with this package."""
SHOWABLE = ("question", "gold", "answer", "documents")
KEYS = tuple("name version title task shows shows_if_there label scale passes levels".split())
LEVEL_KEYS = ("score", "word", "value", "name", "means", "also")
LARGEST_FILE = 100_000
"""Bytes of a rubric's file."""
_NAME = re.compile(r"[A-Za-z][\w-]{0,39}")


class RubricError(UsageError):
    """A rubric's file has faults; the message names the file and all of them."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level: the ``label`` that the judge replies, and the ``value`` that it counts as.

    A numeric level's label is its number. ``name`` and ``also`` are words that mean the same.
    """

    label: str
    value: float
    means: str
    name: str = ""
    also: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """All words for the level; a numeric label is not one."""
        own = () if self.label.lstrip("-").isdigit() else (self.label,)
        return tuple(word for word in (*own, self.name, *self.also) if word)


@dataclass(frozen=True)
class Rubric:
    """What a judge is asked, on an ordinal scale of levels or among nominal categories.

    levels: in the order of the file, 2 or more. shows: what the judge sees,
    and ``shows_if_there`` what it sees where the sample has it. label: the word before
    the score in the reply. passes: the value from which an answer passes; of categories those
    of value 1 do.
    """

    name: str
    version: str
    title: str
    task: str
    levels: tuple[Level, ...]
    shows: tuple[str, ...] = ("question", "gold", "answer")
    shows_if_there: tuple[str, ...] = ()
    label: str = "Score"
    ordinal: bool = True
    passes: float = 1.0

    @cached_property
    def values(self) -> Mapping[str, float]:
        """The value of each label."""
        return {level.label: level.value for level in self.levels}

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest value of a level."""
        return min(self.values.values()), max(self.values.values())

    @property
    def numeric(self) -> bool:
        """Whether the judge replies with numbers."""
        return all(label.lstrip("-").isdigit() for label in self.values)

    @property
    def upwards(self) -> list[str]:
        """The labels, those of the least value first."""
        return sorted(self.values, key=self.values.__getitem__)

    @property
    def choices(self) -> str:
        """The labels as a prompt lists them."""
        return "one of " + ", ".join(self.upwards)

    def label_of(self, text: str) -> str | None:
        """Return the label that a number or a word stands for; ``None`` where none does."""
        for level in self.levels:
            if text.strip().lower() in (level.label.lower(), *map(str.lower, level.words)):
                return level.label
        with suppress(ValueError):
            value = float(text)
            return next((k for k, v in self.values.items() if self.ordinal and v == value), None)
        return None


def read_rubric(name: str | os.PathLike[str]) -> Rubric:
    """Read a shipped rubric by its name, or a file, which is told by its suffix or a slash; raises
    RubricError for an unknown name or a file with faults, and OSError.
    """
    text = os.fspath(name)
    if text in SHIPPED:
        shipped = files(__package__).joinpath("rubrics", f"{text}.yaml")
        return _read(shipped.read_bytes(), f"{text}.yaml")
    if os.sep in text or Path(text).suffix.lower() in (".yaml", ".yml"):
        with Path(text).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        return _read(content, text)
    raise RubricError(f"{did_you_mean('rubric', text, SHIPPED)} (a file's name ends in .yaml)")


def _read(content: bytes, where: str) -> Rubric:
    import yaml

    if len(content) > LARGEST_FILE:
        raise RubricError(f"{where}: larger than {LARGEST_FILE:,} bytes, which no rubric is")
    try:
        text = content.decode()
        events = yaml.parse(text, yaml.SafeLoader)
        refers = any(isinstance(event, yaml.AliasEvent) for event in events)
        raw = None if refers else yaml.safe_load(text)
    except UnicodeDecodeError as error:
        raise RubricError(f"{where}: not UTF-8 ({error.reason})") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RubricError(f"{where}: not YAML ({' '.join(str(error).split())[:200]})") from None
    if refers:
        raise RubricError(f"{where}: refers to another place of the file (*name); write it out")
    if not isinstance(raw, dict):
        raise RubricError(f"{where}: expected keys and values: {', '.join(KEYS)}")
    try:
        return _Checking(raw, where, hashlib.blake2b(content, digest_size=4).hexdigest()).rubric()
    except RubricError:
        raise
    except ValueError:  # Python writes out no whole number of more than 4300 digits
        raise RubricError(f"{where}: a number in it is too large") from None


class _Checking:
    """Walks a file's content, gathers all faults, and builds the rubric when there are none."""

    def __init__(self, raw: Mapping[Any, Any], where: str, digest: str) -> None:
        self.raw, self.where, self.digest = raw, where, digest
        self.faults: list[str] = []

    def expect(self, right: object, fault: str) -> None:
        if not right:
            self.faults.append(fault)

    def known(self, keys: Iterable[Any], names: Sequence[str], where: str = "") -> None:
        self.faults += [where + did_you_mean("key", str(k), names) for k in keys if k not in names]

    def rubric(self) -> Rubric:
        self.known(self.raw, KEYS)
        name = self.text("name")
        right = not name or _NAME.fullmatch(name)
        self.expect(right, f"name: expected letters, digits, _ and -, got {name[:50]!r}")
        scale = self.text("scale", "ordinal")
        known = scale in ("ordinal", "nominal")
        self.expect(known, f"scale: expected ordinal or nominal, got {scale!r}")
        ordinal = scale == "ordinal"
        levels = self.levels()
        made: dict[str, Any] = {
            "name": name,
            "version": self.text("version", self.digest),
            "title": self.text("title", name),
            "task": self.text("task"),
            "label": self.text("label", "Score"),
            "shows": self.shows("shows", ["question", "gold", "answer"]),
            "shows_if_there": self.shows("shows_if_there", []),
            "levels": tuple(levels),
            "ordinal": ordinal,
        }
        differ = not ordinal or len({level.value for level in levels}) == len(levels)
        self.expect(differ, "levels: two have the same value; the levels of a scale differ")
        passes = 1.0 if not ordinal else self.passes(levels)
        if self.faults:
            raise RubricError(f"{self.where}: " + "; ".join(self.faults))
        return Rubric(**made, passes=passes)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.raw.get(key, default)
        if isinstance(value, int | float) and not isinstance(value, bool) and key == "version":
            value = str(value)
        text = value.strip() if isinstance(value, str) else ""
        self.expect(text, f"{key}: expected text{_got(value)}")
        return text

    def shows(self, key: str, default: list[str]) -> tuple[str, ...]:
        value = self.raw.get(key, default)
        listed = value if isinstance(value, list) else [value]
        for one in listed:
            message = f"{key}: expected some of {', '.join(SHOWABLE)}{_got(one)}"
            self.expect(one in SHOWABLE, message)
        self.expect(key != "shows" or "answer" in listed, "shows: the answer has to be shown")
        return tuple(map(str, listed))

    def levels(self) -> list[Level]:
        value = self.raw.get("levels")
        if not isinstance(value, list) or not 2 <= len(value) <= 20:
            self.faults.append("levels: expected a list of 2 to 20 levels")
            return []
        result = [self.level(one, f"levels[{place}]") for place, one in enumerate(value)]
        levels = [level for level in result if level is not None]
        owner: dict[str, str] = {}
        for level in levels:
            twice = sum(other.label == level.label for other in levels) > 1
            for word in {word.lower() for word in (level.label, *level.words)}:
                own = owner.setdefault(word, level.label) == level.label
                once = own and not (word == level.label.lower() and twice)
                self.expect(once, f"levels: two levels are called {word!r}")
        kinds = {level.label.lstrip("-").isdigit() for level in levels}
        self.expect(len(kinds) < 2, "levels: give all a score, or all a word")
        return levels

    def level(self, raw: Any, where: str) -> Level | None:
        if not isinstance(raw, dict):
            self.faults.append(f"{where}: expected score or word, and means{_got(raw)}")
            return None
        before, expect = len(self.faults), self.expect
        self.known(raw, LEVEL_KEYS, f"{where}: ")
        score, word, value = raw.get("score"), raw.get("word"), raw.get("value", raw.get("score"))
        means, name, also = raw.get("means"), raw.get("name", ""), raw.get("also", [])
        expect((score is None) != (word is None), f"{where}: expected either a score or a word")
        whole = score is None or (isinstance(score, int) and not isinstance(score, bool))
        expect(whole, f"{where}.score: expected a whole number{_got(score)}")
        worded = isinstance(word, str) and word.strip() and not word.isdigit()
        message = f"{where}.word: expected a word, in quotes if yes or no{_got(word)}"
        expect(word is None or worded, message)
        expect(score is None or "value" not in raw, f"{where}: a score is its own value")
        number = isinstance(value, int | float) and not isinstance(value, bool) and _finite(value)
        expect(number, f"{where}.value: expected a number{_got(value)}")
        meant = isinstance(means, str) and means.strip()
        expect(meant, f"{where}.means: expected text{_got(means)}")
        expect(isinstance(name, str), f"{where}.name: expected text{_got(name)}")
        listed = isinstance(also, list) and all(isinstance(one, str) for one in also)
        expect(listed, f"{where}.also: expected a list of words, in quotes if yes or no")
        if len(self.faults) > before:
            return None
        label = str(score) if word is None else str(word).strip()
        return Level(label, float(value or 0), str(means).strip(), name.strip(), tuple(also))

    def passes(self, levels: list[Level]) -> float:
        given = self.raw.get("passes")
        if given is None:
            return max((level.value for level in levels), default=0.0)
        values = {level.label.lower(): level.value for level in reversed(levels)}
        message = f"passes: expected the score or word of a level{_got(given)}"
        self.expect(str(given).lower() in values, message)
        return values.get(str(given).lower(), 0.0)


def _finite(value: float) -> bool:
    with suppress(OverflowError):  # of a whole number that is too large for a float
        return math.isfinite(value)
    return False


def _got(value: Any) -> str:
    if value is None:
        return " (it is missing)"
    text = value if isinstance(value, str) else reprlib.repr(value)
    return f", got {text[:50]!r}"
