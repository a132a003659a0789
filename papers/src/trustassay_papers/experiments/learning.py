"""What chosen answers are good for: examples in a prompt, and targets of fine-tuning.

Wei et al. 2024, sections 5.1 and 5.2: Tables 6 and 7. The arms differ in nothing but the way by
which the best answer of a question is chosen: FEWL's score, likeness to one reference (the
baseline), or the label. Each arm's answers are compared with those of the model as it was
(vanilla), by a judge, in both orders.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from trustassay.answering import Answering
from trustassay.backends import DEFAULT_EMBEDDER, resolve
from trustassay.data.records import InputError
from trustassay.errors import UsageError
from trustassay.event_loop import run_anywhere
from trustassay.files import whole
from trustassay.metric import Summary
from trustassay.metrics.fewl import Fewl
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import encoded_sample
from trustassay.sample import Sample
from trustassay.workflows.generate import GenerateOptions, generate
from trustassay.workflows.preferences import WinRateOptions, win_rate
from trustassay_papers.experiments.answers import Records, answers_of, read_records
from trustassay_papers.experiments.measuring import Setup, execute_run, load_models
from trustassay_papers.experiments.results import Cell, Result, Row
from trustassay_papers.select import (
    Answers,
    Example,
    IclOptions,
    Question,
    best,
    choose_targets,
    nearest_examples,
    read_answers,
    split,
)
from trustassay_papers.select.answers import LABEL, SCORE, SINGLE
from trustassay_papers.select.writing import (
    QUESTIONS,
    TRAIN,
    question_of,
    question_vectors,
    read_questions,
    with_prompt,
    write_targets,
)
from trustassay_papers.tune import TuneOptions, tune

VANILLA = "vanilla"
TABLES = {"fewl-icl": 6, "fewl-sft": 7}
COLUMNS = ("won, %", "lost, %", "tied, %", "win rate, %", "questions")


@dataclass(frozen=True)
class Asked:
    """Who answers and who judges.

    model, judge: as of ``generate`` and ``compare --judge``; the model of ``sft`` is a folder or
    ``hf:ID``. answering: how the model is asked. examples: in a prompt of ``icl``. questions: of
    ``icl``, in place of those of the input. tuning, test_share: of ``sft``.
    """

    model: Any
    judge: Any
    answering: Answering = field(default_factory=Answering)
    examples: int = 5
    questions: Path | None = None
    tuning: TuneOptions = field(default_factory=TuneOptions)
    test_share: float = 0.2


def icl(source: Path, out: Path, setup: Setup, records: Records, asked: Asked) -> Result:
    """Hold answers after examples in the prompt against answers without: Table 6.

    Examples are questions for which FEWL and the baseline choose different answers.

    Raises:
        InputError: no such question is there, or no answer could be scored.
        As :func:`~trustassay_papers.experiments.fewl.best`, ``generate`` and ``win_rate``.
    """
    answers, ways, notes = _scored(source, out, setup, records)
    pool = [q for q in answers.questions if best(q, SCORE).text != best(q, ways["baseline"]).text]
    if not pool:
        raise InputError(
            f"FEWL and the baseline choose the same answer to all {len(answers.questions):,} "
            "questions, so there are no examples"
        )
    options = IclOptions(
        fields=records.fields or {},
        progress=bool(setup.options.progress),
        calls=setup.options.calls,
    )
    if asked.questions is None:
        questions = [question_of(sample) for sample in answers.asked]
    else:
        questions, _ = run_anywhere(lambda: read_questions(_existing(asked), options))
    near = _nearest(questions, pool, setup, asked, options)
    model = resolve.chat(asked.model)
    files = {VANILLA: _prompts(out / VANILLA, [with_prompt(one, ()) for one in questions])}
    for arm, way in ways.items():
        chosen = {question.text: Example.of(question, best(question, way)) for question in pool}
        shown = [[chosen[text] for text in row] for row in near]
        prompts = [with_prompt(*both) for both in zip(questions, shown, strict=True)]
        files[arm] = _prompts(out / arm, prompts)
    made = {arm: _answers(path, model, asked, setup) for arm, path in files.items()}
    notes.append(f"{len(pool):,} questions are examples; {len(questions):,} questions were asked")
    pairs = [(arm, VANILLA) for arm in ways] + [("FEWL", "baseline")]
    title = "Win rates of answers after chosen examples"
    told = {"model": model.name, "examples": asked.examples}
    return _result("fewl-icl", title, made, pairs, out, setup, asked, notes, told)


def sft(source: Path, out: Path, setup: Setup, records: Records, asked: Asked) -> Result:
    """Hold a model's answers after fine-tuning on chosen answers against those before: Table 7.

    All arms have the same questions to train on and to test with.

    Raises:
        As :func:`icl` and ``tune``; ValueError: no question is left to train on, or to test with.
    """
    answers, ways, notes = _scored(source, out, setup, records)
    made: dict[str, _Made] = {}
    name = str(asked.model).removeprefix("hf:")
    for arm, way in ways.items():
        targets = choose_targets(answers.questions, way)
        train, test = split(targets, asked.test_share, setup.options.seed)
        if not train or not test:
            raise UsageError(
                f"{len(train)} questions to train on and {len(test)} to test with, of "
                f"{len(targets)}; expected one of each at least"
            )
        folder = out / arm
        write_targets(folder, train, test)
        tuned = folder / f"tuned-{_digest(folder / TRAIN, asked.tuning, name)}"
        found = tune(folder / TRAIN, str(asked.model), tuned, asked.tuning)
        notes.append(f"{arm}: loss {found.first_loss:.3f} to {found.last_loss:.3f}")
        made[arm] = _answers(folder / QUESTIONS, f"hf:{tuned.resolve()}", asked, setup)
    made[VANILLA] = _answers(folder / QUESTIONS, f"hf:{name}", asked, setup, out / VANILLA)
    notes.append(f"{len(train):,} questions to train on, {len(test):,} to test with")
    title = "Win rates of a model tuned on chosen answers over the model as it was"
    pairs = [(arm, VANILLA) for arm in ways]
    told = {"model": f"hf:{name}", **asdict(asked.tuning)}
    return _result("fewl-sft", title, made, pairs, out, setup, asked, notes, told)


# What both have in common -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Made:
    """A file of answers, and why some are missing."""

    path: Path
    failed: Mapping[str, str]


def _scored(
    source: Path, out: Path, setup: Setup, records: Records
) -> tuple[Answers, dict[str, str], list[str]]:
    """Score all answers of the input by FEWL; return them, the ways of the arms, and notes."""
    answers = answers_of(read_records(source, records), records, every=True)
    samples = [one.sample for one in answers]
    ready = all(one.wrong_answers and one.corrected_answers for one in samples)
    known = ready or setup.generator is not None
    metric = replace(setup.metric, weights="ours" if known else "uniform")

    async def run() -> None:
        references, generator = await load_models(setup.references, setup.generator)
        named = {"references": references, "generator": generator}
        named |= {"similarity": setup.similarities[0]}
        if any(need.capability == "embed" for need in metric.needs()):
            named["embedder"] = setup.embedder
        await execute_run(samples, metric, named, RunFolder(out / "scores"), setup.options)

    with records.placing(samples):
        run_anywhere(run)
    single = SINGLE if setup.single is None else f"{SINGLE}:{setup.single}"
    found = read_answers(out / "scores", [SCORE, single, LABEL], metric=Fewl.name)
    notes = [
        f"FEWL of the form `{metric.form}` with the weights `{metric.weights}` and the similarity "
        f"{setup.similarities[0]}"
    ]
    notes.append(f"the baseline is likeness to {found.reference} alone, without penalty")
    lost = sum(found.without.values())
    if lost or found.alone:
        words = f"{lost:,} values that answers lack, {found.alone:,} questions with too few answers"
        notes.append(f"left out: {words}")
    return found, {"baseline": single, "FEWL": SCORE, "labels": LABEL}, notes


def _existing(asked: Asked) -> Path:
    assert asked.questions is not None
    return asked.questions


def _nearest(
    questions: Sequence[Sample],
    pool: Sequence[Question],
    setup: Setup,
    asked: Asked,
    options: IclOptions,
) -> list[list[str]]:
    """Return the texts of the examples' questions for each question, nearest first."""
    examples = choose_targets(pool, SCORE)
    texts = [*(one.question for one in questions), *(one.question for one in examples)]
    embedder = setup.embedder or DEFAULT_EMBEDDER
    vectors = run_anywhere(lambda: question_vectors(texts, embedder, options))
    cut = len(questions)
    near = nearest_examples(texts[:cut], vectors[:cut], examples, vectors[cut:], asked.examples)
    return [[one.question for one in row] for row in near]


def _prompts(folder: Path, prompts: Sequence[Sample]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with whole(folder / "prompts.jsonl") as file:
        file.writelines(map(encoded_sample, prompts))
    return folder / "prompts.jsonl"


def _answers(
    prompts: Path, model: resolve.ChatChoice, asked: Asked, setup: Setup, folder: Path | None = None
) -> _Made:
    """Return the answers of a model to prompts; those that are all there are not asked again."""
    name = model if isinstance(model, str) else str(getattr(model, "name", model))
    digest = _digest(prompts, asked.answering.settings(), name)
    out = (folder or prompts.parent) / f"answers-{digest}.jsonl"
    done = out.with_suffix(".done")
    if done.exists() and out.exists():
        return _Made(out, {})
    calls = setup.options.calls
    options = GenerateOptions(asked.answering, progress=bool(setup.options.progress), calls=calls)
    found = generate(prompts, model, out, options)
    if not found.written:
        first = next(iter(found.failed.values()), "no question")
        raise InputError(f"{name} answered none of the questions; the first: {first}")
    if not found.failed:
        done.touch()
    return _Made(out, found.failed)


def _digest(path: Path, *settings: Any) -> str:
    content = json.dumps([str(one) for one in settings]).encode() + path.read_bytes()
    return hashlib.blake2b(content, digest_size=4).hexdigest()


def _result(  # noqa: PLR0913 - what a table is made of
    name: str,
    title: str,
    made: Mapping[str, _Made],
    pairs: Sequence[tuple[str, str]],
    out: Path,
    setup: Setup,
    asked: Asked,
    notes: Sequence[str],
    settings: Mapping[str, Any],
) -> Result:
    judge = resolve.chat(asked.judge)
    options = WinRateOptions(
        seed=setup.options.seed, progress=bool(setup.options.progress), calls=setup.options.calls
    )
    rows = []
    left_out = {
        f"{arm}, {key}": why for arm, one in made.items() for key, why in one.failed.items()
    }
    for arm, other in pairs:
        first, second = made[arm].path, made[other].path
        folder = out / f"judged-{arm}-{other}-{_digest(first, second.read_bytes(), judge.name)}"
        found = win_rate(first, second, judge, folder, options)
        failed = {one.id: one.error for one in RunFolder(folder).assessments().failed()}
        left_out |= {f"{arm} against {other}, {key}": str(why) for key, why in failed.items()}
        rows.append(_row(arm, other, found.summary, TABLES[name]))
    return Result(
        name,
        title,
        COLUMNS,
        rows,
        [*notes, "won and lost: in both orders of the judge; the rate leaves ties out"],
        left_out,
        {"judge": judge.name, **settings, "answering": asked.answering.settings()},
    )


def _row(arm: str, other: str, summary: Summary, table: int) -> Row:
    cells = []
    for key in ("win_share", "loss_share", "tie_share", "win_rate"):
        value, interval = summary.values[key], summary.intervals.get(key)
        text = "–" if value is None else f"{value:.1f}"
        if interval is not None:
            text += f" ({interval[0]:.1f} to {interval[1]:.1f})"
        n = summary.support[key]
        cells.append(Cell(text, {"value": value, "interval": interval, "n": n}))
    n = summary.n - summary.failed
    cells.append(Cell(f"{n:,}", {"value": n}))
    return Row(f"{arm} against {other}", cells, {"arm": arm, "against": other}, (table,))
