"""The options of ``judge``, and rubrics: the task, the levels, and the texts that a judge sees."""

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

from trustassay.core.decisions import YES_NO
from trustassay.core.metric import Metric
from trustassay.core.prompts import Prompt
from trustassay.errors import UsageError, check_choices, check_least, did_you_mean

Aggregate = Literal["mean", "median", "majority", "expected"]
By = Literal["model", "entailer"]
Order = Literal["gold-first", "answer-first", "both"]

ENTAILER_PASSES = 0.5
"""The score from which an answer passes an entailer: entailment outweighs contradiction."""
PROMPT_VARIABLES = "rubric texts choices fence sample"
"""The names that a template of the user may use."""


@dataclass(frozen=True)
class JudgeOptions(Metric):
    """Options of :class:`~trustassay.metrics.judge.metric.Judge`, checked.

    Args:
        rubric: ``truthfulness``, ``informativeness``, ``verdict``, ``answer``, ``code``,
            ``categories``, or a YAML file.
        by: ``model`` asks the run's judges; ``entailer`` asks the run's entailer, with no rubric.
        repeats: how often each judge is asked in each order.
        aggregate: how votes become a score: ``mean``, ``median``, ``majority`` (if tied, the
            lowest level), or ``expected``, the mean over the levels by their log-probabilities.
        threshold: the value from which a vote passes; default: that of the rubric.
        early: stop when no further vote can change the verdict. Means and deviations are then
            based on fewer votes.
        order: what the judge reads first; ``both`` asks twice and measures the difference.
        logprobs: ask for the log-probabilities of the levels.
        constrained: constrain the reply to a JSON schema, if the endpoint can do so.
        prompt: file with a template to use instead of the one that ships, with ``rubric``,
            ``texts`` (pairs of a heading and a text), ``choices``, ``fence`` and ``sample``.
        temperature, max_tokens: settings of every call; a temperature of ``None`` leaves it to the
            judge.
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
        # Build these now: an unknown name or a faulty file must fail before a run starts.
        scale = self.scale
        _ = self.template
        # Options that an entailer would ignore are refused instead of silently dropped.
        options = "rubric repeats aggregate early order logprobs prompt".split()
        for option in self.list_changed(options) if self.by == "entailer" else ():
            raise UsageError(
                f"{option}: does not apply to by=entailer, which judges truthfulness once; "
                "leave it out"
            )
        low, high = self.score_range
        if self.threshold is not None and not low <= self.threshold <= high:
            raise UsageError(f"threshold: expected {low:g} to {high:g}, got {self.threshold:g}")
        if self.threshold is not None and not scale.ordinal:
            raise UsageError(
                f"threshold: the levels of the rubric {scale.name} have no order; leave it out"
            )
        if self.aggregate == "expected" and not (self.logprobs and scale.ordinal):
            raise UsageError("aggregate: expected needs logprobs=yes and an ordinal rubric")
        # Without a gold answer in the prompt there is no order to change.
        if self.order != "gold-first" and "gold" not in (*scale.shows, *scale.shows_if_there):
            raise UsageError(f"order: the rubric {scale.name} shows no gold answer; leave it out")

    def list_changed(self, options: Iterable[str]) -> list[str]:
        """Return those of some options that do not have their default."""
        plain = JudgeOptions.__dataclass_fields__
        return [option for option in options if getattr(self, option) != plain[option].default]

    @property
    def score_range(self) -> tuple[float, float]:
        """The range of the rubric's values; 0 to 1 for an entailer."""
        return (0.0, 1.0) if self.by == "entailer" else self.scale.range

    @cached_property
    def scale(self) -> "Rubric":
        """The rubric itself."""
        return read_rubric(self.rubric)

    @cached_property
    def template(self) -> Prompt | None:
        """The user's own prompt."""
        return None if self.prompt is None else Prompt.read(self.prompt, PROMPT_VARIABLES)

    @property
    def passes_from(self) -> float:
        """The value from which a vote passes."""
        if self.threshold is not None:
            return self.threshold
        return ENTAILER_PASSES if self.by == "entailer" else self.scale.passes


SHIPPED = ("truthfulness", "informativeness", "verdict", "answer", "code", "categories")
"""The names of the rubrics that come with this package."""
SHOWABLE = ("question", "gold", "answer", "documents")
# Keys of a rubric's file, and of each of its levels.
RUBRIC_KEYS = tuple(
    "name version title task shows shows_if_there label scale passes levels".split()
)
LEVEL_KEYS = ("score", "word", "value", "name", "means", "also")
MAX_RUBRIC_BYTES = 100_000
"""Largest size of a rubric's file."""
_RUBRIC_NAME = re.compile(r"[A-Za-z][\w-]{0,39}")


class RubricError(UsageError):
    """A rubric's file has faults; the message names the file and every fault."""


@dataclass(frozen=True, slots=True)
class RubricLevel:
    """One level of a rubric."""

    label: str
    """What the judge replies; for a numeric level its number."""
    value: float
    """The number that the level counts as."""
    means: str
    """The description that the judge reads."""
    name: str = ""
    """A word for a numeric level."""
    also: tuple[str, ...] = ()
    """Other words that mean the same."""

    @property
    def words(self) -> tuple[str, ...]:
        """All words for the level; a numeric label is no word."""
        label_words = () if self.label.lstrip("-").isdigit() else (self.label,)
        return tuple(word for word in (*label_words, self.name, *self.also) if word)


@dataclass(frozen=True)
class Rubric:
    """A judge's task, on an ordinal scale of levels or among nominal categories."""

    name: str
    """The name in reports and cache keys."""
    version: str
    """The version; by default a hash of the file."""
    title: str
    """The heading of the metric."""
    task: str
    """The instruction that the judge reads."""
    levels: tuple[RubricLevel, ...]
    """2 to 20 levels, in the order of the file."""
    shows: tuple[str, ...] = ("question", "gold", "answer")
    """The texts that the judge sees, and a sample must have."""
    shows_if_there: tuple[str, ...] = ()
    """The texts that the judge sees where the sample has them."""
    label: str = "Score"
    """The word before the score in the reply."""
    ordinal: bool = True
    """Whether the levels have an order; else they are categories."""
    passes: float = 1.0
    """The value from which an answer passes; categories pass with a value of 1."""

    @cached_property
    def values(self) -> Mapping[str, float]:
        """The value of each label, in the order of the file."""
        return {level.label: level.value for level in self.levels}

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest value of a level."""
        return min(self.values.values()), max(self.values.values())

    @property
    def is_yes_no(self) -> bool:
        """Whether it is a criterion that is met or not: the levels are yes and no."""
        return {label.lower() for label in self.values} == set(YES_NO)

    @property
    def numeric(self) -> bool:
        """Whether the judge replies with numbers."""
        return all(label.lstrip("-").isdigit() for label in self.values)

    @property
    def upwards(self) -> list[str]:
        """The labels, from the least value to the largest."""
        return sorted(self.values, key=self.values.__getitem__)

    @property
    def choices(self) -> str:
        """The labels as a prompt lists them."""
        return "one of " + ", ".join(self.upwards)

    def label_of(self, text: str) -> str | None:
        """Return the label that a number or a word stands for; ``None`` if there is none."""
        for level in self.levels:
            if text.strip().lower() in (level.label.lower(), *map(str.lower, level.words)):
                return level.label
        # "3.0" in a CSV is the level 3; numbers mean nothing among categories.
        with suppress(ValueError):
            value = float(text)
            return next((k for k, v in self.values.items() if self.ordinal and v == value), None)
        return None


def read_rubric(name: str | os.PathLike[str]) -> Rubric:
    """Read a shipped rubric by its name, or a file.

    A path is recognised by its suffix or a slash. Raises RubricError for an unknown name or a file
    with faults, and OSError.
    """
    text = os.fspath(name)
    if text in SHIPPED:
        shipped = files(__package__).joinpath("rubrics", f"{text}.yaml")
        return _parse_rubric(shipped.read_bytes(), f"{text}.yaml")
    if os.sep in text or Path(text).suffix.lower() in (".yaml", ".yml"):
        with Path(text).open("rb") as file:
            # One byte more than allowed tells a file that is too large, without reading all of it.
            content = file.read(MAX_RUBRIC_BYTES + 1)
        return _parse_rubric(content, text)
    raise RubricError(f"{did_you_mean('rubric', text, SHIPPED)} (a file's name ends in .yaml)")


def _parse_rubric(content: bytes, where: str) -> Rubric:
    import yaml

    if len(content) > MAX_RUBRIC_BYTES:
        raise RubricError(f"{where}: a rubric has at most {MAX_RUBRIC_BYTES:,} bytes")
    try:
        text = content.decode()
        # Aliases are refused before anything is built: nested ones grow exponentially in memory.
        events = yaml.parse(text, yaml.SafeLoader)
        refers = any(isinstance(event, yaml.AliasEvent) for event in events)
        raw = None if refers else yaml.safe_load(text)
    except UnicodeDecodeError as error:
        raise RubricError(f"{where}: not UTF-8 ({error.reason})") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RubricError(f"{where}: not YAML ({' '.join(str(error).split())[:200]})") from None
    if refers:
        raise RubricError(f"{where}: YAML aliases (*name) are not allowed; write the value out")
    if not isinstance(raw, dict):
        raise RubricError(f"{where}: expected keys and values: {', '.join(RUBRIC_KEYS)}")
    try:
        return _RubricParser(
            raw, where, hashlib.blake2b(content, digest_size=4).hexdigest()
        ).build_rubric()
    except RubricError:
        raise
    except ValueError:  # Python writes out no whole number of more than 4300 digits
        raise RubricError(f"{where}: a number in it is too large") from None


class _RubricParser:
    """Checks a file's content, collects all faults, and builds the rubric if there are none."""

    def __init__(self, raw: Mapping[Any, Any], where: str, digest: str) -> None:
        self.raw, self.where, self.digest = raw, where, digest
        self.faults: list[str] = []

    def expect(self, condition: object, fault: str) -> None:
        if not condition:
            self.faults.append(fault)

    def check_keys(self, keys: Iterable[Any], names: Sequence[str], where: str = "") -> None:
        self.faults += [where + did_you_mean("key", str(k), names) for k in keys if k not in names]

    def build_rubric(self) -> Rubric:
        self.check_keys(self.raw, RUBRIC_KEYS)
        name = self.read_text("name")
        is_valid_name = not name or _RUBRIC_NAME.fullmatch(name)
        self.expect(is_valid_name, f"name: expected letters, digits, _ and -, got {name[:50]!r}")
        scale = self.read_text("scale", "ordinal")
        is_known_scale = scale in ("ordinal", "nominal")
        self.expect(is_known_scale, f"scale: expected ordinal or nominal, got {scale!r}")
        ordinal = scale == "ordinal"
        levels = self.read_levels()
        fields: dict[str, Any] = {
            "name": name,
            "version": self.read_text("version", self.digest),
            "title": self.read_text("title", name),
            "task": self.read_text("task"),
            "label": self.read_text("label", "Score"),
            "shows": self.read_shows("shows", ["question", "gold", "answer"]),
            "shows_if_there": self.read_shows("shows_if_there", []),
            "levels": tuple(levels),
            "ordinal": ordinal,
        }
        # Equal values leave the order of two levels open; categories may have equal values.
        values_differ = not ordinal or len({level.value for level in levels}) == len(levels)
        self.expect(
            values_differ,
            "levels: two levels have the same value; on an ordinal scale they must differ",
        )
        passes = 1.0 if not ordinal else self.read_passes(levels)
        if self.faults:
            raise RubricError(f"{self.where}: " + "; ".join(self.faults))
        return Rubric(**fields, passes=passes)

    def read_text(self, key: str, default: str | None = None) -> str:
        value = self.raw.get(key, default)
        # YAML reads 1.0 as a number; it reads True as a bool, which is an int in Python.
        if isinstance(value, int | float) and not isinstance(value, bool) and key == "version":
            value = str(value)
        text = value.strip() if isinstance(value, str) else ""
        self.expect(text, f"{key}: expected text{_describe(value)}")
        return text

    def read_shows(self, key: str, default: list[str]) -> tuple[str, ...]:
        value = self.raw.get(key, default)
        listed = value if isinstance(value, list) else [value]
        for name in listed:
            message = f"{key}: expected some of {', '.join(SHOWABLE)}{_describe(name)}"
            self.expect(name in SHOWABLE, message)
        self.expect(key != "shows" or "answer" in listed, "shows: expected answer among them")
        return tuple(map(str, listed))

    def read_levels(self) -> list[RubricLevel]:
        value = self.raw.get("levels")
        if not isinstance(value, list) or not 2 <= len(value) <= 20:
            self.faults.append("levels: expected a list of 2 to 20 levels")
            return []
        result = [
            self.read_level(raw_level, f"levels[{place}]") for place, raw_level in enumerate(value)
        ]
        levels = [level for level in result if level is not None]
        # The level that a word belongs to. A word of two levels makes replies ambiguous; two
        # levels with one label are reported once, by that label.
        owner: dict[str, str] = {}
        for level in levels:
            is_repeated = sum(other.label == level.label for other in levels) > 1
            for word in {word.lower() for word in (level.label, *level.words)}:
                is_owner = owner.setdefault(word, level.label) == level.label
                is_unique = is_owner and not (word == level.label.lower() and is_repeated)
                self.expect(is_unique, f"levels: two levels are called {word!r}")
        # Mixed labels would make "2" and "two" different levels.
        kinds = {level.label.lstrip("-").isdigit() for level in levels}
        self.expect(len(kinds) < 2, "levels: expected a score for all, or a word for all")
        return levels

    def read_level(self, raw: Any, where: str) -> RubricLevel | None:
        if not isinstance(raw, dict):
            self.faults.append(f"{where}: expected score or word, and means{_describe(raw)}")
            return None
        before, expect = len(self.faults), self.expect
        self.check_keys(raw, LEVEL_KEYS, f"{where}: ")
        score, word, value = raw.get("score"), raw.get("word"), raw.get("value", raw.get("score"))
        means, name, also = raw.get("means"), raw.get("name", ""), raw.get("also", [])
        expect((score is None) != (word is None), f"{where}: expected either a score or a word")
        is_whole = score is None or (isinstance(score, int) and not isinstance(score, bool))
        expect(is_whole, f"{where}.score: expected a whole number{_describe(score)}")
        # YAML reads an unquoted yes or no as a bool.
        is_word = isinstance(word, str) and word.strip() and not word.isdigit()
        message = f"{where}.word: expected a word, in quotes if yes or no{_describe(word)}"
        expect(word is None or is_word, message)
        expect(
            score is None or "value" not in raw,
            f"{where}: has both score and value; leave value out",
        )
        is_number = (
            isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)
        )
        expect(is_number, f"{where}.value: expected a number{_describe(value)}")
        has_meaning = isinstance(means, str) and means.strip()
        expect(has_meaning, f"{where}.means: expected text{_describe(means)}")
        expect(isinstance(name, str), f"{where}.name: expected text{_describe(name)}")
        is_list_of_words = isinstance(also, list) and all(isinstance(item, str) for item in also)
        expect(is_list_of_words, f"{where}.also: expected a list of words, in quotes if yes or no")
        if len(self.faults) > before:
            return None
        label = str(score) if word is None else str(word).strip()
        return RubricLevel(label, float(value or 0), str(means).strip(), name.strip(), tuple(also))

    def read_passes(self, levels: list[RubricLevel]) -> float:
        passes = self.raw.get("passes")
        if passes is None:
            return max((level.value for level in levels), default=0.0)
        # Reversed, so that the first of equal labels wins.
        values = {level.label.lower(): level.value for level in reversed(levels)}
        message = f"passes: expected the score or word of a level{_describe(passes)}"
        self.expect(str(passes).lower() in values, message)
        return values.get(str(passes).lower(), 0.0)


def _is_finite(value: float) -> bool:
    with suppress(OverflowError):  # of a whole number that is too large for a float
        return math.isfinite(value)
    return False


def _describe(value: Any) -> str:
    if value is None:
        return " (missing)"
    text = value if isinstance(value, str) else reprlib.repr(value)
    return f", got {text[:50]!r}"
