"""An item of a paper: a command, run in a folder of its own, and the values it must give.

An item works if every value is right and stands where a user sees it: on the terminal, in the page,
or in a file that the command was told to write. It works in part if some value is wrong or stands
in the run's own JSON files alone, fails if none is right, and is not here if the program does not
know the command or an option of it.
"""

from __future__ import annotations

import html
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lab.benchmarks.paper_items.models import MODELS

Json = dict[str, Any]
Value = float | int | str | bool | None | Sequence[Any]
Place = Literal["terminal", "page", "file", "hidden"]
SECONDS_OF_COMMAND = 280
"""Seconds after which a command is ended."""
USAGE_ERROR = 2
"""Exit status of a command whose arguments were refused."""
UNKNOWN = re.compile(
    r"No such (command|option)|no option [`'\"]?\w+|has no option|unknown option|not an option"
    r"|is not one of|Missing option|unexpected extra argument|unknown chat model '\w+=",
    re.IGNORECASE,
)
"""What the program says of a command or an option that it does not know."""
TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.DOTALL)
ROOT = Path(__file__).parents[3]
OUTCOMES = ("works", "in part", "fails", "not here")


class ValuePair(NamedTuple):
    """A value as it must be and as the command gave it."""

    name: str
    expected: Value
    value: Value
    place: Place = "terminal"
    """Where it was read; ``hidden`` is a JSON file of the run."""
    tolerance: float = 1e-9
    """Largest difference of two numbers that are the same."""
    must_print: bool = False
    """Whether it must stand on the terminal."""

    @property
    def agrees(self) -> bool:
        return are_same(self.expected, self.value, self.tolerance)


def are_same(expected: Value, value: Value, tolerance: float) -> bool:
    """Compare numbers by a tolerance, sequences item by item, all else exactly."""
    if isinstance(expected, bool) or isinstance(value, bool) or expected is None or value is None:
        return expected is value
    if isinstance(expected, str) or isinstance(value, str):
        return expected == value
    if isinstance(expected, int | float) and isinstance(value, int | float):
        both_nan = math.isnan(expected) and math.isnan(value)
        return both_nan or abs(expected - value) <= tolerance
    if not isinstance(expected, Sequence) or not isinstance(value, Sequence):
        return False
    same_length = len(expected) == len(value)
    pairs = zip(expected, value, strict=False)
    return same_length and all(are_same(one, other, tolerance) for one, other in pairs)


class Bench:
    """The folder of an item and what its commands printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed: list[str] = []
        """Standard output of each command."""
        self.messages: list[str] = []
        """Standard error of each command."""
        self.statuses: list[int] = []
        self.server = ""
        """Address of the item's endpoint."""
        self.on_exit: list[Callable[[], None]] = []
        """Called when the item has ended."""

    # ---- before the commands ----

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def rows(self, name: str, rows: Iterable[Mapping[str, Any]]) -> Path:
        """Write a file of JSON Lines."""
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def copy(self, *paths: str) -> None:
        """Copy files of the repository."""
        for path in paths:
            self.write(Path(path).name, (ROOT / path).read_text(encoding="utf-8"))

    def environment(self) -> dict[str, str]:
        """Return the environment of the commands: no key, no cache of the user, no colours."""
        keys = ("API_KEY", "BASE_URL", "TRUSTASSAY_")
        clean = {name: text for name, text in os.environ.items() if not name.endswith(keys[:2])}
        clean = {name: text for name, text in clean.items() if not name.startswith(keys[2])}
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        return clean | {
            "TRUSTASSAY_CACHE": str(self.folder / "cache"),
            "PYTHONPATH": paths,
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "HF_HUB_OFFLINE": "1",
            "NLTK_DATA": str(self.folder / "nltk_data"),
        }

    def run(self, command: str) -> None:
        """Run a command line of ``trustassay`` to its end."""
        arguments = shlex.split(command.replace("SERVER", self.server))
        if arguments[0] != "trustassay":
            raise ValueError(f"{command}: expected a command of trustassay")
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_OF_COMMAND,
            check=False,
        )
        self.printed.append(done.stdout)
        self.messages.append(done.stderr)
        self.statuses.append(done.returncode)

    # ---- after them ----

    @property
    def terminal(self) -> str:
        """All that the commands printed."""
        pairs = zip(self.printed, self.messages, strict=True)
        return "\n".join(text for pair in pairs for text in pair)

    def json(self, number: int = -1) -> Any:
        """Return what a command printed with ``--json``."""
        return json.loads(self.printed[number])

    def row(self, label: str, number: int | None = None) -> list[float]:
        """Return the numbers of the first printed line that begins with a label; percent signs,
        degree signs and thousands' commas are dropped. LookupError if there is none."""
        text = self.terminal if number is None else self.printed[number] + self.messages[number]
        for line in text.splitlines():
            if re.match(rf"\s*{re.escape(label)}(?=\s|,|:|$)", line):
                return numbers_of(line[line.index(label) + len(label) :])
        raise LookupError(f"no printed line begins with {label!r}")

    def text_of_page(self, path: str) -> str:
        """Return the text of a page, blanks made one."""
        raw = (self.folder / path).read_text(encoding="utf-8")
        return " ".join(html.unescape(TAGS.sub(" ", raw)).split())

    def read(self, name: str) -> list[Json]:
        """Return the rows of a file of JSON Lines in the folder."""
        text = (self.folder / name).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def summary(self, run: str, metric: str) -> Json:
        """Return the figures of a metric in the run's own file."""
        text = (self.folder / run / "summary.json").read_text(encoding="utf-8")
        values: Json = json.loads(text)["metrics"][metric]["values"]
        return values

    def assessments(self, run: str) -> dict[str, Json]:
        """Return the assessments of a run by sample; the page documents this file."""
        return {row["id"]: row for row in self.read(f"{run}/assessments.jsonl")}

    def scores(self, run: str) -> list[float]:
        """Return the scores of a run in the order of its samples."""
        return [row["score"] for row in self.read(f"{run}/assessments.jsonl")]

    @cached_property
    def requests(self) -> list[Json]:
        """The requests that the scripted models received."""
        path = self.folder / "requests.jsonl"
        return self.read("requests.jsonl") if path.exists() else []

    def asked(self, model: str) -> list[Json]:
        """Return the requests that one scripted model received."""
        return [request for request in self.requests if request["model"] == model]

    def figure(
        self,
        name: str,
        expected: Value,
        run: str,
        metric: str,
        tolerance: float = 1e-9,
        must_print: bool = False,
    ) -> ValuePair:
        """Return a figure of a run with the place at which a user sees it, rounded."""
        value = self.summary(run, metric).get(name)
        place = self.place_of_figure(name, value, f"{run}/report.html")
        return ValuePair(name, expected, value, place, tolerance, must_print)

    def place_of_figure(self, name: str, value: Value, page: str) -> Place:
        """Return where a number stands within 300 characters after its name."""
        if not isinstance(value, int | float):
            return "hidden"
        forms = {f"{value:.{digits}f}" for digits in (1, 2, 3)} | {f"{value:g}"}
        forms |= {form.replace("-", "−") for form in forms}
        number = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
        # A name may stand several times on a page; any of the numbers behind it will do.
        pattern = re.compile(
            rf"\b{re.escape(name)}\b(?=.{{0,300}}?(?<![\d.])(?:{number})(?![\d.]))"
        )
        if pattern.search(" ".join(self.terminal.split())):
            return "terminal"
        exists = (self.folder / page).exists()
        return "page" if exists and pattern.search(self.text_of_page(page)) else "hidden"

    def on_page(self, page: str, text: str) -> Place:
        """Return ``page`` if a text stands in a page, else ``hidden``."""
        return "page" if text in self.text_of_page(page) else "hidden"

    def where(self, text: str, page: str | None = None) -> Place:
        """Return where a user sees a text: on the terminal, in a page, or nowhere."""
        if text in " ".join(self.terminal.split()):
            return "terminal"
        return "hidden" if page is None else self.on_page(page, text)


def numbers_of(text: str) -> list[float]:
    """Return the numbers of a text; a minus may be U+2212, thousands may have commas."""
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text.replace("−", "-"))
    return [float(one) for one in re.findall(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?!\w)", plain)]


Prepare = Callable[[Bench], None]
Check = Callable[[Bench], Iterable[ValuePair]]


def prepare_nothing(bench: Bench) -> None:
    """Leave the folder as it is."""


@dataclass(frozen=True)
class PaperItem:
    """Something that a paper's author would expect a tool to repeat."""

    id: str
    """The paper's short name and a number."""
    place: str
    """Where it stands in the paper."""
    what: str
    """What is repeated, in a sentence."""
    commands: tuple[str, ...]
    """Command lines, run one after the other in a folder of their own."""
    check: Check
    """The values that the commands must give, with those that they gave."""
    prepare: Prepare = prepare_nothing
    """Writes the input."""
    slow: bool = False
    """Whether it needs torch; run with ``--slow``."""

    @property
    def paper(self) -> str:
        return self.id.rpartition("-")[0]


class ItemResult(NamedTuple):
    """What came of an item."""

    item: PaperItem
    outcome: str
    """One of ``OUTCOMES``."""
    pairs: Sequence[ValuePair]
    reason: str
    """Why it does not work; empty if it does."""

    def to_json(self) -> Json:
        """Return what ``paper-items.json`` holds of it."""
        return {
            "id": self.item.id,
            "paper": self.item.paper,
            "place": self.item.place,
            "what": self.item.what,
            "command": " && ".join(self.item.commands),
            "expected": {pair.name: rounded(pair.expected) for pair in self.pairs},
            "value": {pair.name: rounded(pair.value) for pair in self.pairs},
            "outcome": self.outcome,
            "reason": self.reason,
        }


def rounded(value: Value) -> Any:
    """Return a value in JSON; numbers to six digits, NaN as a word."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else round(value, 6)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [rounded(one) for one in value]
    return value


def run_item(item: PaperItem) -> ItemResult:
    """Run an item in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        bench.write("scripted.py", MODELS)
        item.prepare(bench)
        try:
            for command in item.commands:
                bench.run(command)
            if is_unknown_to_program(bench):
                return judge_stopped(item, bench, LookupError("unknown command or option"))
            pairs = list(item.check(bench))
        except subprocess.TimeoutExpired:
            reason = f"did not end within {SECONDS_OF_COMMAND} s"
            return ItemResult(item, "fails", (), reason)
        except Exception as error:
            return judge_stopped(item, bench, error)
        finally:
            for end in bench.on_exit:
                end()
        return judge_pairs(item, pairs)


def is_unknown_to_program(bench: Bench) -> bool:
    """Whether a command was refused since the program does not know it, or an option of it."""
    texts = zip(bench.statuses, bench.messages, strict=True)
    return any(status == USAGE_ERROR and bool(UNKNOWN.search(text)) for status, text in texts)


def judge_stopped(item: PaperItem, bench: Bench, error: Exception) -> ItemResult:
    """Say why no value could be read: mostly a command ended with a message."""
    failed = [place for place, status in enumerate(bench.statuses) if status]
    if failed:
        text = bench.messages[failed[0]].strip() or bench.printed[failed[0]].strip()
        message = " ".join(text.split())[-260:]
        outcome = "not here" if is_unknown_to_program(bench) else "fails"
        return ItemResult(item, outcome, (), f"status {bench.statuses[failed[0]]}: {message}")
    line = traceback.extract_tb(error.__traceback__)[-1].lineno
    return ItemResult(item, "fails", (), f"{type(error).__name__}: {error} (line {line})")


def judge_pairs(item: PaperItem, pairs: Sequence[ValuePair]) -> ItemResult:
    """Give the outcome of an item whose values could be read."""
    wrong = [pair for pair in pairs if not pair.agrees]
    right = [pair for pair in pairs if pair.agrees]
    hidden = [pair for pair in right if pair.place == "hidden"]
    not_printed = [pair for pair in right if pair.must_print and pair.place == "page"]
    if not pairs:
        return ItemResult(item, "fails", pairs, "the check compared no value")
    reasons = [
        f"{pair.name}: {rounded(pair.value)!r}, expected {rounded(pair.expected)!r}"
        for pair in wrong
    ]
    reasons += [f"{pair.name} stands in the run's JSON alone" for pair in hidden]
    reasons += [f"{pair.name} stands on the page, not on the terminal" for pair in not_printed]
    outcome = "in part" if reasons else "works"
    if len(wrong) == len(pairs):
        outcome = "fails"
    return ItemResult(item, outcome, pairs, "; ".join(reasons))
