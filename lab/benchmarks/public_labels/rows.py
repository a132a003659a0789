"""The rows of the public sets as samples of the library, with their labels and trivial scores.

Every set is split once, by a seeded hash of what its rows share (a document, a question, a user's
task): rules are chosen on the rows of the part ``choose`` and reported once on those of ``report``.
The sets are found by TRUSTASSAY_SHARED, else ../shared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lab.benchmarks.which_metric.sets import lines
from trustassay.text.words import content_words, is_negation, plain_words

Json = dict[str, Any]
SPLIT_SEED = "54:"
ASKED = "What does the source say?"
"""The question of a set that has none."""
CONTINUES = "[CONTINUE]"
"""A mark of SciTab in a claim, which gives its label away; it is cut out."""


class LabelledRow(NamedTuple):
    """An answer with its label."""

    id: str
    cluster: str
    """What rows that are no independent evidence share; intervals resample it."""
    record: Json
    """The sample: question, response, documents; or messages."""
    label: str
    """The label of the set, in its own words."""
    trivial: Mapping[str, float]
    """Scores of rules that read nothing, by name; higher means right."""
    spans: Sequence[tuple[int, int]] = ()
    """Characters of the answer that people marked as errors."""
    other_spans: Mapping[str, Sequence[tuple[int, int]]] = {}
    """Spans by others than the first person, by name."""
    group: str = ""
    """The part of the set that the row comes from, where figures are given by parts."""

    @property
    def part(self) -> str:
        """``choose`` or ``report``."""
        digest = hashlib.sha256(f"{SPLIT_SEED}{self.cluster}".encode()).hexdigest()
        return "report" if int(digest, 16) % 2 else "choose"


def share_of_words(text: str, passages: Sequence[str]) -> float:
    """Return the share of a text's content words that the passages have."""
    words = set(content_words(text))
    return len(words & set(content_words("\n".join(passages)))) / max(1, len(words))


def read_quintd() -> Iterator[LabelledRow]:
    """Texts from data; a row is right if the person marked no span."""
    for row in lines("quintd/dev"):
        spans = _read_spans(row["spans_human"])
        stored = ("human2", "gpt4", "gpt4_t1", "gpt35", "llama3")
        others = {
            name: _read_spans(row[f"spans_{name}"])
            for name in stored
            if row.get(f"spans_{name}") is not None
        }
        record = {
            "question": f"Write a {row['task']} from the data.",
            "response": row["output"],
            "documents": [row["input"]],
            "model": row["model"],
        }
        trivial = {
            "length": -float(len(row["output"])),
            "words": share_of_words(row["output"], [row["input"]]),
            "GPT-4's spans": -float(len(others.get("gpt4", ()))),
        }
        yield LabelledRow(
            row["id"],
            str(row["group"]),
            record,
            "wrong" if spans else "right",
            trivial,
            spans,
            others,
            row["domain"],
        )


def _read_spans(spans: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    return [(span["start"], span["end"]) for span in spans]


def read_attribution(part: str) -> Callable[[], Iterator[LabelledRow]]:
    """Return a reader of cited claims, ``in_domain`` or ``ood``."""

    def read() -> Iterator[LabelledRow]:
        for row in lines(f"attributionbench/{part}_dev"):
            claim, passages = row["hypothesis"], row["references"]
            record = {
                "question": row["question"] or ASKED,
                "response": claim,
                "documents": list(passages),
            }
            trivial = {
                "words": share_of_words(claim, passages),
                "length": -float(len(" ".join(passages).split())),
            }
            label = "right" if row["label"] == "supported" else "wrong"
            yield LabelledRow(row["id"], row["doc"], record, label, trivial, group=row["source"])

    return read


def read_tau() -> Iterator[LabelledRow]:
    """Conversations of an airline's agent; right if the computed reward is 1."""
    for row in lines("tau-bench/airline_dev"):
        messages = row["messages"]
        calls = [
            call["function"]["name"]
            for message in messages
            for call in message.get("tool_calls") or ()
        ]
        reading = ("get", "search", "list", "find", "calculate", "think", "transfer")
        writing = [name for name in calls if not name.startswith(reading)]
        trivial = {
            "fewer messages": -float(len(messages)),
            "fewer writing calls": -float(len(writing)),
        }
        yield LabelledRow(
            f"{row['task_id']}-{row['trial']}",
            str(row["task_id"]),
            {"messages": messages},
            "right" if row["reward"] == 1 else "wrong",
            trivial,
        )


def read_scitab() -> Iterator[LabelledRow]:
    """Claims about tables: ``supported``, ``contradicted`` or ``not_supported``."""
    for row in lines("scitab/test"):
        claim = " ".join(row["hypothesis"].replace(CONTINUES, " ").split())
        record = {"question": ASKED, "response": claim, "documents": [row["premise"]]}
        negations = sum(map(is_negation, plain_words(claim)))
        trivial = {
            "words": share_of_words(claim, [row["premise"]]),
            # Most false claims of this set were made by a negation.
            "no negation": -float(negations),
        }
        yield LabelledRow(row["id"], row["doc"], record, row["label"], trivial)


def read_logs() -> Iterator[LabelledRow]:
    """Failed logs of several agents; the label is the step that people named."""
    for row in lines("who-and-when/dev"):
        record = {"question": row["question"], "history": row["history"]}
        group = row["system"]
        trivial = {"constant": 1.0 if group == "algorithm_generated" else 4.0}
        yield LabelledRow(
            row["id"], row["question_id"], record, str(row["mistake_step"]), trivial, group=group
        )


def read_simpleqa() -> Iterator[LabelledRow]:
    """Answers with a vendor's confidence; an answer that was not attempted is not right."""
    for row in lines("tlm-simpleqa/dev"):
        if row["label"] == "unsure":
            continue
        record = {
            "question": row["question"],
            "response": row["response"],
            "answers": [row["gold"]],
        }
        trivial = {"TLM": row["tlm"], "length": -float(len(row["response"]))}
        label = "right" if row["label"] == "right" else "wrong"
        yield LabelledRow(row["id"], row["doc"], record, label, trivial, group=row["label_by"])


LANGUAGES = {
    "ko": "multilingual-nli/ko_xnli_test",
    "ja": "multilingual-nli/ja_jnli_valid",
    "zh": "multilingual-nli/eval_only_nc/zh_ocnli_dev",
}


def read_pairs() -> Iterator[LabelledRow]:
    """Entailment in Korean, Japanese and Chinese; right if the premise entails the statement."""
    for language, name in LANGUAGES.items():
        for row in lines(name):
            record = {
                "question": ASKED,
                "response": row["hypothesis"],
                "documents": [row["premise"]],
            }
            trivial = {
                # These languages have no blanks between words: pairs of letters are counted.
                "letter pairs": _share_of_pairs(row["hypothesis"], row["premise"]),
                "length": -float(len(row["hypothesis"])),
            }
            label = "right" if row["label"] == "entailment" else "wrong"
            yield LabelledRow(row["id"], row["doc"], record, label, trivial, group=language)


def _share_of_pairs(text: str, premise: str) -> float:
    pairs = {text[place : place + 2] for place in range(len(text) - 1)}
    return sum(pair in premise for pair in pairs) / max(1, len(pairs))


def read_preferences() -> Iterator[LabelledRow]:
    """Two answers to an instruction; the label is the one that people prefer, 0 for a tie."""
    for row in lines("pandalm/test"):
        question = "\n\n".join(filter(None, (row["instruction"], row["input"])))
        # Some answers are stored as true and false.
        first, second = str(row["output_1"]), str(row["output_2"])
        record = {
            "question": question,
            "response": first,
            "other_response": second,
        }
        judges = {
            name: {1: 1.0, 2: -1.0}.get(judge["verdict"], 0.0)
            for name, judge in row["judges"].items()
        }
        longer = float(len(first) - len(second))
        yield LabelledRow(
            row["id"],
            row["instruction"],
            record,
            str(row["label"]),
            {"longer": longer, "always the second": -1.0, **judges},
        )


READERS: Mapping[str, Callable[[], Iterator[LabelledRow]]] = {
    "quintd": read_quintd,
    "attributionbench-in": read_attribution("in_domain"),
    "attributionbench-ood": read_attribution("ood"),
    "tau-bench": read_tau,
    "scitab": read_scitab,
    "who-and-when": read_logs,
    "tlm-simpleqa": read_simpleqa,
    "multilingual-nli": read_pairs,
    "pandalm": read_preferences,
}
"""The sets by their names."""


def read_rows(name: str, part: str = "") -> list[LabelledRow]:
    """Return the rows of a set, of one part or of both."""
    return [row for row in READERS[name]() if part in ("", row.part)]
