"""Labelled answers: every public file in which people judged answers by passages.

``dev``: the development files of ``lab/training/sets.py``, the documents held out of its training
files, the development files of ``attribution``, and four sets that nothing was fitted to. ``test``:
the 19 test files of ``lab/training/sets.py``. ``which``: the sets with passages of
docs/which-metric.md, some of which hold answers of the test files.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

from lab.benchmarks.claims.storage import digest
from lab.benchmarks.faithfulness import cut
from lab.benchmarks.which_metric.sets import ASKED, SETS, PublicSet, shared
from lab.training import sets as training_sets
from trustassay.statistics.resampling import generator

Split = Literal["dev", "test", "which"]
SPLITS: Sequence[Split] = get_args(Split)
SUPPORTED = frozenset({"supported", "entailment", 1})
"""Labels of answers that their passages support; all other labels say that they do not."""
TURN_FIELDS = {"attribution/begin": "message", "dialogue-grounding": "context"}
"""Where files of dialogues, by the beginning of their path, keep the turn before the answer."""
NO_TURN = "Tell me more."
"""What stands in the place of a turn that is blank."""
ATTRIBUTION_DEV = ("begin_wow_dev", "begin_cmu_dev", "begin_tc_dev", "wice_oracle_dev", "wice_dev",
                   "healthver_dev")  # fmt: skip
UNSEEN_DEV = ("attributionbench/in_domain_dev", "attributionbench/ood_dev", "scitab/test")
"""Files that nothing was trained or fitted on, as SelfCheckGPT's biographies."""
CONTINUED = "[CONTINUE]"
"""A mark of SciTab before claims that continue a sentence of the paper; it is no part of them."""


class LabelledAnswer(NamedTuple):
    """An answer with its passages, and what people said of it."""

    question: str
    response: str
    documents: Sequence[str]
    supported: bool
    cluster: str
    """The document that it is about; answers about one document are drawn together."""


class LabelledSet(NamedTuple):
    """A set by its name; ``read`` returns all its answers, in the order of the file."""

    name: str
    split: Split
    read: Callable[[], Iterable[LabelledAnswer]]


def read_lines(path: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file below the folder of the public data."""
    with gzip.open(shared() / f"{path}.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def question_of(path: str, row: Mapping[str, Any]) -> str:
    """Return the question of a row: its own, the turn before, or a neutral one."""
    if row.get("question"):
        return str(row["question"])
    for beginning, field in TURN_FIELDS.items():
        if path.startswith(beginning):
            return str(row[field]).strip() or NO_TURN
    return ASKED


def passages_of(row: Mapping[str, Any]) -> list[str]:
    """Return the passages of a row: its references, a page cut into passages, or its premise."""
    if "references" in row:
        return list(row["references"])
    if "premise_sentences" in row:
        return cut(row["premise_sentences"])
    return [row["premise"]]


def cluster_of(path: str, row: Mapping[str, Any]) -> str:
    """Return the document of a row, or what it shares with other rows where none is recorded."""
    if "doc" in row:
        return str(row["doc"])
    # WiCE and HealthVer put one claim to several passages, BEGIN several replies to one passage.
    field = "premise" if path.startswith("attribution/begin") else "hypothesis"
    return str(row[field])


def read_answer(path: str, row: Mapping[str, Any]) -> LabelledAnswer:
    """Return the answer of a row of one of the files."""
    return LabelledAnswer(
        question=question_of(path, row),
        response=row["hypothesis"].removeprefix(CONTINUED).strip(),
        documents=passages_of(row),
        supported=row["label"] in SUPPORTED,
        cluster=digest(cluster_of(path, row)),
    )


def read_file(path: str) -> Iterator[LabelledAnswer]:
    """Yield the answers of a file."""
    for row in read_lines(path):
        yield read_answer(path, row)


def read_held_out(name: str) -> Iterator[LabelledAnswer]:
    """Yield the answers about documents that are held out of a training file."""
    path = training_sets.SOURCES[name].path
    pairs = {(item.premise, item.hypothesis) for item in training_sets.dev(f"{name}_held")}
    for row in read_lines(path):
        if (row["premise"], row["hypothesis"]) in pairs:
            yield read_answer(path, row)


def read_biographies() -> Iterator[LabelledAnswer]:
    """Yield the sentences of GPT-3's biographies, each with the article that it was compared to."""
    for row in read_lines("selfcheck-wikibio/passages"):
        cluster = digest(row["wiki_bio_text"])
        for sentence, annotation in zip(row["main_sentences"], row["annotation"], strict=True):
            passages = [row["wiki_bio_text"]]
            yield LabelledAnswer(ASKED, sentence, passages, annotation == "accurate", cluster)


def read_public_set(public: PublicSet) -> Iterator[LabelledAnswer]:
    """Yield the answers of a set of docs/which-metric.md."""
    for row in public.rows():
        yield LabelledAnswer(
            row.question, row.response, row.fields["documents"], row.label == 1, digest(row.cluster)
        )


def list_sets() -> list[LabelledSet]:
    """Return all sets; reads no file."""
    dev_paths = [
        *training_sets.DEV.values(),
        *(f"attribution/{name}" for name in ATTRIBUTION_DEV),
        *UNSEEN_DEV,
    ]
    held_out = [name for name, source in training_sets.SOURCES.items() if source.held_out]
    return [
        *(LabelledSet(path, "dev", partial(read_file, path)) for path in dev_paths),
        *(LabelledSet(f"{name}_held", "dev", partial(read_held_out, name)) for name in held_out),
        LabelledSet("selfcheck-wikibio", "dev", read_biographies),
        *(LabelledSet(path, "test", partial(read_file, path)) for path in training_sets.TEST),
        *(
            LabelledSet(public.name, "which", partial(read_public_set, public))
            for public in SETS
            if "faithfulness" in public.columns
        ),
    ]


def choose_places(size: int, rows: int | None, seed: int, name: str) -> list[int]:
    """Return the places of ``rows`` answers drawn from ``size`` by a seed, in order; all if fewer.

    The first places of a larger draw are those of a smaller one, so that a run with more rows
    continues one with fewer.
    """
    if rows is None or rows >= size:
        return list(range(size))
    order = generator(seed, "lab.benchmarks.claims", name).permutation(size)
    return sorted(order[:rows].tolist())


def read_set(labelled: LabelledSet, rows: int | None, seed: int) -> list[dict[str, Any]]:
    """Return answers of a set, drawn by a seed, as they are scored and stored."""
    answers = list(labelled.read())
    return [
        {
            "measure": "labelled",
            "split": labelled.split,
            "set": labelled.name,
            "id": f"{labelled.name}-{place}",
            "cluster": answers[place].cluster,
            "label": int(answers[place].supported),
            "question": answers[place].question,
            "response": answers[place].response,
            "documents": list(answers[place].documents),
        }
        for place in choose_places(len(answers), rows, seed, labelled.name)
    ]
