"""The metric ``tool_use``: faults of an agent in its calls, their results and its own words."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from trustassay.core.event_loop import gather_all
from trustassay.core.evidence import (
    EvidenceLink,
    EvidenceRow,
    EvidenceRows,
    JudgedPiece,
    Mark,
    PassageNote,
    View,
)
from trustassay.core.metric import (
    REFUSED_PART,
    Assessment,
    Context,
    Figure,
    Mean,
    Need,
    Share,
    Total,
    directions,
    index_figures,
)
from trustassay.core.outcome import FAILED, Outcome
from trustassay.core.sample import Document, Problem, Sample, find_missing
from trustassay.judging.claims import Claim
from trustassay.judging.details import KnownDetails
from trustassay.judging.verdict import ClaimFinding
from trustassay.metrics.faithfulness.metric import FaithfulnessOptions
from trustassay.metrics.tool_use.arguments import (
    DONE,
    TAKES_BACK,
    KnownValues,
    admits_failure,
    contains_text,
    find_unsupported,
    values_in,
)
from trustassay.text.cleaning import fold_text
from trustassay.text.limits import TextWork
from trustassay.text.tables import spell_data
from trustassay.text.words import plain_words

NO_STEPS = "no tool was called, and nothing was said before: there is nothing to judge it by"
FAULTS = {
    "failed_call": "failed call given as success",
    "ignored_result": "result ignored",
    "unsupported_value": "value that no result has",
    "contradicts_itself": "contradicts itself",
    "unsupported_argument": "unsupported argument",
}
"""The verdict of each kind of fault, by the key of its figure, the worst first."""
_FAULT_ORDER = list(FAULTS.values())


@dataclass(frozen=True, slots=True)
class AgentStep(EvidenceRow):
    """A step before an answer, from the ``steps`` of a sample."""

    user: str | None = None
    """A message of the user."""
    system: str | None = None
    """An instruction."""
    assistant: str | None = None
    """An earlier answer."""
    tool: str | None = None
    """The name of the tool that was called."""
    arguments: Any = None
    """The arguments of the call."""
    passages: Sequence[int] = ()
    """The numbers of the documents that the call returned, from 1."""
    error: str = ""
    """The error of a failed call."""
    number: int = 0
    """The number of the step, from 1."""

    @property
    def label(self) -> str:
        """The call as one line."""
        arguments = json.dumps(self.arguments, ensure_ascii=False, default=str)
        return f"{self.tool or 'a tool'}({'' if self.arguments is None else arguments})"


@dataclass(frozen=True, slots=True)
class AgentFault(EvidenceRow, row_kind="fault", required=("verdict",)):
    """A fault of an answer or of a call."""

    verdict: str
    """The kind of fault, a value of :data:`FAULTS`."""
    why: str
    """The fault in one sentence."""
    step: int | None = None
    """The number of the call."""
    argument: str | None = None
    """The path of the argument that nothing supports."""
    value: str | None = None
    """The value that nothing supports."""
    text: str | None = None
    """The sentence of the answer."""
    passages: Sequence[int] = ()
    """The numbers of the documents that decide."""
    quote: str | None = None
    """The words that decide."""
    turn: int | None = None
    """The number of the earlier answer that is contradicted, from 1."""

    @property
    def mark(self) -> Mark:
        """The verdict, for the report."""
        return Mark("bad", "✕", self.verdict)


class AgentTurn:
    """The steps before an answer, sorted.

    Attributes:
        earlier_answers: as documents.
        calls: the calls since the last question; failed: those of them that failed.
        results: the passages, those of failed calls blank.
        owners: the call that returned each passage, by its number from 1.
    """

    def __init__(self, sample: Sample) -> None:
        self.sample, raw_steps = sample, sample.metadata.get("steps")
        # Steps are user data: what is no list, or no step, is skipped.
        parsed_steps = (
            [AgentStep.read(item) for item in raw_steps]
            if isinstance(raw_steps, list | tuple)
            else []
        )
        self.steps = [
            replace(item, number=n) for n, item in enumerate(filter(None, parsed_steps), 1)
        ]
        # The number of the last question: calls before it belong to earlier answers.
        question_number = max(
            (item.number for item in self.steps if item.user is not None), default=0
        )
        earlier_answers = [
            item.assistant for item in self.steps[:question_number] if item.assistant is not None
        ]
        self.earlier_answers = [Document(str(n), text) for n, text in enumerate(earlier_answers, 1)]
        self.calls = [item for item in self.steps[question_number:] if item.tool is not None]
        self.failed = [item for item in self.calls if item.error]
        self.documents = sample.documents or ()
        places = range(1, len(self.documents) + 1)
        call_of_document = {n: item for item in self.steps for n in item.passages if n in places}
        self.owners = {n: item for n, item in call_of_document.items() if not item.error}
        # Blank instead of removed, so that the numbers of passages stay.
        self.results = [
            replace(item, text="", excerpt=None)
            if n in call_of_document and n not in self.owners
            else item
            for n, item in enumerate(self.documents, 1)
        ]

    def values(self, *numbers: int) -> list[tuple[str, Any]]:
        """Return the leaf values of the JSON in passages, each with its path."""
        result: list[tuple[str, Any]] = []
        for number in numbers:
            with suppress(ValueError, RecursionError):
                result += values_in(json.loads(self.results[number - 1].text))
        return result

    def changes(self) -> Iterator[tuple[AgentStep, str, str, str]]:
        """Yield values that changed between two equal calls: call, path, old value, new value."""
        last: dict[str, int] = {}
        for number, call in self.owners.items():
            # Compared with itself at first, which gives no change.
            before = last.get(call.label, number)
            pairs = zip(*map(self.values, (before, number)), strict=False)
            for (name, old), (same, new) in pairs if len(call.passages) == 1 else ():
                if name == same and old != new:
                    yield call, name, str(old), str(new)
            last[call.label] = number


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
    verdicts: ClassVar[Sequence[str]] = ("sound", *_FAULT_ORDER)
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    figures: ClassVar[Mapping[str, Figure]] = index_figures(
        Figure("mean", "arguments, failed calls and sentences without a fault, mean over answers",
            "", headline=True, statistic=Mean()),
        Figure("sound", "answers without a fault", headline=True, statistic=Share("sound")),
        Figure("failed_call", "answers after a failed call that are given as if it had worked", "",
            headline=True, statistic=Mean("failed_call", (0.0, 1.0)), better="lower"),
        Figure("ignored_result", "answers with a sentence that a result contradicts", "",
            headline=True, statistic=Mean("ignored_result", (0.0, 1.0)), better="lower"),
        Figure("unsupported_value", "answers with a number, date, id or name that no result has",
            "", headline=True, statistic=Mean("unsupported_value", (0.0, 1.0)), better="lower"),
        Figure("unsupported_argument",
            "answers after a call with an argument that nothing supports", "", headline=True,
            statistic=Mean("unsupported_argument", (0.0, 1.0)), better="lower"),
        Figure("contradicts_itself", "answers that contradict an earlier one of the conversation",
            "", headline=True, statistic=Mean("contradicts_itself", (0.0, 1.0)), better="lower"),
        Figure("calls", "calls of tools", "", statistic=Total("calls")),
        Figure("failed_calls", "calls that failed", "", statistic=Total("failed_calls")),
        Figure("arguments", "arguments judged", "", statistic=Total("arguments")),
        Figure("no_steps", "answers before which no tool was called and nothing was said", "",
            statistic=Total("no_steps")),
    )  # fmt: skip

    def needs(self) -> Sequence[Need]:
        """An entailer; for claims=model a judge."""
        return [Need("entail"), Need("chat", "judge")][: 1 + (self.claims == "model")]

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response."""
        return find_missing(sample, response="the text to assess")

    async def assess(self, context: Context) -> Assessment:
        """Look for faults; the evidence holds each one with the step that decides."""
        sample = context.sample
        response = context.response()
        work = TextWork.for_sample(context.sample)
        turn = await work(AgentTurn, sample)
        if not (turn.calls or turn.earlier_answers):
            return self.build_assessment(sample, None, reason=NO_STEPS, parts={"no_steps": 1.0})
        # Step 1: arguments of calls. These need no reader.
        judged, rows = await work(_judge_arguments, turn)
        all_claims = await self.claims_of(context, response)
        refused = self.refusal_in(response, all_claims)
        claims = [] if refused else [item for item in all_claims if item.hypothesis is not None]
        context.limits.check_count("statements", len(claims))
        # Step 2: the sentences, judged by the results of successful calls.
        result_verifier = await work(self.verifier, context, turn.results)
        findings = await gather_all(map(result_verifier.judge, claims))
        # Step 3: failed calls given as success, then contradictions with results.
        if not (refused or admits_failure(response, [item.tool or "" for item in turn.failed])):
            rows += _find_hidden_failures(turn, findings, response)
        rows += await work(lambda: list(_find_result_faults(turn, claims, findings)))
        # Step 4: contradictions with earlier answers. A sentence that a new result supports may
        # differ from one, and so may one that takes something back.
        new_passages = {n for item in turn.calls for n in item.passages}
        takes_back = TAKES_BACK.search
        for claim, item in zip([*claims], findings, strict=True):
            is_new = item.row.verdict == "supported" and new_passages.intersection(
                item.row.passages or ()
            )
            # Without a new call only the sentence itself can take something back.
            if is_new or takes_back(response if turn.calls else claim.text):
                claims.remove(claim)
        answer_verifier = await work(self.verifier, context, turn.earlier_answers)
        for row in (item.row for item in await gather_all(map(answer_verifier.judge, claims))):
            if row.verdict == "contradicted" and row.passages:
                reason = f"“{row.text}” goes against answer {row.passages[0]}, “{row.quote}”"
                details: dict[str, Any] = {"quote": row.quote, "turn": row.passages[0]}
                rows.append(
                    AgentFault(FAULTS["contradicts_itself"], reason, text=row.text, **details)
                )
        assessment = self._build_assessment(turn, rows, judged, len(findings))
        if not refused:
            return assessment
        return replace(assessment, parts={**assessment.parts, REFUSED_PART: 1.0})

    def _build_assessment(
        self, turn: AgentTurn, rows: list[AgentFault], judged: int, sentences: int
    ) -> Assessment:
        rows.sort(key=lambda row: _FAULT_ORDER.index(row.verdict))
        # A kind of fault has a figure only where it could occur: without failed calls none can be
        # given as success.
        basis_by_fault: dict[str, Any] = dict.fromkeys(FAULTS, turn.owners)
        basis_by_fault |= {"failed_call": turn.failed, "contradicts_itself": turn.earlier_answers}
        basis_by_fault["unsupported_argument"] = judged
        kinds = {row.verdict for row in rows}
        parts = {key: float(FAULTS[key] in kinds) for key, basis in basis_by_fault.items() if basis}
        parts |= {"calls": float(len(turn.calls)), "failed_calls": float(len(turn.failed))}
        # Everything that could be at fault.
        checks = max(1, judged + len(turn.failed) + sentences)
        # Several faults of one sentence or argument count once.
        faulty = len({(row.argument and row.step, row.argument, row.text) for row in rows})
        return self.build_assessment(
            turn.sample,
            1 - min(faulty / checks, 1.0),
            rows,
            verdict=rows[0].verdict if rows else "sound",
            reason=rows[0].why if rows else "no fault",
            parts={**parts, "arguments": float(judged)},
        )

    passed_word: ClassVar[str] = "sound"
    failed_word: ClassVar[str] = "faulty"

    def outcome(self, assessment: Assessment) -> Outcome:
        """Return the outcome of a question; a refusal fails if it has a fault, as in its calls."""
        if assessment.parts.get(REFUSED_PART) and self.problem(assessment) is not None:
            return Outcome(FAILED)
        return super().outcome(assessment)

    @property
    def line(self) -> str:
        """Any fault."""
        return "it has one of these faults: " + ", ".join(_FAULT_ORDER)

    def problem(self, assessment: Assessment) -> str | None:
        """Return the worst fault."""
        fault = assessment.verdict in _FAULT_ORDER
        return f"{assessment.verdict}: {assessment.reason}" if fault else None

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return the calls, each with its faults, and then all other faults."""
        rows = EvidenceRows(assessment.evidence, AgentFault)
        turn = AgentTurn(sample)
        response = sample.response or ""
        faults = [(f"f{place}", item) for place, item in enumerate(rows.select(AgentFault), 1)]
        calls = [
            (item, [row for row in faults if row[1].step == item.number]) for item in turn.calls
        ]
        other_faults = [
            row for row in faults if row[1].step not in {item.number for item in turn.calls}
        ]
        ties = {
            n: [
                EvidenceLink(at, item.mark.word, item.mark)
                for at, item in faults
                if n in item.passages
            ]
            for n in range(1, len(turn.documents) + 1)
        }
        faults_in_response = [item for _, item in faults if item.text and item.text in response]
        faults_in_response.sort(key=lambda item: response.find(item.text or ""))
        return View(
            data={"calls": calls, "others": other_faults, "other_items": rows.other_items},
            judged=[
                JudgedPiece(item.text or "", item.mark, item.why) for item in faults_in_response
            ],
            passages={
                n: PassageNote(citing=ties_of_passage, tied_by="decides")
                for n, ties_of_passage in ties.items()
            },
        )


def _judge_arguments(turn: AgentTurn) -> tuple[int, list[AgentFault]]:
    """Return the number of judged arguments, and a fault for each unsupported one."""
    count, rows = 0, list[AgentFault]()
    for call in turn.calls:
        before, after = turn.steps[: call.number - 1], turn.steps[call.number - 1 :]
        # A call can only know the results of earlier steps. Documents of no step count as known.
        later_passages = {n for item in after for n in item.passages}
        texts = [item.text for n, item in enumerate(turn.documents, 1) if n not in later_passages]
        texts += [item.system or "" for item in before]
        values_before = KnownValues([item.user or item.assistant or "" for item in before], texts)
        judged, unsupported_values = find_unsupported(call.arguments, values_before)
        count += judged
        for name, value, part in unsupported_values:
            reason = f"{part!r} in {name or 'the argument'} of {call.tool} has no source"
            kind = FAULTS["unsupported_argument"]
            rows.append(AgentFault(kind, reason, call.number, argument=name, value=value))
    return count, rows


def _find_hidden_failures(
    turn: AgentTurn, findings: Sequence[ClaimFinding], response: str
) -> list[AgentFault]:
    """Return a fault for each failed call that the answer presents as a success.

    No later call of the same tool succeeded, and the answer states something that no other result
    supports, or all calls failed.
    """
    unsupported_texts = [item.row.text for item in findings if item.row.verdict != "supported"]
    successful = [item for item in turn.calls if not item.error]
    # No sentence is left to blame and no call succeeded: the answer as a whole is at fault, unless
    # it only asks back.
    if not (unsupported_texts or successful) and ("?" not in response or DONE.search(response)):
        unsupported_texts = [response]
    rows = []
    for call in turn.failed if unsupported_texts else ():
        if any(item.tool == call.tool and item.number > call.number for item in successful):
            continue
        reason = (
            f"step {call.number}, {call.tool}, failed; the answer says “{unsupported_texts[0]}”"
        )
        details: dict[str, Any] = {
            "text": unsupported_texts[0],
            "quote": call.error,
            "passages": call.passages,
        }
        rows.append(AgentFault(FAULTS["failed_call"], reason, call.number, **details))
    return rows


def _find_result_faults(
    turn: AgentTurn, claims: Sequence[Claim], findings: Sequence[ClaimFinding]
) -> Iterator[AgentFault]:
    """Yield the faults of sentences against results.

    A result contradicts it; it gives a value that a later, equal call replaced; or it has a value
    that no result, or only an unrelated row, contains.
    """
    messages = [
        item.user or item.system or item.label for item in turn.steps if item.assistant is None
    ]
    values_of_results = {str(value) for _, value in turn.values(*turn.owners)}
    distinctive_values = [
        item for item in values_of_results if len(item) > 1 and item != item.lower()
    ]  # no usual words
    # Three checks in this order; a sentence gets one fault.
    changes = list(turn.changes())
    last = max((item.number for item in turn.owners.values()), default=None)
    for claim, item in zip(claims, findings, strict=True) if turn.owners else ():
        row, text = item.row, claim.hypothesis or ""
        number, words_of_sentence = (row.passages or [0])[0], set(plain_words(text))
        if row.verdict == "contradicted" and (call := turn.owners.get(number)):
            reason = (
                f"step {call.number} says otherwise than “{row.text}” ({row.contradiction:.2f})"
            )
            details: dict[str, Any] = {"passages": [number], "quote": row.quote}
            yield AgentFault(
                FAULTS["ignored_result"], reason, call.number, text=row.text, **details
            )
            continue
        for call, name, *values in changes:
            before, after = [set(plain_words(value)) for value in values]
            # The sentence has all words of the old value, and not of the new one.
            if before and before <= words_of_sentence and not after <= words_of_sentence:
                reason = f"step {call.number} has {name} {values[1]}, “{row.text}” what was before"
                details = {"text": row.text, "passages": call.passages}
                yield AgentFault(FAULTS["ignored_result"], reason, call.number, **details)
                break
        else:
            # Of a table only the rows that the sentence is about count (as_prose).
            results = [
                f"{result.title}\n{spell_data(result.text, text)}" for result in turn.results
            ]
            details_known = KnownDetails(
                [fold_text(part) for part in (*messages, *results)], [], ""
            )
            new_values = details_known.find_missing_values(text)
            new_values += [
                value
                for value in distinctive_values
                if contains_text(text, value)
                and not contains_text("\n".join((*messages, *results)), value)
            ]
            if new_values:
                reason = f"{new_values[0]!r} in “{row.text}” is in no result that is about it"
                kind = FAULTS["unsupported_value"]
                yield AgentFault(kind, reason, last, text=row.text, value=new_values[0])
