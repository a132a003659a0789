"""Use chosen answers as examples in a prompt or as targets of fine-tuning, and compare the results.

Wei et al. 2024, sections 5.1 and 5.2: Tables 6 and 7. The arms differ only in how the best answer
of a question is chosen: by FEWL's score, by similarity to one reference (the baseline), or by the
label. A judge compares each arm's answers with those of the unchanged model (vanilla), in both
orders.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from trustassay.backends import DEFAULT_EMBEDDER, resolve
from trustassay.compare.preferences import WinRateOptions, win_rate
from trustassay.core.event_loop import run_anywhere
from trustassay.core.files import open_atomic
from trustassay.core.metric import Summary
from trustassay.core.sample import Sample
from trustassay.errors import UsageError
from trustassay.input.records import InputError
from trustassay.metrics.fewl import Fewl
from trustassay.papers.experiments.answers import RecordSelection, collect_answers, read_records
from trustassay.papers.experiments.measuring import (
    FewlSetup,
    errors_of,
    execute_run,
    load_models,
)
from trustassay.papers.experiments.results import Cell, ExperimentResult, ExperimentRow
from trustassay.papers.select import (
    LABEL,
    QUESTIONS,
    SCORE,
    SINGLE,
    TRAIN,
    CandidateAnswers,
    Example,
    IclOptions,
    choose_best,
    choose_targets,
    find_examples,
    question_of,
    read_answers,
    read_questions,
    split_train_test,
    with_prompt,
    write_targets,
)
from trustassay.papers.tune import TuneOptions, tune
from trustassay.runs.answering import Answering
from trustassay.runs.folder import RunFolder
from trustassay.runs.generate import GenerateOptions, generate
from trustassay.runs.lines import encode_sample
from trustassay.text.numbers import amount

VANILLA = "vanilla"
TITLES = {
    "fewl-icl": "Win rates of answers with chosen examples in the prompt",
    "fewl-sft": "Win rates of a model tuned on chosen answers over the untuned model",
}
PAPER_TABLES = {"fewl-icl": 6, "fewl-sft": 7}
COLUMNS = ("won, %", "lost, %", "tied, %", "win rate, %", "questions")


@dataclass(frozen=True)
class LearningSetup:
    """The model, the judge, and the settings of both experiments."""

    model: Any
    """As for ``generate``; for ``sft`` a folder or ``hf:ID``."""
    judge: Any
    """As for ``compare --judge``."""
    answering: Answering = field(default_factory=Answering)
    """How the model is asked."""
    examples: int = 5
    """Examples in a prompt of ``icl``."""
    questions: Path | None = None
    """The questions of ``icl``; by default those of the input."""
    tuning: TuneOptions = field(default_factory=TuneOptions)
    """How the model of ``sft`` is tuned."""
    test_share: float = 0.2
    """The share of questions that ``sft`` tests with."""


def run_icl(
    source: Path, out: Path, setup: FewlSetup, records: RecordSelection, learning: LearningSetup
) -> ExperimentResult:
    """Compare answers after examples in the prompt with answers without examples: Table 6.

    The examples are questions for which FEWL and the baseline choose different answers.

    Raises:
        InputError: there is no such question, or no answer could be scored.
        As :func:`~trustassay.papers.experiments.fewl.count_best_answers`,
        ``generate`` and ``win_rate``.
    """
    # 1. Score all answers, and choose the questions that become examples.
    answers, ways, notes = _score_answers(source, out, setup, records)
    pool = [
        q
        for q in answers.questions
        if choose_best(q, SCORE).text != choose_best(q, ways["baseline"]).text
    ]
    if not pool:
        raise InputError(
            f"FEWL and the baseline choose the same answer for all {len(answers.questions):,} "
            "questions, so there are no examples"
        )
    # 2. Questions to ask, and the nearest examples of each.
    options = IclOptions(
        examples=learning.examples,
        fields=records.fields or {},
        progress=bool(setup.options.progress),
        calls=setup.options.calls,
    )
    if learning.questions is None:
        questions = [question_of(sample) for sample in answers.question_samples]
    else:
        questions, _ = read_questions(learning.questions, options)
    # The same questions serve as examples in all arms; only their answers differ.
    embedder = setup.embedder or DEFAULT_EMBEDDER
    nearest_rows = find_examples(questions, choose_targets(pool, SCORE), embedder, options)
    # 3. Prompts of all arms, and the answers to them.
    model = resolve.chat(learning.model)
    # The vanilla arm has the same prompt without examples.
    files = {
        VANILLA: _write_prompts(out / VANILLA, [with_prompt(sample, ()) for sample in questions])
    }
    for arm, way in ways.items():
        chosen = {
            question.text: Example.of(question, choose_best(question, way)) for question in pool
        }
        prompts = [
            with_prompt(sample, [chosen[example.question] for example in row])
            for sample, row in zip(questions, nearest_rows, strict=True)
        ]
        files[arm] = _write_prompts(out / arm, prompts)
    answer_files = {
        arm: _generate_answers(path, model, learning, setup) for arm, path in files.items()
    }
    notes.append(
        f"{amount(len(pool), 'question')} used as examples; {amount(len(questions), 'question')} "
        "asked"
    )
    # 4. Let the judge compare the arms.
    settings = {"model": model.name, "examples": learning.examples}
    return _build_result("fewl-icl", answer_files, out, setup, learning, notes, settings)


def run_sft(
    source: Path, out: Path, setup: FewlSetup, records: RecordSelection, learning: LearningSetup
) -> ExperimentResult:
    """Compare a model fine-tuned on chosen answers with the model before: Table 7.

    All arms train on the same questions and test with the same ones.

    Raises:
        As :func:`run_icl` and ``tune``.
        ValueError: no question is left to train on, or to test with.
    """
    answers, ways, notes = _score_answers(source, out, setup, records)
    answer_files: dict[str, _AnswerFile] = {}
    name = str(learning.model).removeprefix("hf:")
    for arm, way in ways.items():
        targets = choose_targets(answers.questions, way)
        # By the questions' texts: all arms get the same two sides.
        train, test = split_train_test(targets, learning.test_share, setup.options.seed)
        if not train or not test:
            raise UsageError(
                f"the split of {amount(len(targets), 'question')} leaves {len(train)} for "
                f"training and {len(test)} for testing; expected at least one for each (see "
                "--test-share)"
            )
        folder = out / arm
        write_targets(folder, train, test)
        # The folder is named by what it depends on: after a changed option the model is tuned
        # anew.
        tuned = folder / f"tuned-{_hash_inputs(folder / TRAIN, learning.tuning, name)}"
        # A finished training in the folder is not repeated.
        tuned_model = tune(folder / TRAIN, str(learning.model), tuned, learning.tuning)
        notes.append(
            f"{arm}: training loss from {tuned_model.first_loss:.3f} to {tuned_model.last_loss:.3f}"
        )
        answer_files[arm] = _generate_answers(
            folder / QUESTIONS, f"hf:{tuned.resolve()}", learning, setup
        )
    # The test questions of the last arm; they are the same in all arms.
    answer_files[VANILLA] = _generate_answers(
        folder / QUESTIONS, f"hf:{name}", learning, setup, out / VANILLA
    )
    notes.append(f"{amount(len(train), 'question')} for training, {len(test):,} for testing")
    settings = {"model": f"hf:{name}", **asdict(learning.tuning)}
    return _build_result("fewl-sft", answer_files, out, setup, learning, notes, settings)


# Shared by both experiments


@dataclass(frozen=True)
class _AnswerFile:
    """A file of answers, and why some are missing."""

    path: Path
    failed: Mapping[str, str]


def _score_answers(
    source: Path, out: Path, setup: FewlSetup, records: RecordSelection
) -> tuple[CandidateAnswers, dict[str, str], list[str]]:
    """Score all answers by FEWL; return them, the way of choosing by arm, and notes."""
    answers = collect_answers(read_records(source, records), records, every=True)
    samples = [answer.sample for answer in answers]
    has_all_pairs = all(sample.wrong_answers and sample.corrected_answers for sample in samples)
    has_pairs = has_all_pairs or setup.generator is not None
    # Expertise needs wrong and corrected answers, or a model that writes them.
    metric = replace(setup.metric, weights="ours" if has_pairs else "uniform")

    async def run() -> None:
        references, generator = await load_models(setup.references, setup.generator)
        backends = {"references": references, "generator": generator}
        backends |= {"similarity": setup.similarities[0]}
        if any(need.capability == "embed" for need in metric.needs()):
            backends["embedder"] = setup.embedder
        await execute_run(samples, metric, backends, RunFolder(out / "scores"), setup.options)

    with records.report_positions(samples):
        run_anywhere(run)
    single = SINGLE if setup.single is None else f"{SINGLE}:{setup.single}"
    # Only answers with all three values count, so that the arms choose among the same answers.
    scored_answers = read_answers(out / "scores", [SCORE, single, LABEL], metric=Fewl.name)
    notes = [
        f"FEWL has the form `{metric.form}`, the weights `{metric.weights}` and the similarity "
        f"{setup.similarities[0]}"
    ]
    notes.append(
        f"the baseline is the similarity to {scored_answers.reference} alone, without penalty"
    )
    # Counted by value: one answer may lack several.
    missing_count = sum(scored_answers.missing_values.values())
    if missing_count or scored_answers.too_few_answers:
        notes.append(
            f"left out: {amount(missing_count, 'missing value')} of answers, and "
            f"{amount(scored_answers.too_few_answers, 'question')} with too few answers"
        )
    return scored_answers, {"baseline": single, "FEWL": SCORE, "labels": LABEL}, notes


def _write_prompts(folder: Path, prompts: Sequence[Sample]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with open_atomic(folder / "prompts.jsonl", private=False) as file:
        file.writelines(map(encode_sample, prompts))
    return folder / "prompts.jsonl"


def _generate_answers(
    prompts: Path,
    model: resolve.ChatChoice,
    learning: LearningSetup,
    setup: FewlSetup,
    folder: Path | None = None,
) -> _AnswerFile:
    """Return the answers of a model to prompts; a complete file of answers is reused."""
    name = model if isinstance(model, str) else str(getattr(model, "name", model))
    # Changed prompts, settings or model give another file.
    digest = _hash_inputs(prompts, learning.answering.settings(), name)
    out = (folder or prompts.parent) / f"answers-{digest}.jsonl"
    # A file with failures is left without the marker, so that the next call tries them again.
    done_marker = out.with_suffix(".done")
    if done_marker.exists() and out.exists():
        return _AnswerFile(out, {})
    calls = setup.options.calls
    options = GenerateOptions(
        learning.answering, progress=bool(setup.options.progress), calls=calls
    )
    generated = generate(prompts, model, out, options)
    # Without a single answer there is nothing to compare.
    if not generated.written:
        first = next(iter(generated.failed.values()), "no question")
        raise InputError(f"{name} answered none of the questions; reason for the first: {first}")
    if not generated.failed:
        done_marker.touch()
    return _AnswerFile(out, generated.failed)


def _hash_inputs(path: Path, *settings: Any) -> str:
    content = json.dumps([str(setting) for setting in settings]).encode() + path.read_bytes()
    return hashlib.blake2b(content, digest_size=4).hexdigest()


def _build_result(
    name: str,
    answer_files: Mapping[str, _AnswerFile],
    out: Path,
    setup: FewlSetup,
    learning: LearningSetup,
    notes: Sequence[str],
    settings: Mapping[str, Any],
) -> ExperimentResult:
    judge = resolve.chat(learning.judge)
    options = WinRateOptions(
        seed=setup.options.seed, progress=bool(setup.options.progress), calls=setup.options.calls
    )
    rows = []
    left_out = {
        f"{arm}, {key}": reason
        for arm, answer_file in answer_files.items()
        for key, reason in answer_file.failed.items()
    }
    # Each arm against vanilla, and FEWL against the baseline directly, as in Table 6.
    pairs = [(arm, VANILLA) for arm in answer_files if arm != VANILLA]
    if name == "fewl-icl":
        pairs.append(("FEWL", "baseline"))
    for arm, other in pairs:
        # 1. Let the judge compare the two files of answers; its run is stored by their content.
        first, second = answer_files[arm].path, answer_files[other].path
        folder = (
            out / f"judged-{arm}-{other}-{_hash_inputs(first, second.read_bytes(), judge.name)}"
        )
        comparison = win_rate(first, second, judge, folder, options)
        failed = errors_of(RunFolder(folder).assessments().iter_failures())
        left_out |= {f"{arm} against {other}, {key}": error for key, error in failed.items()}
        # 2. One row for each pair, with the failures of the judge left out.
        rows.append(_build_row(arm, other, comparison.summary, PAPER_TABLES[name]))
    return ExperimentResult(
        name,
        TITLES[name],
        COLUMNS,
        rows,
        [*notes, "won, lost: the same verdict in both orders; the win rate leaves ties out"],
        left_out,
        {"judge": judge.name, **settings, "answering": learning.answering.settings()},
    )


def _build_row(arm: str, other: str, summary: Summary, table: int) -> ExperimentRow:
    cells = []
    for key in ("win_share", "loss_share", "tie_share", "win_rate"):
        value, interval = summary.values[key], summary.intervals.get(key)
        text = "–" if value is None else f"{value:.1f}"
        if interval is not None:
            text += f" ({interval[0]:.1f} to {interval[1]:.1f})"
        n = summary.support[key]
        cells.append(Cell(text, {"value": value, "interval": interval, "n": n}))
    # The judge may fail on single questions.
    n = summary.n - summary.failed
    cells.append(Cell(f"{n:,}", {"value": n}))
    return ExperimentRow(f"{arm} against {other}", cells, {"arm": arm, "against": other}, (table,))
