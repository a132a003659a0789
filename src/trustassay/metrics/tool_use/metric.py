"""The metric ``tool_use``: faults of an agent in its calls, their results and its own words."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
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
from trustassay.core.sample import Document, Problem, Sample, describe_value, find_missing
from trustassay.judging.claims import Claim
from trustassay.judging.details import KnownDetails
from trustassay.judging.verdict import ClaimFinding
from trustassay.metrics.faithfulness.metric import FaithfulnessOptions
from trustassay.metrics.tool_use.actions import (
    can_have_done,
    changes_something,
    find_action,
    find_other_id,
    is_state,
    name_parts,
)
from trustassay.metrics.tool_use.arguments import (
    DONE,
    TAKES_BACK,
    KnownValues,
    admits_failure,
    claims_done,
    contains_text,
    find_unsupported,
    values_in,
)
from trustassay.metrics.tool_use.numbers import find_computed, find_endings
from trustassay.metrics.tool_use.sentences import has_fact, is_fragment, states_fact
from trustassay.text.cleaning import fold_text
from trustassay.text.limits import TextWork
from trustassay.text.quantities import read_values
from trustassay.text.tables import spell_data
from trustassay.text.words import plain_words

NO_STEPS = "no tool was called and nothing was said before, so there is nothing to judge it by"
FAULTS = {
    "failed_call": "failed call given as success",
    "uncalled_action": "action without a call",
    "ignored_result": "result ignored",
    "unsupported_value": "value that no result has",
    "contradicts_itself": "contradicts itself",
    "unsupported_argument": "unsupported argument",
}
"""The verdict of each kind of fault, by the key of its figure, the worst first."""
_FAULT_ORDER = list(FAULTS.values())
_LISTS = {"steps": "steps", "messages": "messages", "tool_calls": "calls"}
"""What is in each field of a conversation, which is a list. For other metrics they are any data."""


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
        all_calls: the calls of the conversation.
        calls: the calls since the last question; failed: those of them that failed.
        results: the passages, those of failed calls blank.
        owners: the call that returned each passage, by its number from 1.
        has_results: whether any call returned something; an empty result counts, and of a call
            without ``passages`` nothing is known.
    """

    def __init__(self, sample: Sample) -> None:
        self.sample, raw_steps = sample, sample.metadata.get("steps")
        # Steps are user data: what is no list, or no step, is skipped.
        if not isinstance(raw_steps, list | tuple):
            raw_steps = []
        parsed_steps = [AgentStep.read(item) for item in raw_steps]
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
        self.all_calls = [item for item in self.steps if item.tool is not None]
        self.calls = [item for item in self.all_calls if item.number > question_number]
        self.failed = [item for item in self.calls if item.error]
        self.documents = sample.documents or ()
        places = range(1, len(self.documents) + 1)
        call_of_document = {n: item for item in self.steps for n in item.passages if n in places}
        self.owners = {n: item for n, item in call_of_document.items() if not item.error}
        self.has_results = bool(self.owners) or any(
            step is not None
            and step.tool is not None
            and not step.error
            and isinstance(raw.get("passages"), list | tuple)
            for step, raw in zip(parsed_steps, raw_steps, strict=True)
        )
        # Blank instead of removed, so that the numbers of passages stay.
        self.results = [
            replace(item, text="", excerpt=None)
            if n in call_of_document and n not in self.owners
            else item
            for n, item in enumerate(self.documents, 1)
        ]

    @property
    def messages(self) -> list[str]:
        """The texts of the user and the system, and the calls, each as one line."""
        return [
            item.user or item.system or item.label for item in self.steps if item.assistant is None
        ]

    def values(self, *numbers: int) -> list[tuple[str, Any]]:
        """Return the leaf values of the JSON in passages, each with its path."""
        result: list[tuple[str, Any]] = []
        for number in numbers:
            with suppress(ValueError, RecursionError):
                result += values_in(json.loads(self.results[number - 1].text))
        return result

    def texts_of(self, call: AgentStep) -> list[str]:
        """Return the texts of the passages that a call returned."""
        return [self.results[n - 1].text for n, owner in self.owners.items() if owner is call]

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
    """Does an agent's answer agree with its tool calls and with its earlier answers?

    The metric reads the ``steps`` since the last question and the results of earlier ones. It
    looks for these faults:

    - A failed call is presented as a success: no later call repairs it, the answer does not admit
      the failure, and it states something that no other result says.
    - An action has no call: a sentence says that it was done, but no call of the conversation can
      have done it.
    - A result is ignored: it contradicts a sentence, or it replaces a value of the same call that
      a sentence still states.
    - A number, date or id of a sentence is in no result and no instruction, for data in no row
      that the sentence is about, and cannot be computed from them.
    - An argument has a number, date, id or name that appears nowhere before the call.
    - An answer contradicts an earlier one, takes nothing back, and no new result supports it.

    Requests, plans and offers contradict nothing. Other unsupported statements are left to
    ``faithfulness``, whose options also apply here; ``contradiction`` has a higher default. The
    score, 0 to 1, is the share of arguments, failed calls and sentences without a fault.
    """

    contradiction: float = 0.8
    """Probability from which a result or an earlier answer contradicts a sentence.

    Between 0.5 and 0.8 none of the contradictions that the embedded entailer saw in conversations
    of a real agent was one (``lab/results/public-labels.json``, tau-bench), and no planted one is
    lost (``lab/results/agents.json``).
    """

    name: ClassVar[str] = "tool_use"
    title: ClassVar[str] = "Tool use of an agent"
    part_directions = directions(
        lower=" ".join(FAULTS), neither="calls failed_calls arguments no_steps"
    )
    verdicts: ClassVar[Sequence[str]] = ("sound", *_FAULT_ORDER)
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    figures: ClassVar[Mapping[str, Figure]] = index_figures(
        Figure("mean", "mean share of arguments, failed calls and sentences without a fault",
            "", headline=True, statistic=Mean()),
        Figure("sound", "answers without a fault", headline=True, statistic=Share("sound")),
        Figure("failed_call", "share of answers after a failed call that present it as success", "",
            headline=True, statistic=Mean("failed_call", (0.0, 1.0)), better="lower"),
        Figure("uncalled_action", "share of answers with an action that no call can have done",
            "", headline=True, statistic=Mean("uncalled_action", (0.0, 1.0)), better="lower"),
        Figure("ignored_result", "share of answers with a sentence that a result contradicts", "",
            headline=True, statistic=Mean("ignored_result", (0.0, 1.0)), better="lower"),
        Figure("unsupported_value", "share of answers with a number, date or id that no result has",
            "", headline=True, statistic=Mean("unsupported_value", (0.0, 1.0)), better="lower"),
        Figure("unsupported_argument",
            "share of answers after a call with an unsupported argument", "", headline=True,
            statistic=Mean("unsupported_argument", (0.0, 1.0)), better="lower"),
        Figure("contradicts_itself", "share of answers that contradict an earlier answer",
            "", headline=True, statistic=Mean("contradicts_itself", (0.0, 1.0)), better="lower"),
        Figure("calls", "tool calls", "", statistic=Total("calls")),
        Figure("failed_calls", "tool calls that failed", "", statistic=Total("failed_calls")),
        Figure("arguments", "judged arguments of tool calls", "", statistic=Total("arguments")),
        Figure("no_steps", "answers before which no tool was called and nothing was said", "",
            statistic=Total("no_steps")),
    )  # fmt: skip

    def needs(self) -> Sequence[Need]:
        """An entailer; for claims=model a judge."""
        return [Need("entail"), Need("chat", "judge")][: 1 + (self.claims == "model")]

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response, and lists where it has fields of a conversation."""
        result = find_missing(sample, response="the text to assess")
        for name, items in _LISTS.items():
            value = sample.metadata.get(name)
            if value and not isinstance(value, list | tuple):
                message = f"expected a list of {items}, got {describe_value(value)}"
                result.append(Problem(name, message))
        return result

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
        failed_tools = [item.tool or "" for item in turn.failed]
        errors = [item.error for item in turn.failed]
        if not (refused or admits_failure(response, failed_tools, errors)):
            rows += _find_hidden_failures(turn, findings, response)
        if not refused:
            rows += await work(_find_uncalled_actions, turn, all_claims)
        rows += await work(lambda: list(_find_result_faults(turn, claims, findings)))
        # Step 4: contradictions with earlier answers.
        comparable = await work(_select_comparable, turn, claims, findings, response)
        answer_verifier = await work(self.verifier, context, turn.earlier_answers)
        for row in (item.row for item in await gather_all(map(answer_verifier.judge, comparable))):
            if row.verdict == "contradicted" and row.passages and has_fact(row.quote or ""):
                reason = f"“{row.text}” contradicts answer {row.passages[0]}, “{row.quote}”"
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
        basis_by_fault["uncalled_action"] = turn.all_calls
        basis_by_fault["unsupported_value"] = turn.has_results
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
            reason = (
                f"{part!r} in {name or 'the argument'} of {call.tool} is nowhere before the call"
            )
            kind = FAULTS["unsupported_argument"]
            rows.append(AgentFault(kind, reason, call.number, argument=name, value=value))
    return count, rows


def _find_hidden_failures(
    turn: AgentTurn, findings: Sequence[ClaimFinding], response: str
) -> list[AgentFault]:
    """Return a fault for each failed call that the answer presents as a success.

    No later call of the same tool succeeded, and the answer states something that no other result
    supports, or all calls failed. Of a tool that does something the answer must say that it was
    done, or give a value: what else it states has other sources than that call.
    """
    messages = [fold_text(text) for text in turn.messages]
    known_messages = KnownDetails(messages, [], "")
    known_texts = [*messages, *(fold_text(item.text) for item in turn.results)]
    details_of_all = KnownDetails(known_texts, [], "")
    unsupported_texts = [
        item.row.text
        for item in findings
        if item.row.verdict != "supported"
        # "- Price: 20" states no fact, and yet the value was for the failed call to give.
        and (
            states_fact(item.row.text)
            or details_of_all.find_missing_values(fold_text(item.row.text))
        )
    ]
    successful = [item for item in turn.calls if not item.error]
    rows = []
    for call in turn.failed:
        if any(item.tool == call.tool and item.number > call.number for item in successful):
            continue
        tool = call.tool or ""
        texts = [
            text
            for text in unsupported_texts
            if not changes_something(tool)
            or claims_done(text, [tool])
            or known_messages.find_missing_values(fold_text(text))
        ]
        # No sentence is left to blame and no call succeeded: the answer as a whole is at fault,
        # unless it only asks back.
        if not (texts or unsupported_texts or successful) and (
            "?" not in response or DONE.search(response)
        ):
            texts = [response]
        if not texts:
            continue
        reason = f"step {call.number} ({call.tool}) failed, but the answer says “{texts[0]}”"
        details: dict[str, Any] = {
            "text": texts[0],
            "quote": call.error,
            "passages": call.passages,
        }
        rows.append(AgentFault(FAULTS["failed_call"], reason, call.number, **details))
    return rows


def _find_uncalled_actions(turn: AgentTurn, claims: Sequence[Claim]) -> list[AgentFault]:
    """Return a fault for each sentence with an action that no call of the conversation has done.

    Without any call nothing is known of what the agent can do, and nothing is judged.
    """
    if not turn.all_calls:
        return []
    succeeded = [item.tool or "" for item in turn.all_calls if not item.error]
    failed = [item.tool or "" for item in turn.all_calls if item.error]
    objects = {part for item in turn.all_calls for part in name_parts(item.tool or "")}
    results = [item.text for item in turn.results]
    users = [item.user or "" for item in turn.steps]
    rows = []
    for claim in claims:
        action = find_action(claim.text, objects) if claim.in_english else None
        if action is None or is_state(action, results, users):
            continue
        reason = f"no call can have done what the answer claims: “{claim.text}”"
        if can_have_done(action, succeeded, failed):
            # The tool was called, but for something else: order W12 instead of order W34.
            texts = [
                text
                for item in turn.all_calls
                if action.verb in name_parts(item.tool or "") and not item.error
                for text in (item.label, *turn.texts_of(item))
            ]
            other_id = find_other_id(claim.text, texts)
            if other_id is None:
                continue
            reason = f"the call was made for {other_id}, but the answer says “{claim.text}”"
        rows.append(AgentFault(FAULTS["uncalled_action"], reason, text=claim.text))
    return rows


def _select_comparable(
    turn: AgentTurn, claims: Sequence[Claim], findings: Sequence[ClaimFinding], response: str
) -> list[Claim]:
    """Return the statements that earlier answers may contradict.

    A sentence that a new result supports may differ from an earlier one, and so may one whose
    values are all of new results, and one that takes something back.
    """
    # Only of calls that succeeded, and numbers that there are: steps are user data.
    new_passages = {n for n, item in turn.owners.items() if item in turn.calls}
    results = [turn.results[n - 1].text for n in sorted(new_passages)]
    new_details = KnownDetails([fold_text(text) for text in results], [], "")
    result = []
    for claim, item in zip(claims, findings, strict=True):
        is_new = item.row.verdict == "supported" and new_passages.intersection(
            item.row.passages or ()
        )
        text = fold_text(claim.text)
        # With values of its own, all of them in a new result.
        has_new_values = (
            bool(results) and any(read_values(text)) and not new_details.find_missing_values(text)
        )
        # Without a new call only the sentence itself can take something back.
        takes_back = TAKES_BACK.search(response if turn.calls else claim.text)
        if states_fact(claim.text) and not (is_new or has_new_values or takes_back):
            result.append(claim)
    return result


def _find_result_faults(
    turn: AgentTurn, claims: Sequence[Claim], findings: Sequence[ClaimFinding]
) -> Iterator[AgentFault]:
    """Yield the faults of sentences against results.

    A result contradicts it; it gives a value that a later, equal call replaced; or it has a value
    that no result, or only an unrelated row, contains, and that cannot be computed.
    """
    if not turn.has_results:
        return
    # Three checks in this order; a sentence gets one fault.
    changes = list(turn.changes())
    last = max((item.number for item in turn.owners.values()), default=None)
    new_values_of_claims = _find_new_values(turn, claims)
    for claim, item, new_values in zip(claims, findings, new_values_of_claims, strict=True):
        row, text = item.row, claim.hypothesis or ""
        number, words_of_sentence = (row.passages or [0])[0], set(plain_words(text))
        call_of_passage = turn.owners.get(number)
        if row.verdict == "contradicted" and call_of_passage and states_fact(claim.text):
            step = call_of_passage.number
            reason = f"step {step} contradicts “{row.text}” ({row.contradiction:.2f})"
            details: dict[str, Any] = {"passages": [number], "quote": row.quote}
            yield AgentFault(FAULTS["ignored_result"], reason, step, text=row.text, **details)
            continue
        for call, name, *values in changes:
            before, after = [set(plain_words(value)) for value in values]
            # The sentence has all words of the old value, and not of the new one.
            if before and before <= words_of_sentence and not after <= words_of_sentence:
                reason = f"“{row.text}” has the old {name}; in step {call.number} it is {values[1]}"
                details = {"text": row.text, "passages": call.passages}
                yield AgentFault(FAULTS["ignored_result"], reason, call.number, **details)
                break
        else:
            if new_values:
                reason = f"no related result contains {new_values[0]!r} of “{row.text}”"
                kind = FAULTS["unsupported_value"]
                yield AgentFault(kind, reason, last, text=row.text, value=new_values[0])


def _find_new_values(turn: AgentTurn, claims: Sequence[Claim]) -> list[list[str]]:
    """Return for each statement the values that it has from nowhere, or from an unrelated row."""
    messages = turn.messages
    results = [result.text for result in turn.results]
    everything = [fold_text(text) for text in (*messages, *results)]
    details_of_all = KnownDetails(everything, [], "")
    values_of_results = {str(value) for _, value in turn.values(*turn.owners)}
    distinctive_values = [
        item for item in values_of_results if len(item) > 1 and item != item.lower()
    ]  # no usual words
    # Sentences that name no row have the same texts, and reading these takes seconds where a result
    # is long. A few are kept: each holds all its texts.
    read_details = lru_cache(maxsize=4)(lambda texts: KnownDetails(texts, [], ""))
    new_values: list[list[str]] = []
    absent: set[str] = set()
    for claim in claims:
        text = claim.hypothesis or ""
        of_all = details_of_all.find_missing_values(text)
        absent.update(of_all)
        # "- Price: 20" leaves the row to the items around it: that of any row will do.
        if is_fragment(claim.text):
            new_values.append(of_all)
            continue
        # Of a table only the rows that the sentence names count.
        rows = [
            f"{item.title}\n{spell_data(item.text, text, by_name=True)}" for item in turn.results
        ]
        known_texts = tuple(fold_text(part) for part in (*messages, *rows))
        known_text = "\n".join((*messages, *rows))
        missing = read_details(known_texts).find_missing_values(text)
        missing += [
            value
            for value in distinctive_values
            if contains_text(text, value) and not contains_text(known_text, value)
        ]
        new_values.append(missing)
    if not absent:
        return new_values
    numbers = [
        number
        for text in everything
        for value in read_values(text)
        if value.kind == "number"
        for number in value.numbers
    ]
    arguments = [json.dumps(item.arguments, default=str) for item in turn.calls]
    answer = fold_text(turn.sample.response or "")
    derived = find_computed(answer, absent, results, arguments, numbers)
    derived |= find_endings(answer, everything)
    return [[value for value in values if value not in derived] for values in new_values]
