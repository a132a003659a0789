"""Wei et al. 2024, computed again: Tables 1 to 12 and Figures 2 to 4 of FEWL.

1. Find the files of the data, or take the bundled set (:mod:`.inputs`).
2. Compare right and wrong answers by each group of references (:mod:`.scores`).
3. Rank models, ask them, and look at the references (:mod:`.models`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from trustassay.core.event_loop import run_anywhere
from trustassay.input.records import InputError
from trustassay.papers.experiments.answers import collect_answers, read_records
from trustassay.papers.reproduce.fewl import models
from trustassay.papers.reproduce.fewl.inputs import (
    FILES,
    NO_REFERENCES,
    FewlFiles,
    KnownReferences,
    PaperInput,
    find_files,
    read_input,
    read_references,
    select_weighable,
)
from trustassay.papers.reproduce.fewl.scores import (
    BEST_TABLES,
    CHALE_TABLES,
    HALUEVAL_TABLES,
    REPEATS,
    GroupScores,
    PairTable,
    build_tables,
    measure_groups,
)
from trustassay.papers.reproduce.scoring import refuse_options
from trustassay.papers.reproduce.setup import ReproductionSetup
from trustassay.papers.reproduce.tables import ReproducedTable, Reproduction
from trustassay.runs.needs import name_models
from trustassay.text.numbers import amount

SOURCE = (
    "Wei, Yao, Ton, Guo, Estornell, Liu: Measuring and Reducing LLM Hallucination without "
    "Gold-Standard Answers, 2024"
)
USED_BACKENDS = frozenset({"generator", "embedder", "similarity"})
BUNDLED_DATA = (
    "60 questions of this project. Right, half-wrong and wrong answers were derived from its "
    "passages by rules. References: five recorded answers by Qwen2.5-Coder-1.5B-Instruct and one "
    "by Qwen2.5-Coder-0.5B-Instruct."
)


@dataclass
class _Parts:
    """What the steps read, and what they have computed."""

    setup: ReproductionSetup
    paper_files: FewlFiles
    known: Mapping[str, KnownReferences]
    """By question, the references of the data's own file of them."""
    tables: list[ReproducedTable] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, place: str, table: ReproducedTable | str) -> None:
        """Add a table, or say what it needs."""
        if isinstance(table, str):
            self.missing[place] = table
        else:
            self.missing.pop(place, None)
            self.tables.append(table)


def reproduce(setup: ReproductionSetup) -> Reproduction:
    """Compute the tables that the data and the models allow.

    Raises:
        InputError, BadInputError: the data cannot be read, or hold none of the files.
        BackendError: a model cannot be loaded.
        UsageError: a backend is given that they do not use.
    """
    refuse_options("fewl", setup, used_backends=USED_BACKENDS)
    paper_files = find_files(setup)
    known = read_references(paper_files.references, setup.selection)
    parts = _Parts(setup, paper_files, known)
    for kind, file in FILES.items():
        if kind not in paper_files.paths:
            parts.missing |= dict.fromkeys(file.tables, f"needs a file {file.described_names}")
    steps: Mapping[str, Callable[[_Parts, Path], None]] = {
        "chale": _add_chale,
        "truthfulqa": _add_truthfulqa,
        "halueval": _add_halueval,
        "five-choice": _add_ranking,
        "samples": _add_samples,
    }
    for kind, step in steps.items():
        if path := paper_files.paths.get(kind):
            with _name_file_in_errors(path):
                step(parts, path)
    tables = sorted(parts.tables, key=lambda table: _order_place(table.number))
    notes = [
        f"{path.name} is not used: another file provides the same tables."
        for path in paper_files.unused
    ]
    return Reproduction(
        "fewl",
        SOURCE,
        _describe_data(setup, paper_files),
        tables,
        [*_list_differences(setup), *notes],
        dict(sorted(parts.missing.items(), key=lambda item: _order_place(item[0]))),
        setup.describe_settings(),
        [chart for table in tables for chart in table.charts],
    )


@contextmanager
def _name_file_in_errors(path: Path) -> Iterator[None]:
    """Name the file in errors that do not."""
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from None


def _describe_data(setup: ReproductionSetup, paper_files: FewlFiles) -> str:
    limit = setup.selection.limit
    files = f"Files: {_list_files(paper_files)}."
    if limit is not None:
        what = "the bundled set" if setup.is_bundled else "the data"
        return f"Only the first {amount(limit, 'record')} of each file of {what}. {files}"
    return BUNDLED_DATA if setup.is_bundled else files


def _list_files(paper_files: FewlFiles) -> str:
    paths = [
        *paper_files.paths.values(),
        *filter(None, [paper_files.references]),
        *paper_files.results.values(),
    ]
    return ", ".join(path.name for path in paths)


def _measure(
    parts: _Parts, paper_input: PaperInput, name: str, tables: Sequence[PairTable], *, best: bool
) -> list[GroupScores]:
    """Measure a file and add its tables; without references say what they need."""
    setup = parts.setup
    # Before references are looked at, so that a faulty label is an error without them too.
    answers = collect_answers(paper_input.samples, setup.selection, every=best)
    if not paper_input.groups:
        for table in tables:
            parts.missing[table.number.partition(" (")[0]] = NO_REFERENCES
        return []
    folder = setup.folder / name
    groups = run_anywhere(
        lambda: measure_groups(answers, paper_input.groups, setup, folder, best=best)
    )
    for group in groups:
        if group.no_pairs:
            parts.missing[f"FEWL (Ours), single-best ({group.name})"] = group.no_pairs
    for table in tables:
        parts.tables += build_tables(table, groups, paper_input.notes, count=best)
    return groups


def _add_chale(parts: _Parts, path: Path) -> None:
    setup = parts.setup
    paper_input = read_input(path, parts.known, setup)
    _measure(parts, paper_input, "chale", CHALE_TABLES, best=False)
    if needs := _find_needs(setup, paper_input):
        parts.missing["Table 6"] = needs
    else:
        parts.add("Table 6", models.learn_from_examples(paper_input, setup, setup.folder / "icl"))


def _find_needs(setup: ReproductionSetup, paper_input: PaperInput, *, tuned: bool = False) -> str:
    """Return what Tables 6 and 7 lack; empty if nothing."""
    if not paper_input.groups:
        return NO_REFERENCES
    uris = list(name_models(list(setup.models), "model", many=True).values())
    model = (
        "--model hf:ID or a folder (the model to tune)" if tuned else "--model (the model to ask)"
    )
    needs = [] if uris else [model]
    if tuned and uris and not (str(uris[0]).startswith("hf:") or Path(str(uris[0])).is_dir()):
        needs.append(model)
    needs += [] if setup.judge else ["--judge"]
    return "needs " + " and ".join(needs) if needs else ""


def _add_truthfulqa(parts: _Parts, path: Path) -> None:
    setup = parts.setup
    paper_input = read_input(path, parts.known, setup)
    groups = _measure(parts, paper_input, "truthfulqa", BEST_TABLES, best=True)
    folder = setup.folder
    if groups:
        parts.add("Figures 3 and 4", models.compare_references(groups, setup, folder / "experts"))
    else:
        parts.missing["Figures 3 and 4"] = NO_REFERENCES
    parts.add("Figure 2", models.judge_lazy_answers(path, setup, folder / "neighbours"))
    if needs := _find_needs(setup, paper_input, tuned=True):
        parts.missing["Table 7"] = needs
    else:
        parts.add("Table 7", models.tune_on_choices(paper_input, setup, folder / "sft"))


def _add_halueval(parts: _Parts, path: Path) -> None:
    paper_input = read_input(path, parts.known, parts.setup)
    _measure(parts, paper_input, "halueval", HALUEVAL_TABLES, best=False)


def _add_ranking(parts: _Parts, path: Path) -> None:
    folder, results = parts.setup.folder / "ranking", parts.paper_files.results
    parts.add("Table 4", models.build_ranking(path, results, parts.setup, folder))


def _add_samples(parts: _Parts, path: Path) -> None:
    setup, weighed_path = parts.setup, path
    if parts.known and not setup.references:
        paper_input = read_input(path, parts.known, setup)
        path = paper_input.write(setup.folder / "samples.jsonl")
        # Table 5 needs no pairs of wrong and corrected answers; Table 4 has one kind of weights.
        weighable = select_weighable(paper_input.samples, None)
        weighed_path = paper_input.write(setup.folder / "ranked.jsonl", weighable)
    parts.add("Table 5", models.order_pairs(path, setup, setup.folder / "samples"))
    # Labelled answers rank models too, where no questions with choices do.
    labelled = all(sample.label is not None for sample in read_records(path, setup.selection))
    if labelled and "five-choice" not in parts.paper_files.paths:
        parts.add(
            "Table 4", models.build_ranking(weighed_path, {}, setup, setup.folder / "ranking")
        )


def _explain_repeats(repeats: int) -> str:
    """Return what stands before and behind a ±."""
    if repeats < 2:
        return (
            "No ±, because there is only one repeat. Figures are for the references as recorded, "
            "and `single` is the first of them. Intervals: 95 %, over questions."
        )
    return (
        f"Figures with ± are the mean and standard deviation over {repeats} repeats. Each repeat "
        "draws the reference answers of every question with replacement, as many as there are; "
        "`single` is the first one drawn. The paper does not say what "
        "its ± repeats. Intervals: 95 %, over questions, of the same mean. In reproduction.json, "
        "`as_recorded` is the figure without drawing, with the first recorded reference as "
        "`single`."
    )


def _list_differences(setup: ReproductionSetup) -> list[str]:
    """Return what differs from the paper."""
    similarity = setup.backends.get("similarity", "the cosine of the built-in embedder")
    return [
        f"The similarity is {similarity}, not Vectara's model. Scores therefore have another "
        "scale, and the penalty has more weight. --backend similarity=consistency is closer to "
        "the paper.",
        _explain_repeats(setup.repeats or REPEATS),
        "A tie does not count as a win.",
        "Each penalty averages over 10 neighbours; the paper gives no number. Table 8 uses 25 "
        "random questions, as in the paper. Both kinds have a cosine of at most 0.8.",
        "The weights `ideal` use the labelled right and wrong answers to a question. "
        "Half-hallucinated answers count as neither, because the paper lists them separately.",
        "Section 4.1 gives `multi + no penalty` equal weights, but Table 11 calls it expertise "
        "weighting. Equal weights are used here.",
        "Table 4 prints accuracy, although its caption says 1 - accuracy. Choices are in the "
        "order of the file. In haltt4llm the right choice is the first one, which favours a "
        "model that prefers A.",
    ]


def _order_place(place: str) -> tuple[bool, int, str]:
    """Return the key that sorts tables by their numbers, then figures."""
    number = re.search(r"\d+", place)
    return not place.startswith("Table"), int(number[0]) if number else 0, place
