"""The file of a label plan: which answers to rate, in which order, and their probabilities.

The file holds JSON Lines and only grows:

1. The first line describes the answers that the plan is made for.
2. A ``batch`` line lists the units that had labels from elsewhere at that time.
3. Each ``draw`` line after it is a unit, with its probability among the units that were left.

A plan for ``calibrate`` has the purpose and its settings in the first line, and the part of the
scores in each draw (:mod:`trustassay.people.label.calibration_plan`).

Estimates from the labels are unbiased because these lines are written before the labels.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trustassay.core.files import Appender, cut_unfinished, make_private_folder
from trustassay.input.journal import read_complete_lines
from trustassay.input.records import InputError

KIND, VERSION = "label plan", 1
AnswerKey = tuple[str, str]
"""The id of a sample, and the model that it names or an empty text."""


@dataclass(frozen=True, slots=True)
class PlannedDraw:
    """A unit that was drawn for rating."""

    answers: Sequence[AnswerKey]
    """The answers of the unit that people are asked to rate."""
    probability: float
    """Its probability when it was drawn, above 0 and up to 1."""
    part: str = ""
    """In a plan for ``calibrate``, the part of the scores: ``upper`` or ``lower``."""
    look: int = 0
    """In a plan for ``calibrate``, the number of the look that it was drawn for."""


@dataclass(frozen=True, slots=True)
class PlanBatch:
    """Draws that were made together."""

    labelled_before: Sequence[AnswerKey]
    """One answer of each unit that had labels before the batch."""
    draws: Sequence[PlannedDraw]


@dataclass(frozen=True)
class LabelPlan:
    """The content of a plan's file."""

    path: Path
    start: Mapping[str, Any]
    """The first line of the file."""
    batches: Sequence[PlanBatch]

    @property
    def draws(self) -> list[PlannedDraw]:
        """All draws, in order."""
        return [draw for batch in self.batches for draw in batch.draws]

    @property
    def name(self) -> str:
        """A name that no other plan has: the digest of its first line."""
        # Sorted keys: the name must not depend on the order in which they were written.
        line = json.dumps(self.start, sort_keys=True)
        return hashlib.blake2b(line.encode(), digest_size=8).hexdigest()

    @property
    def purpose(self) -> str:
        """``calibrate``, or empty for estimates."""
        return str(self.start.get("purpose") or "")

    @property
    def equal(self) -> bool:
        """Whether all units were equally likely, so that labels need no weights."""
        return bool(self.start["chances"] == "equal")


def read_plan(path: Path) -> LabelPlan:
    """Read a plan, without a last line that lacks its end: nobody was shown that draw.

    Raises:
        InputError: the file is no plan, has another version, or a line is damaged; the message
            names file, line and field.
        OSError: it cannot be read.
    """
    start: dict[str, Any] = {}
    batches: list[tuple[list[AnswerKey], list[PlannedDraw]]] = []
    keys_drawn: set[AnswerKey] = set()
    for where, content, _ in read_complete_lines(path):
        action = content.get("action")
        if not start:
            # The first line identifies the file, before any other line is read as part of a plan.
            _check_start(where, content)
            start = content
        elif action == "batch":
            batches.append((_parse_keys(where, "known", content), []))
        elif action == "draw" and batches:
            batches[-1][1].append(_parse_draw(where, content, keys_drawn))
            # A unit may be drawn once only.
            keys_drawn.update(batches[-1][1][-1].answers)
        else:
            raise InputError(
                f"{where}: action: expected batch, or draw after a batch, got {action!r}"
            )
    if not start:
        raise InputError(f"{path}: is empty; expected a plan that `trustassay label` wrote")
    return LabelPlan(path, start, [PlanBatch(known_keys, draws) for known_keys, draws in batches])


def _check_start(where: str, content: Mapping[str, Any]) -> None:
    if content.get("kind") != KIND:
        raise InputError(f"{where}: not a plan that `trustassay label` wrote; name another file")
    if content.get("version") != VERSION:
        raise InputError(
            f"{where}: version: expected {VERSION}, got {content.get('version')!r:.40}; it was "
            "written by another release of trustassay"
        )
    # The fields that later calls compare with the runs.
    kinds = {"input": str, "unit": str, "chances": str, "scores": list, "models": list, "seed": int}
    words = {str: "a text", list: "a list", int: "a whole number"}
    for name, kind in kinds.items():
        if not isinstance(value := content.get(name), kind):
            raise InputError(f"{where}: {name}: expected {words[kind]}, got {value!r:.40}")


def _parse_draw(
    where: str, content: Mapping[str, Any], keys_drawn: Collection[AnswerKey]
) -> PlannedDraw:
    q = content.get("probability")
    # bool is a subclass of int, and true is no probability.
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 < q <= 1:
        raise InputError(f"{where}: probability: expected above 0 and up to 1, got {q!r:.40}")
    answers = _parse_keys(where, "answers", content)
    # A draw without answers would have no unit.
    if not answers:
        raise InputError(f"{where}: answers: expected one or more, got none")
    if repeated_keys := [key for key in answers if key in keys_drawn]:
        raise InputError(f"{where}: answers: {repeated_keys[0][0][:40]!r} was drawn before")
    part, look = content.get("part", ""), content.get("look", 0)
    if part not in ("", "upper", "lower") or type(look) is not int:
        raise InputError(f"{where}: expected a part and a look, got {part!r:.40} and {look!r:.40}")
    return PlannedDraw(answers, float(q), part, look)


def _parse_keys(where: str, name: str, content: Mapping[str, Any]) -> list[AnswerKey]:
    entries = content.get(name)
    if not isinstance(entries, list):
        raise InputError(f"{where}: {name}: expected a list, got {entries!r:.40}")
    result = []
    for entry in entries:
        sample = entry.get("id") if isinstance(entry, dict) else None
        model = entry.get("model", "") if isinstance(entry, dict) else None
        if not (isinstance(sample, str) and isinstance(model, str)):
            raise InputError(f"{where}: {name}: expected objects with an id, got {entry!r:.60}")
        result.append((sample, model))
    return result


def append_lines(
    path: Path, start: Mapping[str, Any] | None, batch: PlanBatch, number: int
) -> None:
    """Append a batch to a plan.

    Args:
        path: the plan's file.
        start: the first line of a new plan; ``None`` for an existing one.
        batch: the draws.
        number: the number of the batch, from 1 on.

    Raises:
        OSError: the file cannot be written; a line that a full disk cut short is ignored on
            reading.
    """
    make_private_folder(path.parent)
    # A killed process may have left half a line, which the next line must not join.
    cut_unfinished(path)
    lines: list[Mapping[str, Any]] = []
    if start is not None:
        lines.append({"action": "start", "kind": KIND, "version": VERSION, **start})
    lines.append({"action": "batch", "batch": number, "known": _encode_keys(batch.labelled_before)})
    lines += [
        {
            "action": "draw",
            "probability": draw.probability,
            "answers": _encode_keys(draw.answers),
            **({"part": draw.part, "look": draw.look} if draw.part else {}),
        }
        for draw in batch.draws
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    with closing(Appender(path)) as file:
        # One write for the whole batch. Ids may hold lone surrogates from damaged input.
        file.append(text.encode("utf-8", "surrogatepass"))


def _encode_keys(keys: Sequence[AnswerKey]) -> list[dict[str, str]]:
    return [{"id": sample, "model": model} if model else {"id": sample} for sample, model in keys]
