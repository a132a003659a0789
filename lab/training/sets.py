"""The sets of hard kinds: what is trained on, with each set's licence, and development files.

Test files are never read for training or choosing; ``taken`` reads their premises, so that no
training row shares one. A set without a development file gives some of its documents for that.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from lab.training.data import DATA, LABELS, NOT_ENTAILMENT, Pair, folded, lines
from trustassay.backends import lexical
from trustassay.backends.embedded import cut_windows

__all__ = ["DEV", "SOURCES", "TEST", "Item", "Source", "dev", "rows", "taken", "test"]

Row = dict[str, Any]
WINDOW = (80, 50)
SPREAD = 0.1
"""How much of a statement's words one window may lack that the whole premise has."""

_STEMS = (
    "say said tell told claim* announce* mutter* affirm* complain* notif* reiterat* emphasi* "
    "agree* point*_out note* testif* comment* inform* gush* certif* gloat* respond* email* "
    "confess* signal* admit* reply replied reaffirm* communicat* indicat* remark* clarif* "
    "radio* divulg* growl* whin* wrote write grumbl* flip*_out confid* convey* apologi* warn* "
    "address* discuss* bitch* restat* murmur* post* instruct* disclos* wept summar* read "
    "leak* fess* record* log* publici* congratulat* alert* overheard approv* accept* "
    "acknowledg* decided direct* mandat* negotiat* authori* permit* allow* arrang* meant? "
    "intend* proved? determin* identif* "
).split()
SAYING = re.compile(rf"\b({'|'.join(_STEMS)})\b".replace("*", r"\w*").replace("_", " "))
"""Verbs of saying and ordering: that somebody said it does not support it."""


@dataclass(frozen=True)
class Source:
    """A training file below the data folder, and under which licence its rows may be used.

    held_out: how many in a hundred documents are left for development.
    long: premises are documents, of which one window is trained on.
    """

    path: str
    licence: str
    keep: Callable[[Row], bool] | None = None
    held_out: int = 0
    long: bool = False


def _not_saying(row: Row) -> bool:
    return row["label"] == "neutral" or not SAYING.search(row["premise"])


SOURCES: dict[str, Source] = {
    "fib": Source(
        "fib/train",
        "CC BY 4.0 (labels; articles BBC and CNN, not passed on)",
        keep=lambda row: row["how"] in {"human", "rule"},
        long=True,
    ),
    "xsum": Source(
        "xsum-hallucination/train", "CC BY 4.0 (labels; articles BBC, not passed on)", long=True
    ),
    "gap": Source("gap-coref/train", "Apache-2.0, text CC BY-SA 3.0"),
    "conjnli": Source("conjnli/train", "MIT, text CC BY-SA 3.0"),
    "hans": Source("hans/train", "MIT (templates)", held_out=10),
    "med": Source("med/train", "CC BY-SA 4.0"),
    "megaveridicality": Source("megaveridicality/train", "MIT", keep=_not_saying),
    "negation": Source("negation-nli/train", "MIT, text OANC and CC BY-SA 4.0", held_out=20),
    "fm2": Source("fool-me-twice/dev", "Apache-2.0, text CC BY-SA 3.0", held_out=20),
    "faithdial": Source(
        "dialogue-grounding/faithdial_audit_train",
        "MIT, text CC BY 4.0 and CDLA-Sharing 1.0",
        held_out=25,
    ),
    "summedits": Source("summedits/train", "Apache-2.0, text CC BY 4.0 and Apache-2.0", long=True),
    "diasumfact": Source("diasumfact/train", "MIT, text CC BY 4.0", long=True),
}

DEV = {
    "fib_dev": "fib/dev",
    "xsum_dev": "xsum-hallucination/dev",
    "summedits_dev": "summedits/dev",
    "diasumfact_dev": "diasumfact/dev",
    "expertqa_dev": "expertqa/dev",
    "conjnli_dev": "conjnli/dev",
    "gap_dev": "gap-coref/dev",
    "med_dev": "med/dev",
    "megaveridicality_dev": "megaveridicality/dev",
    "winogender": "nli-probes/winogender",
    "function_words": "nli-probes/function_words",
}
"""Development files by name; a source with ``held_out`` has NAME_held besides."""

TEST = (
    "fib/test",
    "xsum-hallucination/test",
    "summedits/test",
    "summedits/test_other",
    "diasumfact/test",
    "expertqa/test",
    "dialogue-grounding/dialfact_sample_test",
    "dialogue-grounding/faithdial_audit_test",
    "dialogue-grounding/q2_wow_test",
    "fool-me-twice/test",
    "gap-coref/test",
    "hans/test",
    "med/test",
    "megaveridicality/test",
    "negation-nli/test",
    "attribution/begin_wow_test",
    "attribution/wice_oracle_test",
    "attribution/wice_test",
    "attribution/healthver_test",
)
"""Files that only the chosen model is measured on."""


class Item(NamedTuple):
    """A pair of a development set: whether it is supported, and its document."""

    premise: str
    hypothesis: str
    label: int
    document: str


def _label(row: Row) -> int:
    value = row["label"]
    if value in {"entailment", "supported", 1}:
        return 0
    if value in {"not_entailment", "not_supported", 0}:
        return NOT_ENTAILMENT
    return LABELS.index("contradiction" if value == "contradicted" else value)


def _held_out(source: Source, row: Row) -> bool:
    digest = hashlib.sha256(str(row["doc"]).encode()).digest()
    return int.from_bytes(digest[:4], "big") % 100 < source.held_out


@cache
def taken() -> frozenset[str]:
    """Return the folded premises of every development and test file."""
    files = [*DEV.values(), *TEST]
    found = {folded(_premise(row)) for path in files for row in lines(DATA / f"{path}.jsonl.gz")}
    for source in SOURCES.values():
        if source.held_out:
            every = lines(DATA / f"{source.path}.jsonl.gz")
            found |= {folded(row["premise"]) for row in every if _held_out(source, row)}
    return frozenset(found)


def _premise(row: Row) -> str:
    return row["premise"] if "premise" in row else " ".join(row["premise_sentences"])


@cache
def rows(name: str) -> tuple[Pair, ...]:
    """Return the training rows of a source, without those whose premise is in another file."""
    source = SOURCES[name]
    made = []
    for row in lines(DATA / f"{source.path}.jsonl.gz"):
        if (source.keep and not source.keep(row)) or folded(row["premise"]) in taken():
            continue
        pair = Pair(row["premise"], row["hypothesis"], _label(row), name)
        read = _window(pair) if source.long else pair
        if read is not None:
            made.append(read)
    return tuple(made)


def _window(pair: Pair) -> Pair | None:
    """Return the pair with the window that has most of the statement's words.

    None when the statement is supported, but no single window has (nearly) all the words that the
    whole premise has: what supports it is then spread, and the window alone would be mislabelled.
    """
    cut = cut_windows(pair.premise, *WINDOW)
    shares = [lexical.compute_overlap(w, pair.hypothesis).containment for w in cut]
    best = max(shares)
    if pair.label == 0 and best + SPREAD < lexical.compute_overlap(*pair[:2]).containment:
        return None
    return pair._replace(premise=cut[shares.index(best)])


@cache
def dev(name: str) -> tuple[Item, ...]:
    """Return a development set: one of DEV, or NAME_held, the documents left out of NAME."""
    if name in DEV:
        found = list(lines(DATA / f"{DEV[name]}.jsonl.gz"))
    else:
        source = SOURCES[name.removesuffix("_held")]
        every = lines(DATA / f"{source.path}.jsonl.gz")
        found = [row for row in every if _held_out(source, row)]
    return _items(found)


def test(path: str) -> tuple[Item, ...]:
    """Return a test file by its path below the data folder, such as ``fib/test``."""
    return _items(lines(DATA / f"{path}.jsonl.gz"))


def _items(found: Iterable[Row]) -> tuple[Item, ...]:
    return tuple(Item(_premise(r), r["hypothesis"], _label(r), str(r["doc"])) for r in found)
