"""The metric ``tool_use``: what an agent made of its calls, and of what it said before."""

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from trustassay.event_loop import all_of
from trustassay.metric import Assessment, Context, Figure, Need, directions, read_figures
from trustassay.metrics.faithfulness.claims import Claim, refusal_of
from trustassay.metrics.faithfulness.judging import FaithfulnessOptions, Finding, Judging
from trustassay.metrics.faithfulness.metric import claims_of
from trustassay.metrics.grounding.text import without_citations
from trustassay.metrics.tool_use.arguments import Known, folded, says, unsupported, values_in
from trustassay.sample import Document, Problem, Sample, missing
from trustassay.tables import as_prose
from trustassay.texts import TextWork, plain_words
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
_ADMITS = re.compile(
    r"(?:could|can|did|do|does|was|were|is|are|am|has|have|will)(?:n['’]t| not)\b|\bcannot\b"
    r"|\bno (?:\w+ )?(?:result|answer|data|information|such|record|match|access|response|flight)"
    r"|\b(?:fail|error|unable|unavailable|unsuccessful|problem|issue|trouble|sorry|apolog|time[ds]?"
    r" ?out|went wrong|missing|denied|refused|invalid|unknown|unreachable|without success)",
    re.IGNORECASE,
)
"""Words by which an answer may say that something failed."""
_TAKES_BACK = re.compile(
    r"\b(?:sorry|apolog\w+|correct(?:ion|ed|ing)|mistak\w*|earlier|previous\w*|updat\w+|chang\w+"
    r"|actually|revised|wrong|misspoke|instead|no longer|now)\b",
    re.IGNORECASE,
)
"""Words by which a sentence may take back what was said."""

_COMPUTES = re.compile(
    r"\b(?:about|around|approximately|roughly|nearly|almost|over|total|sum|average|mean|median"
    r"|difference|combined|altogether|twice|half|times|percent|more than|less than|per)\b|[%~≈]",
    re.IGNORECASE,
)
"""Words by which a sentence may say what was computed."""


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


class Change(NamedTuple):
    """A value that a call returned otherwise than before."""

    call: Step
    passage: int
    name: str
    old: str
    new: str

    def outdates(self, words: Set[str]) -> bool:
        """Whether a sentence of these words has the old value, and not the new one."""
        old, new = set(plain_words(self.old)), set(plain_words(self.new))
        return bool(old) and old <= words and not new <= words


class Turn:
    """The steps before an answer. said: earlier answers. calls: those since the last question.
    owners: the calls that returned each passage, by its number."""

    def __init__(self, sample: Sample) -> None:
        given = sample.metadata.get("steps")
        read = [Step.read(one) for one in given] if isinstance(given, list | tuple) else []
        self.steps = [replace(one, number=n) for n, one in enumerate(filter(None, read), 1)]
        self.said = [one.assistant for one in self.steps if one.assistant is not None]
        asked = max((one.number for one in self.steps if one.user is not None), default=0)
        self.calls = [one for one in self.steps[asked:] if one.tool is not None]
        self.failed = [one for one in self.calls if one.error]
        self.owners = {n: one for one in self.steps for n in one.passages if not one.error}
        documents = sample.documents or ()
        failed = {n for one in self.steps for n in one.passages if one.error}
        self.results = [
            replace(one, text="", excerpt=None) if n in failed else one
            for n, one in enumerate(documents, 1)
        ]

    @cached_property
    def changes(self) -> list[Change]:
        """What calls returned last that the same calls had returned otherwise before."""
        result, texts = [], [one.text for one in self.results]
        for call in self.steps:
            same = [
                one
                for one in self.steps[: call.number - 1]
                if one.shown == call.shown and len(one.passages) == len(call.passages) == 1
            ]
            for old, new in [(same[-1].passages[0], call.passages[0])] if same else ():
                pairs = zip(*(values_in(texts[n - 1 : n]) for n in (old, new)), strict=False)
                result += [
                    Change(call, new, name, str(before), str(after))
                    for (name, before), (known_as, after) in pairs
                    if name == known_as and before != after
                ]
        return result

    def known_before(self, call: Step, documents: Sequence[Document]) -> Known:
        """Return what stands before a call."""
        before = self.steps[: call.number - 1]
        later = {n for one in self.steps[call.number - 1 :] for n in one.passages}
        said = [one.user or one.assistant or "" for one in before]
        shown = [one.text for n, one in enumerate(documents, 1) if n not in later]
        return Known(said, [*shown, *(one.system or "" for one in before)])


@dataclass(frozen=True)
class ToolUse(FaithfulnessOptions):
    """Does an answer of an agent go with its calls of tools, and with what it said before?

    Read are the ``steps`` of a conversation or a trace since its last question. A failed call that
    no later one of the tool makes good is given as success where the answer says what no other
    result supports, and admits nothing. A result is ignored where it contradicts a sentence, and a
    later one of the same tool also where an earlier one supports it. An argument is unsupported
    where neither people, instructions, earlier answers nor earlier results have its numbers, dates,
    ids or names. An answer contradicts itself where it contradicts an earlier one, takes nothing
    back, and no new result supports it. What no result says is for ``faithfulness``.

    The score is the share of arguments, failed calls and sentences without a fault, 0 to 1. The
    options are those of ``faithfulness``.
    """

    name: ClassVar[str] = "tool_use"
    title: ClassVar[str] = "What an agent made of its tools"
    part_directions = directions(
        lower=" ".join(FAULTS), neither="calls failed_calls arguments no_steps"
    )
    verdicts: ClassVar[Sequence[str]] = ("sound", *FAULTS.values())
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    figures: ClassVar[Mapping[str, Figure]] = read_figures(__package__)

    def needs(self) -> Sequence[Need]:
        """An entailer; for claims=model a judge."""
        return [Need("entail"), *[Need("chat", "judge")] * (self.claims == "model")]

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response."""
        return missing(sample, response="the text to assess")

    async def assess(self, context: Context) -> Assessment:
        """Look for faults; the evidence has each with the step that decides."""
        sample, response, work = context.sample, context.response(), TextWork.on(context.sample)
        turn = await work(Turn, sample)
        if not (turn.calls or turn.said):
            return self.assessed(sample, None, reason=NO_STEPS, parts={"no_steps": 1.0})
        judged, rows = await work(_arguments, sample, turn)
        refused = await work(refusal_of, response, self.refuses, self.split)
        claims = [] if refused else await claims_of(self, context, response)
        context.limits.count("statements", len(claims))
        looked = await work(Judging, self, _with(context, turn.results), claims)
        found = await all_of(map(looked.verdict, claims))
        if not (refused or _ADMITS.search(response)):
            rows += _given_as_success(turn, found, response)
        rows += [row for one in found if (row := _ignored(one, turn))]
        rows += await work(_values, turn, claims, {one.text for one in rows})
        fresh = {n for one in turn.calls for n in one.passages}
        doubtful = [
            claim
            for claim, one in zip(claims, found, strict=True)
            if one.row.verdict != "supported" or fresh.isdisjoint(one.row.passages or ())
        ]
        texts = [Document(str(n), text) for n, text in enumerate(turn.said, 1)]
        own = await work(Judging, self, _with(context, texts), doubtful)
        rows += filter(None, map(_against, await all_of(map(own.verdict, doubtful))))
        return self._assessed(sample, turn, rows, judged, sum(map(_claims, found)))

    def _assessed(
        self, sample: Sample, turn: Turn, rows: Sequence[Fault], judged: int, sentences: int
    ) -> Assessment:
        kinds = [one.verdict for one in rows]
        may_be = {
            "failed_call": turn.failed,
            "ignored_result": turn.owners,
            "unsupported_value": turn.owners,
            "contradicts_itself": turn.said,
            "unsupported_argument": judged,
        }
        parts = {key: float(FAULTS[key] in kinds) for key, given in may_be.items() if given}
        parts |= {"calls": float(len(turn.calls)), "failed_calls": float(len(turn.failed))}
        bad = len({(one.argument and one.step, one.argument, one.text) for one in rows})
        checks = judged + len(turn.failed) + sentences
        order = list(FAULTS.values())
        faults = sorted(rows, key=lambda one: order.index(one.verdict))
        return self.assessed(
            sample,
            1 - min(bad / checks, 1.0) if checks else 1.0,
            faults,
            verdict=faults[0].verdict if faults else "sound",
            reason=faults[0].why
            if faults
            else "no fault in its calls, nor in what it says of them",
            parts={**parts, "arguments": float(judged)},
        )

    @property
    def line(self) -> str:
        """Any fault."""
        return (
            "it is given as if a failed call had worked, goes against a result or an earlier answer"
            ", or follows a call with an argument that nothing supports"
        )

    def problem(self, assessment: Assessment) -> str | None:
        """Return the worst fault."""
        sound = assessment.verdict in (None, "sound")
        return None if sound else f"{assessment.verdict}: {assessment.reason}"

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return the calls, each with its faults and results, and what goes against earlier
        answers."""
        rows, turn = Rows(assessment.evidence, Fault), Turn(sample)
        faults = [(f"f{place}", one) for place, one in enumerate(rows.of(Fault), 1)]
        of = {
            call.number: [row for row in faults if row[1].step == call.number]
            for call in turn.calls
        }
        told = [row for own in of.values() for row in own]
        ties: dict[int, list[Tie]] = {n: [] for n in range(1, len(sample.documents or ()) + 1)}
        for anchor, one in faults:
            for number in one.passages:
                ties.get(number, []).append(Tie(anchor, one.mark.word, one.mark))
        response = sample.response or ""
        said = [one for _, one in faults if one.text and one.text in response]
        said.sort(key=lambda one: response.find(one.text or ""))
        return View(
            data={
                "calls": [(call, of[call.number]) for call in turn.calls],
                "others": [row for row in faults if row not in told],
                "rest": rows.rest,
            },
            judged=[Judged(one.text or "", one.mark, one.why) for one in said],
            passages={n: PassageNote(citing=own, tied_by="decides") for n, own in ties.items()},
        )


def _with(context: Context, documents: Sequence[Document]) -> Context:
    return replace(context, sample=replace(context.sample, documents=tuple(documents)))


def _claims(found: Finding) -> bool:
    return found.entailment is not None


def _arguments(sample: Sample, turn: Turn) -> tuple[int, list[Fault]]:
    """Return how many arguments were judged, and those that nothing supports."""
    count, rows = 0, []
    for call in turn.calls:
        judged, new = unsupported(call.arguments, turn.known_before(call, sample.documents or ()))
        count += judged
        for one in new:
            why = f"{one.new!r} in {one.argument or 'its argument'} of {call.tool} has no source"
            row = Fault(FAULTS["unsupported_argument"], why, call.number)
            rows.append(replace(row, argument=one.argument, value=one.value))
    return count, rows


def _given_as_success(turn: Turn, found: Sequence[Finding], response: str) -> list[Fault]:
    """Return the failed calls that no later one makes good, where an answer that admits nothing
    says what no other result supports, or where all calls failed."""
    open_ = [
        one
        for one in turn.failed
        if not any(n.tool == one.tool and not n.error for n in turn.calls[turn.calls.index(one) :])
    ]
    new = [one.row.text for one in found if _claims(one) and one.row.verdict != "supported"]
    if not new and len(turn.failed) == len(turn.calls) and "?" not in response:
        new = [response]
    rows = []
    for call in open_ if new else ():
        why = f"step {call.number}, {call.tool}, failed; the answer says “{new[0]}”"
        row = Fault(FAULTS["failed_call"], why, call.number, text=new[0], quote=call.error)
        rows.append(replace(row, passages=call.passages))
    return rows


def _ignored(found: Finding, turn: Turn) -> Fault | None:
    """Return the fault of a sentence that a result contradicts, or that says what a call returned
    before it returned something else."""
    row = found.row
    number = (row.passages or [0])[0]
    call, quote, why = turn.owners.get(number), row.quote, f"says otherwise ({row.contradiction})"
    if row.verdict != "contradicted" or not call:
        words = set(plain_words(row.text))
        newer = (one for one in turn.changes if _claims(found) and one.outdates(words))
        if (change := next(newer, None)) is None:
            return None
        call, number = change.call, change.passage
        why, quote = f"has {change.name} {change.new!r} now, no longer {change.old!r}", None
    kind = FAULTS["ignored_result"]
    why = f"“{row.text}”: step {call.number} {why}"
    return Fault(kind, why, call.number, text=row.text, passages=[number], quote=quote)


def _values(turn: Turn, claims: Sequence[Claim], at_fault: Set[str | None]) -> list[Fault]:
    """Return the sentences with a number, a date or an id that no result has, or with a value of
    another row: of data the rows count that the sentence is about."""
    said = [one.user or one.system or one.shown for one in turn.steps if one.assistant is None]
    held = {str(one) for result in turn.results for _, one in values_in(result.text)}
    rows = []
    for claim in claims if turn.owners else ():
        text = claim.hypothesis or ""
        if claim.text in at_fault or _COMPUTES.search(text):
            continue
        shown = [f"{one.title}\n{as_prose(one.text, text)}" for one in turn.results]
        known, bare = Known([*said, *shown], ()), without_citations(claim.text)
        written = [one for one in held if len(one) > 1 and says(bare, one)]
        parts = [*known.figures(folded(bare)), *((one, known.says(folded(one))) for one in written)]
        if new := next((part for part, is_known in parts if text and not is_known), None):
            near = [one.number for one in turn.calls if one.passages and not one.error]
            why = f"{new!r} in “{claim.text}” is in no result, nor in what was asked"
            kind = FAULTS["unsupported_value"]
            rows.append(Fault(kind, why, max(near, default=None), text=claim.text, value=new))
    return rows


def _against(found: Finding) -> Fault | None:
    """Return the fault of a sentence that an earlier answer contradicts."""
    row = found.row
    if row.verdict != "contradicted" or _TAKES_BACK.search(row.text):
        return None
    turn = (row.passages or [0])[0]
    why = f"“{row.text}” goes against answer {turn}: “{row.quote}” ({row.contradiction:.2f})"
    kind = FAULTS["contradicts_itself"]
    return Fault(kind, why, text=row.text, quote=row.quote, turn=turn)
