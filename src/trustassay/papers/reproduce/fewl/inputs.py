"""Find the files that FEWL's tables are computed from, and whose answers are the references.

1. Look for each file by its names; a single file is recognised by its content.
2. Read its questions, and give them the reference answers of ``references``.
3. Form the groups that the paper's columns have: the several answers of one model, or several
   models with one answer each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.core.files import open_atomic
from trustassay.core.sample import Sample
from trustassay.input.records import InputError
from trustassay.papers.experiments.answers import RecordSelection, read_records
from trustassay.papers.reproduce.setup import RECORDED, ReproductionSetup
from trustassay.runs.lines import encode_sample
from trustassay.runs.needs import name_models

BUNDLED = RECORDED / "fewl"
"""60 questions of this project in the layout of ``--data``, with real answers of two models."""
PAPER_ANSWERS, PAPER_PAIRS = 5, 25
"""Answers of each reference, and wrong answers of each question, in the paper."""
NO_REFERENCES = (
    "needs reference answers: --reference [NAME=]URI, or a file `references*` in the folder, "
    "with `question` and `references`"
)
NO_PAIRS = (
    "needs wrong and corrected answers: --backend generator=URI, or `wrong_answers` and "
    "`corrected_answers` in the file or in `references*`"
)
_SUFFIXES = ("json", "jsonl", "ndjson", "csv", "tsv", "parquet", "xlsx")


class PaperFile(NamedTuple):
    """A file that tables are computed from."""

    patterns: Sequence[str]
    """Its names without suffix, in small letters, as patterns."""
    tables: Sequence[str]
    """What it gives."""

    @property
    def described_names(self) -> str:
        """Its names as people read them."""
        return " or ".join(f"`{pattern}`" for pattern in self.patterns)


FILES: Mapping[str, PaperFile] = {
    "chale": PaperFile(
        ("chale*", "hallucinated_ans*"),
        ("Table 1", "Table 2", "Table 6", "Table 8", "Table 11", "Table 12"),
    ),
    "five-choice": PaperFile(("five-choice*", "*trivia_questions*"), ("Table 4",)),
    "truthfulqa": PaperFile(
        ("truthfulqa*",), ("Table 3", "Table 7", "Table 9", "Figure 2", "Figures 3 and 4")
    ),
    "samples": PaperFile(("samples*",), ("Table 5",)),
    "halueval": PaperFile(("halueval*", "qa_*data*"), ("Table 10",)),
}
"""By kind, in the order in which names are looked for: a file has the first kind that fits."""
RESULTS_PATTERN = "test_results_*.txt"
"""Outputs of models that haltt4llm published, for Table 4."""


@dataclass(frozen=True)
class FewlFiles:
    """The files of a folder, by kind."""

    paths: Mapping[str, Path]
    """Of the kinds of :data:`FILES`."""
    references: Path | None
    """Reference answers by question."""
    results: Mapping[str, Path]
    """Files of published outputs, by the name of their model."""
    unused: Sequence[Path]
    """Files of a kind of which another one is used."""


def find_files(setup: ReproductionSetup) -> FewlFiles:
    """Return the files of the data, or of the bundled set.

    Raises:
        InputError: the data does not exist, or holds none of the files; lists their names.
    """
    folder = setup.data or BUNDLED
    if not folder.exists():
        raise InputError(f"{folder}: no such file or folder")
    if folder.is_file():
        return FewlFiles({recognise(folder, setup.selection): folder}, None, {}, [])
    paths: dict[str, Path] = {}
    unused = []
    references = None
    for path in sorted(folder.iterdir()):
        kind = _find_kind(path)
        if kind == "references":
            references = references or path
        elif kind in paths:
            unused.append(path)
        elif kind is not None:
            paths[kind] = path
    results = {
        path.stem.rpartition(".json_")[2]: path for path in sorted(folder.glob(RESULTS_PATTERN))
    }
    if not paths:
        names = "; ".join(
            f"{file.described_names} ({', '.join(file.tables)})" for file in FILES.values()
        )
        raise InputError(
            f"{folder}: has none of the files that the tables need (.{', .'.join(_SUFFIXES)}): "
            f"{names}"
        )
    return FewlFiles(paths, references, results, unused)


def _find_kind(path: Path) -> str | None:
    """Return the kind of a file by its name; ``None`` for other files."""
    stem, _, suffixes = path.name.lower().partition(".")
    if not (path.is_file() and suffixes.split(".")[0] in _SUFFIXES):
        return None
    if fnmatch(stem, "references*"):
        return "references"
    kinds = (
        kind
        for kind, file in FILES.items()
        if any(fnmatch(stem, pattern) for pattern in file.patterns)
    )
    return next(kinds, None)


def recognise(path: Path, records: RecordSelection) -> str:
    """Return the kind of a single file by its records.

    Raises:
        InputError: they fit no table.
    """
    samples = read_records(path, replace(records, skipped=[], positions={}))
    first = samples[0]
    if "choices" in first.metadata:
        return "five-choice"
    if first.response is None and first.incorrect_answers:
        return "truthfulqa"
    if len({sample.model for sample in samples}) > 1:
        return "samples" if first.incorrect_answers else "five-choice"
    kinds = {str(sample.metadata.get("kind")) for sample in samples}
    if first.label is None:
        raise InputError(
            f"{path}: matches no table of the paper; expected answers with `label`, or questions "
            "with `answers` and `incorrect_answers`"
        )
    return "halueval" if kinds <= {"right", "hallucinated"} else "chale"


class KnownReferences(NamedTuple):
    """What a file says of one question."""

    answers: Mapping[str, tuple[str, ...]]
    """Answers by the name of the reference."""
    wrong: tuple[str, ...]
    """Intentionally wrong answers."""
    corrected: tuple[str, ...]
    """The corrected ones."""


def read_references(path: Path | None, records: RecordSelection) -> dict[str, KnownReferences]:
    """Return by question the references of a file.

    A record has `references`, or the `response` of one `model`.

    Raises:
        InputError: no record has either.
    """
    known: dict[str, KnownReferences] = {}
    if path is None:
        return known
    # All of the file, and its faults among those of the data.
    selection = RecordSelection(skip_bad=records.skip_bad, skipped=records.skipped)
    for sample in read_records(path, selection):
        answers = dict(sample.references)
        if sample.model is not None and sample.answered:
            answers[sample.model] = (sample.response or "",)
        earlier = known.get(sample.question.strip(), KnownReferences({}, (), ()))
        known[sample.question.strip()] = KnownReferences(
            {**earlier.answers, **answers},
            sample.wrong_answers or earlier.wrong,
            sample.corrected_answers or earlier.corrected,
        )
    if not any(references.answers for references in known.values()):
        raise InputError(f"{path}: no record has `references`, or `model` and `response`")
    return known


@dataclass(frozen=True)
class ReferenceGroup:
    """The references of a column of the paper."""

    name: str
    """The heading: the model, or the models."""
    names: Sequence[str]
    """The references in the samples; empty if a model is asked."""
    model: Any = None
    """The model that is asked for several answers, ``NAME=URI``."""

    def select(self, sample: Sample) -> Sample:
        """Return the sample with this group's references alone."""
        chosen = {name: sample.references[name] for name in self.names if name in sample.references}
        return replace(sample, references=chosen)


def form_groups(samples: Sequence[Sample], references: Sequence[str]) -> list[ReferenceGroup]:
    """Return a group for each model with several answers, and one for all others together.

    Models to ask come before the answers of the input.
    """
    if references:
        models = name_models(list(references), "references", many=True)
        return [ReferenceGroup(name, (), f"{name}={uri}") for name, uri in models.items()]
    counts: dict[str, int] = {}
    for sample in samples:
        for name, texts in sample.references.items():
            counts[name] = max(counts.get(name, 0), len(texts))
    groups = [ReferenceGroup(name, [name]) for name, count in counts.items() if count > 1]
    single_names = [name for name, count in counts.items() if count == 1]
    if single_names:
        groups.append(ReferenceGroup(", ".join(single_names), single_names))
    return groups


@dataclass(frozen=True)
class PaperInput:
    """A file with its references."""

    path: Path
    """The user's file."""
    samples: Sequence[Sample]
    groups: Sequence[ReferenceGroup]
    notes: Sequence[str]
    """What is left out."""

    def write(self, path: Path, samples: Sequence[Sample] | None = None) -> Path:
        """Write the samples with their references, as the input of an experiment."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(path, private=False) as file:
            file.writelines(map(encode_sample, self.samples if samples is None else samples))
        return path


def read_input(
    path: Path, known: Mapping[str, KnownReferences], setup: ReproductionSetup
) -> PaperInput:
    """Read a file, and add the known references to it.

    Raises:
        InputError, BadInputError: as :func:`read_records`.
    """
    samples = [_add_references(sample, known) for sample in read_records(path, setup.selection)]
    groups = form_groups(samples, setup.references)
    notes = []
    # Models that are asked answer every question.
    if groups and not setup.references:
        answered = [sample for sample in samples if sample.references]
        if len(answered) < len(samples):
            notes.append(
                f"{len(samples) - len(answered):,} of {len(samples):,} records have no references."
            )
        samples = answered
    return PaperInput(path, samples, groups, notes)


def select_weighable(samples: Sequence[Sample], generator: Any) -> list[Sample]:
    """Return the samples that the weights `ours` can be had for; all, if no sample can.

    An experiment that scores by one kind of weights alone then has the best that the data allow.
    """
    if generator is not None:
        return list(samples)
    return [s for s in samples if s.wrong_answers and s.corrected_answers] or list(samples)


def _add_references(sample: Sample, known: Mapping[str, KnownReferences]) -> Sample:
    references = known.get(sample.question.strip())
    if references is None:
        return sample
    return replace(
        sample,
        # A record that has references is compared with these alone.
        references=sample.references or references.answers,
        wrong_answers=sample.wrong_answers or references.wrong,
        corrected_answers=sample.corrected_answers or references.corrected,
    )
