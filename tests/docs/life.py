"""The life of one sentence: the steps from a raw record to the colour on the page, as they run.

    python -m tests.docs.life            # write them into docs/architecture.md

A run of one answer is traced; each step names the function that is called and what comes of it.
``tests/docs/test_architecture.py`` compares the page with the trace.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import tempfile
import threading
from functools import cached_property
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tests.docs.pages import DOCS
from trustassay import score

PAGE = DOCS / "architecture.md"
SAMPLE = {
    "id": "bridge",
    "question": "How long is the harbour bridge?",
    "response": "The harbour bridge is 512 metres long.",
    "documents": ["The bridge in the harbour is 412 metres long. It is 21 metres wide."],
}
"""A wrong answer: the passage says 412."""


class Step(NamedTuple):
    """A function that is called in the run, and in words what it does."""

    target: str
    """``module:name`` below ``trustassay``; ``name`` may be ``Class.method``."""
    text: str
    result: str
    """The type of what comes of it, as it is named in the code."""


STEPS = (
    Step("runs.intake:build_run_options", "gather the options of the run", "RunOptions"),
    Step("runs.needs:load_backends", "load the models that the metric needs", "Backends"),
    Step("runs.execute:execute", "begin the run in its folder", "RunOutcome"),
    Step("input.reading:read_samples", "read each record of the input", "RawRecord"),
    Step("input.recognising:recognise", "find its fields, in any layout", "RecognisedRecord"),
    Step("input.passages:read_documents", "read its passages", "Document"),
    Step("core.sample:Sample.parse", "check it as a sample", "Sample"),
    Step("runs.lines:encode_sample", "store it in `samples.jsonl`", "bytes"),
    Step("runs.execute:assess_sample", "give it to each metric", "Assessment"),
    Step(
        "metrics.faithfulness.metric:Faithfulness.assess",
        "run the metric's algorithm",
        "Assessment",
    ),
    Step("judging.claims:build_claims", "turn the answer into claims", "Claim"),
    Step("text.markdown:parse_blocks", "split it into paragraphs, lists, tables", "Block"),
    Step("judging.claims:_split_sentences", "split into sentences with positions", "MappedText"),
    Step("judging.claims:_ClaimBuilder._complete_text", "complete fragments", "MappedText"),
    Step("judging.refusal:find_refusal", "check for a refusal", "str"),
    Step("judging.verdict:ClaimVerifier.judge", "judge each claim", "ClaimFinding"),
    Step("judging.passages:Passages.choose_evidence", "choose the evidence to read", "Evidence"),
    Step("judging.passages:ask_reader", "compare premise and hypothesis", "Entailment"),
    Step("calls.keys:Keys.of", "build the key of the call", "bytes"),
    Step("calls.batching:Batcher._compute_or_split", "compute equal requests once", "Entailment"),
    Step("calls.store:CallStore.add", "store the reply", "StoredCall"),
    Step(
        "judging.verdict:ClaimVerifier._build_finding",
        "set the verdict and its reason",
        "ClaimFinding",
    ),
    Step("judging.details:KnownDetails.find_missing", "find numbers that no passage has", "str"),
    Step(
        "metrics.faithfulness.metric:Faithfulness._build_assessment",
        "build the result",
        "Assessment",
    ),
    Step("runs.lines:encode_assessment", "write `assessments.jsonl`", "bytes"),
    Step("core.assessment:compute_summary", "compute figures and intervals", "Summary"),
    Step("runs.counts:determine_outcome", "determine the outcome", "Outcome"),
    Step("runs.report:write_report", "write the report", "ReportRun"),
    Step("report.answers:answer_of", "build the answer's card", "AnswerCard"),
    Step("judging.evidence:JudgedClaim.mark", "choose tone, symbol and word", "Mark"),
    Step("report.page:write_template", "draw `report.html`", "bytes"),
)
"""In the order in which they are first called."""


def code_of(target: str) -> CodeType:
    """Return the code of a function; it has to exist under this name."""
    module, _, path = target.partition(":")
    thing: Any = importlib.import_module(f"trustassay.{module}")
    for name in path.split("."):
        thing = inspect.getattr_static(thing, name)
    if isinstance(thing, classmethod | staticmethod):
        thing = thing.__func__
    if isinstance(thing, property):
        thing = thing.fget
    if isinstance(thing, cached_property):
        thing = thing.func
    code: CodeType = inspect.unwrap(thing).__code__
    return code


def trace() -> list[Step]:
    """Run the answer; return the steps that were called, in the order of their first calls."""
    steps = {code_of(step.target): step for step in STEPS}
    called: dict[CodeType, Step] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in steps:
            called.setdefault(frame.f_code, steps[frame.f_code])

    with tempfile.TemporaryDirectory() as folder:
        # Text work and the end of a run are in threads of their own.
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            score([SAMPLE], metrics="faithfulness", out=Path(folder) / "run")
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return list(called.values())


def lines() -> str:
    """Return the steps as a table in Markdown."""
    rows = ["| | where | step | result |", "| --- | --- | --- | --- |"]
    for number, step in enumerate(trace(), 1):
        module, _, name = step.target.partition(":")
        path = module.replace(".", "/") + ".py"
        rows.append(f"| {number} | `{path}`: `{name}` | {step.text} | `{step.result}` |")
    return "\n".join(rows)


BLOCK = re.compile(r"(<!-- life -->\n)(.*?)(\n<!-- /life -->)", re.DOTALL)


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda match: match[1] + lines() + match[3], page), encoding="utf-8")
