"""The metric ``tool_use``: what an agent made of its calls, and of what it said before."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from trustassay.core.outcome import FAILED, Outcome
from trustassay.event_loop import all_of
from trustassay.judging.claims import Claim
from trustassay.judging.details import KnownDetails
from trustassay.judging.verdict import Finding
from trustassay.metric import (
    REFUSED_PART,
    Assessment,
    Context,
    Figure,
    Need,
    directions,
    read_figures,
)
from trustassay.metrics.faithfulness.options import FaithfulnessOptions
from trustassay.metrics.tool_use.arguments import (
    WORDS,
    Known,
    admits,
    says,
    unsupported,
    values_in,
)
from trustassay.sample import Document, Problem, Sample, missing
from trustassay.text.limits import TextWork
from trustassay.text.tables import as_prose
from trustassay.text.unicode import folded
from trustassay.text.words import plain_words
from trustassay.views import EvidenceRow, Judged, Mark, PassageNote, Rows, Tie, View

NO_STEPS = "no tool was called, and nothing was said before: there is nothing to judge it by"
FAULTS = {
    "failed_call": "failed call given as success",
    "ignored_result": "result ignored",
    "unsupported_value": "value that no result has",
    "contradicts_itself": "contradicts itself",
    "unsupported_argument": "unsupported argument",
}
"""Verdicts on answers with a fault, by their figures, the worst first."""
_ORDER = list(FAULTS.values())


@dataclass(frozen=True, slots=True)
class Step(EvidenceRow):
    """A step before an answer, as ``steps`` of a sample has it, and its number from 1."""

    user: str | None = None
    system: str | None = None
    assistant: str | None = None
    tool: str | None = None
    arguments: Any = None
    passages: Sequence[int] = ()
    error: str = ""
    number: int = 0

    @property
    def shown(self) -> str:
        """The call as one line."""
        given = json.dumps(self.arguments, ensure_ascii=False, default=str)
        return f"{self.tool or 'a tool'}({'' if self.arguments is None else given})"


@dataclass(frozen=True, slots=True)
class Fault(EvidenceRow, row_kind="fault", told_by=("verdict",)):
    """A fault. step: the number of the call. argument, value: what nothing supports. text: the
    sentence. passages: what the call returned; quote: the words that decide. turn: the earlier
    answer, from 1."""

    verdict: str
    why: str
    step: int | None = None
    argument: str | None = None
    value: str | None = None
    text: str | None = None
    passages: Sequence[int] = ()
    quote: str | None = None
    turn: int | None = None

    @property
    def mark(self) -> Mark:
        """The verdict, for the report."""
        return Mark("bad", "✕", self.verdict)


class Turn:
    """What is before an answer. said: earlier answers. calls, failed: those since the last
    question. results: the passages, those of failed calls blank. owners: by the number of a passage
    the call that returned it."""

    def __init__(self, sample: Sample) -> None:
        self.sample, given = sample, sample.metadata.get("steps")
        read = [Step.read(one) for one in given] if isinstance(given, list | tuple) else []
        self.steps = [replace(one, number=n) for n, one in enumerate(filter(None, read), 1)]
        asked = max((one.number for one in self.steps if one.user is not None), default=0)
        told = [one.assistant for one in self.steps[:asked] if one.assistant is not None]
        self.said = [Document(str(n), text) for n, text in enumerate(told, 1)]
        self.calls = [one for one in self.steps[asked:] if one.tool is not None]
        self.failed = [one for one in self.calls if one.error]
        self.documents = sample.documents or ()
        places = range(1, len(self.documents) + 1)
        of = {n: one for one in self.steps for n in one.passages if n in places}
        self.owners = {n: one for n, one in of.items() if not one.error}
        self.results = [
            replace(one, text="", excerpt=None) if n in of and n not in self.owners else one
            for n, one in enumerate(self.documents, 1)
        ]

    def values(self, *numbers: int) -> list[tuple[str, Any]]:
        """Return the values of the data in passages, each with the names that lead to it."""
        result: list[tuple[str, Any]] = []
        for number in numbers:
            with suppress(ValueError, RecursionError):
                result += values_in(json.loads(self.results[number - 1].text))
        return result

    def changes(self) -> Iterator[tuple[Step, str, str, str]]:
        """Yield what a call returned otherwise than the same call before: the call, the name of the
        value, and both values."""
        last: dict[str, int] = {}
        for number, call in self.owners.items():
            before = last.get(call.shown, number)
            pairs = zip(*map(self.values, (before, number)), strict=False)
            for (name, old), (same, new) in pairs if len(call.passages) == 1 else ():
                if name == same and old != new:
                    yield call, name, str(old), str(new)
            last[call.shown] = number


@dataclass(frozen=True)
class ToolUse(FaithfulnessOptions):
    """Does an answer of an agent go with its calls of tools, and with what it said before?

    Read are the ``steps`` since the last question. A failed call that no later one makes good is
    given as success where the answer admits nothing and says what no other result does. A result is
    ignored where it contradicts a sentence, or has another value than the same call had before.
    Numbers, dates and ids of a sentence need a result, of data a row that it is about; those of
    arguments, and names, anything before the call. An answer contradicts itself where an earlier
    one says otherwise, it takes nothing back, and no new result supports it. All else that no
    result says is for ``faithfulness``, whose options these are. The score is the share of
    arguments, failed calls and sentences without a fault, 0 to 1.
    """

    name: ClassVar[str] = "tool_use"
    title: ClassVar[str] = "What an agent made of its tools"
    part_directions = directions(
        lower=" ".join(FAULTS), neither="calls failed_calls arguments no_steps"
    )
    verdicts: ClassVar[Sequence[str]] = ("sound", *_ORDER)
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    figures: ClassVar[Mapping[str, Figure]] = read_figures(__package__)

    def needs(self) -> Sequence[Need]:
        """An entailer; for claims=model a judge."""
        return [Need("entail"), Need("chat", "judge")][: 1 + (self.claims == "model")]

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response."""
        return missing(sample, response="the text to assess")

    async def assess(self, context: Context) -> Assessment:
        """Look for faults; the evidence has each with the step that decides."""
        sample, response, work = context.sample, context.response(), TextWork.on(context.sample)
        turn = await work(Turn, sample)
        if not (turn.calls or turn.said):
            return self.assessed(sample, None, reason=NO_STEPS, parts={"no_steps": 1.0})
        judged, rows = await work(_arguments, turn)
        every = await self.claims_of(context, response)
        refused = self.refusal_in(response, every)
        claims = [] if refused else [one for one in every if one.hypothesis is not None]
        context.limits.count("statements", len(claims))
        looked = await work(self.verifier, context, turn.results)
        found = await all_of(map(looked.verdict, claims))
        if not (refused or admits(response, [one.tool or "" for one in turn.failed])):
            rows += _given_as_success(turn, found, response)
        rows += await work(lambda: list(_against_results(turn, claims, found)))
        fresh = {n for one in turn.calls for n in one.passages}
        back = WORDS["takes_back"].search
        for claim, one in zip([*claims], found, strict=True):
            new = one.row.verdict == "supported" and fresh.intersection(one.row.passages or ())
            if new or back(response if turn.calls else claim.text):
                claims.remove(claim)
        own = await work(self.verifier, context, turn.said)
        for row in (one.row for one in await all_of(map(own.verdict, claims))):
            if row.verdict == "contradicted" and row.passages:
                why = f"“{row.text}” goes against answer {row.passages[0]}, “{row.quote}”"
                told: dict[str, Any] = {"quote": row.quote, "turn": row.passages[0]}
                rows.append(Fault(FAULTS["contradicts_itself"], why, text=row.text, **told))
        assessment = self._assessed(turn, rows, judged, len(found))
        if not refused:
            return assessment
        return replace(assessment, parts={**assessment.parts, REFUSED_PART: 1.0})

    def _assessed(self, turn: Turn, rows: list[Fault], judged: int, sentences: int) -> Assessment:
        rows.sort(key=lambda one: _ORDER.index(one.verdict))
        may_be: dict[str, Any] = dict.fromkeys(FAULTS, turn.owners)
        may_be |= {"failed_call": turn.failed, "contradicts_itself": turn.said}
        may_be["unsupported_argument"] = judged
        kinds = {one.verdict for one in rows}
        parts = {key: float(FAULTS[key] in kinds) for key, given in may_be.items() if given}
        parts |= {"calls": float(len(turn.calls)), "failed_calls": float(len(turn.failed))}
        checks = max(1, judged + len(turn.failed) + sentences)
        bad = len({(one.argument and one.step, one.argument, one.text) for one in rows})
        return self.assessed(
            turn.sample,
            1 - min(bad / checks, 1.0),
            rows,
            verdict=rows[0].verdict if rows else "sound",
            reason=rows[0].why if rows else "no fault",
            parts={**parts, "arguments": float(judged)},
        )

    passed_word: ClassVar[str] = "sound"
    failed_word: ClassVar[str] = "faulty"

    def outcome(self, assessment: Assessment) -> Outcome:
        """Return what became of a question; a refusal with a fault, as in its calls, has failed."""
        if assessment.parts.get(REFUSED_PART) and self.problem(assessment) is not None:
            return Outcome(FAILED)
        return super().outcome(assessment)

    @property
    def line(self) -> str:
        """Any fault."""
        return "it has one of these faults: " + ", ".join(_ORDER)

    def problem(self, assessment: Assessment) -> str | None:
        """Return the worst fault."""
        fault = assessment.verdict in _ORDER
        return f"{assessment.verdict}: {assessment.reason}" if fault else None

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return the calls, each with its faults, and then all other faults."""
        rows, turn, response = Rows(assessment.evidence, Fault), Turn(sample), sample.response or ""
        faults = [(f"f{place}", one) for place, one in enumerate(rows.of(Fault), 1)]
        calls = [(one, [row for row in faults if row[1].step == one.number]) for one in turn.calls]
        others = [row for row in faults if row[1].step not in {one.number for one in turn.calls}]
        ties = {
            n: [Tie(at, one.mark.word, one.mark) for at, one in faults if n in one.passages]
            for n in range(1, len(turn.documents) + 1)
        }
        said = [one for _, one in faults if one.text and one.text in response]
        said.sort(key=lambda one: response.find(one.text or ""))
        return View(
            data={"calls": calls, "others": others, "rest": rows.rest},
            judged=[Judged(one.text or "", one.mark, one.why) for one in said],
            passages={n: PassageNote(citing=own, tied_by="decides") for n, own in ties.items()},
        )


def _arguments(turn: Turn) -> tuple[int, list[Fault]]:
    """Return how many arguments were judged, and those that nothing supports."""
    count, rows = 0, list[Fault]()
    for call in turn.calls:
        before, after = turn.steps[: call.number - 1], turn.steps[call.number - 1 :]
        later = {n for one in after for n in one.passages}
        shown = [one.text for n, one in enumerate(turn.documents, 1) if n not in later]
        shown += [one.system or "" for one in before]
        known = Known([one.user or one.assistant or "" for one in before], shown)
        judged, new = unsupported(call.arguments, known)
        count += judged
        for name, value, part in new:
            why = f"{part!r} in {name or 'the argument'} of {call.tool} has no source"
            kind = FAULTS["unsupported_argument"]
            rows.append(Fault(kind, why, call.number, argument=name, value=value))
    return count, rows


def _given_as_success(turn: Turn, found: Sequence[Finding], response: str) -> list[Fault]:
    """Return the failed calls that no later one makes good, where the answer says what no other
    result does, or where all calls failed."""
    new = [one.row.text for one in found if one.row.verdict != "supported"]
    good = [one for one in turn.calls if not one.error]
    if not (new or good) and ("?" not in response or WORDS["done"].search(response)):
        new = [response]
    rows = []
    for call in turn.failed if new else ():
        if any(one.tool == call.tool and one.number > call.number for one in good):
            continue
        why = f"step {call.number}, {call.tool}, failed; the answer says “{new[0]}”"
        told: dict[str, Any] = {"text": new[0], "quote": call.error, "passages": call.passages}
        rows.append(Fault(FAULTS["failed_call"], why, call.number, **told))
    return rows


def _against_results(
    turn: Turn, claims: Sequence[Claim], found: Sequence[Finding]
) -> Iterator[Fault]:
    """Yield the fault of each sentence that a result contradicts, that says what a call returned
    before it returned something else, or that has a value of no result, or of another row."""
    said = [one.user or one.system or one.shown for one in turn.steps if one.assistant is None]
    every = {str(value) for _, value in turn.values(*turn.owners)}
    held = [one for one in every if len(one) > 1 and one != one.lower()]  # no usual words
    changes = list(turn.changes())
    last = max((one.number for one in turn.owners.values()), default=None)
    for claim, one in zip(claims, found, strict=True) if turn.owners else ():
        row, text = one.row, claim.hypothesis or ""
        number, words = (row.passages or [0])[0], set(plain_words(text))
        if row.verdict == "contradicted" and (call := turn.owners.get(number)):
            why = f"step {call.number} says otherwise than “{row.text}” ({row.contradiction:.2f})"
            told: dict[str, Any] = {"passages": [number], "quote": row.quote}
            yield Fault(FAULTS["ignored_result"], why, call.number, text=row.text, **told)
            continue
        for call, name, *values in changes:
            before, after = [set(plain_words(value)) for value in values]
            if before and before <= words and not after <= words:
                why = f"step {call.number} has {name} {values[1]}, “{row.text}” what was before"
                told = {"text": row.text, "passages": call.passages}
                yield Fault(FAULTS["ignored_result"], why, call.number, **told)
                break
        else:
            shown = [f"{result.title}\n{as_prose(result.text, text)}" for result in turn.results]
            known = KnownDetails([folded(part) for part in (*said, *shown)], [], "")
            new = known.missing_values(text)
            new += [
                value
                for value in held
                if says(text, value) and not says("\n".join((*said, *shown)), value)
            ]
            if new:
                why = f"{new[0]!r} in “{row.text}” is in no result that is about it"
                kind = FAULTS["unsupported_value"]
                yield Fault(kind, why, last, text=row.text, value=new[0])
