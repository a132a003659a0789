"""``trustassay papers experiment``: the experiments of papers, by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from trustassay.cli import common
from trustassay.cli.options import Only, list_given_flags, with_options
from trustassay.errors import UnknownNameError, UsageError, did_you_mean
from trustassay.report.terminal import one_line, print_json, say, show_table
from trustassay.runs.options import (
    BACKEND,
    INPUT,
    MODELS,
    OUTPUT,
    Flag,
    MaxTokens,
    RecordOptions,
    Seed,
    SpendingOptions,
    group_backends,
)

if TYPE_CHECKING:
    from trustassay.papers.experiments.answers import RecordSelection
    from trustassay.papers.experiments.learning import LearningSetup
    from trustassay.papers.experiments.measuring import FewlSetup
    from trustassay.papers.experiments.results import ExperimentResult
    from trustassay.runs.intake import RunOptions


@dataclass(frozen=True)
class ReferenceOptions:
    """Who is asked, and by what answers are compared."""

    reference: Annotated[
        list[str],
        Flag(
            "--reference",
            "A reference model, whose answers the others are compared with. A URI as for score "
            "--model; may be given more than once. Without it, the input needs `references`.",
            metavar="[NAME=]URI",
            group=MODELS,
        ),
    ] = field(default_factory=list)
    answers: Annotated[
        int,
        Flag(
            "--answers",
            "Number of different answers to ask of each reference.",
            group=INPUT,
            least=1,
        ),
    ] = 1
    backend: Annotated[list[str], BACKEND] = field(default_factory=list)
    pairs: Annotated[
        int,
        Flag(
            "--pairs",
            "Maximum number of wrong and of corrected answers used for a question.",
            least=1,
            rare=True,
        ),
    ] = 25
    embedder: Annotated[
        str | None,
        Flag(
            "--embedder",
            "The embedding model that finds neighbouring questions: embedded (the default), "
            "openai:MODEL[@BASE_URL], hf:ID-or-path.",
            metavar="URI",
            group=MODELS,
        ),
    ] = None
    neighbours: Annotated[
        int,
        Flag("--neighbours", "Number of neighbouring questions in a penalty.", least=1, rare=True),
    ] = 10
    max_similarity: Annotated[
        float,
        Flag(
            "--max-similarity",
            "Questions with at least this cosine are too similar to be neighbours.",
            rare=True,
        ),
    ] = 0.8
    weight_temperature: Annotated[
        float,
        Flag(
            "--weight-temperature",
            "Temperature of the references' weights; a higher one makes them more equal.",
            rare=True,
        ),
    ] = 1.0
    single: Annotated[
        str | None,
        Flag(
            "--single",
            "The reference to use where only one is used. Default: the first one.",
            metavar="NAME",
            rare=True,
        ),
    ] = None

    @property
    def roles(self) -> Mapping[str, list[str]]:
        """The backends by role; raise UsageError for a role that no experiment has."""
        return group_backends(self.backend, ("generator", "similarity"))

    @property
    def similarities(self) -> list[str]:
        """The similarities; each gives a block of rows."""
        return self.roles.get("similarity", ["cosine"])

    @property
    def generator(self) -> str | None:
        """The model that writes wrong and corrected answers, where the input has none."""
        return self.roles.get("generator", [None])[-1]

    def settings(self) -> dict[str, Any]:
        """Return all options, which name the default folder."""
        options = dataclasses.asdict(self)
        del options["backend"]
        return options | {"generator": self.generator, "similarity": self.similarities}

    def build_setup(self, options: RunOptions) -> FewlSetup:
        """Return the settings of an experiment; raise ValueError for options that do not fit."""
        from trustassay.metrics.fewl import Fewl
        from trustassay.papers.experiments.measuring import FewlSetup

        return FewlSetup(
            references=self.reference,
            generator=self.generator,
            embedder=self.embedder,
            # The same similarity twice would give the same rows twice.
            similarities=tuple(dict.fromkeys(self.similarities)),
            metric=Fewl(
                temperature=self.weight_temperature,
                neighbours=self.neighbours,
                max_similarity=self.max_similarity,
                pairs=self.pairs,
                answers=self.answers,
            ),
            single=self.single,
            options=options,
        )


@dataclass(frozen=True)
class OwnOptions:
    """Options of some experiments: :data:`OPTIONS_OF` says of which."""

    model: Annotated[
        list[str],
        Flag(
            "--model",
            "five-choice, fewl-icl: a model that answers, a URI as for score. fewl-sft: the "
            "model to tune, hf:ID or a folder. Only five-choice takes more than one.",
            metavar="[NAME=]URI",
            group=MODELS,
        ),
    ] = field(default_factory=list)
    judge: Annotated[
        str | None,
        Flag(
            "--judge",
            "fewl-icl, fewl-sft: the judge of the win rates, a URI as for score. "
            "fewl-neighbours: the judge of the neighbours' answers. Without it, an answer is "
            "right or wrong if the input lists the same words as a right or wrong answer.",
            metavar="URI",
            group=MODELS,
        ),
    ] = None
    agrees: Annotated[
        float,
        Flag(
            "--agrees",
            "fewl-experts: minimum similarity at which a reference agrees with another answer.",
            rare=True,
        ),
    ] = 0.8
    rubric: Annotated[
        str,
        Flag(
            "--rubric",
            "fewl-neighbours: the judge's rubric, a name or a file. It must have two levels.",
            rare=True,
        ),
    ] = "verdict"
    of: Annotated[
        str,
        Flag(
            "--of",
            "fewl-neighbours: the answers to judge, best (those in the input) or references.",
            rare=True,
        ),
    ] = "best"
    outputs: Annotated[
        list[str],
        Flag(
            "--outputs",
            "five-choice: haltt4llm's published results of a model. May be given more than once.",
            metavar="NAME=FILE",
            rare=True,
        ),
    ] = field(default_factory=list)
    shuffle: Annotated[
        bool, Flag("--shuffle", "five-choice: show the choices in a random order.", rare=True)
    ] = False
    questions: Annotated[
        Path | None,
        Flag(
            "--questions", "fewl-icl: the questions to ask. Default: those of the input.", rare=True
        ),
    ] = None
    examples: Annotated[
        int, Flag("--examples", "fewl-icl: number of examples in a prompt.", least=1, rare=True)
    ] = 5
    max_tokens: MaxTokens = 300
    full: common.FullTraining = False
    epochs: common.Epochs = 10.0
    steps: common.TrainingSteps = None
    batch: common.BatchSize = 8
    learning_rate: common.LearningRate = None
    test_share: common.TestShare = 0.2


OPTIONS_OF: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("fewl-pairs", "fewl-best", "fewl-rank", "fewl-samples"), ()),
    "fewl-experts": ("--agrees",),
    "fewl-neighbours": ("--judge", "--rubric", "--of"),
    "five-choice": ("--model", "--outputs", "--shuffle"),
    "fewl-icl": ("--model", "--judge", "--questions", "--examples", "--max-tokens"),
    "fewl-sft": (
        *("--model", "--judge", "--full", "--epochs", "--steps", "--batch", "--learning-rate"),
        *("--test-share", "--max-tokens"),
    ),
}
"""All experiments, and the flags of :class:`OwnOptions` that each reads."""


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """How an experiment is carried out, and where its table goes."""

    records: Annotated[RecordOptions, Only("limit", "fields", "sheet", "skip_bad")]
    spending: Annotated[SpendingOptions, Only("budget")]
    out: Annotated[
        Path | None,
        Flag(
            "--out",
            "Folder for the table and for the runs behind it.",
            group=OUTPUT,
        ),
    ] = None
    seed: Seed
    as_json: common.Json = False

    def run_fewl_experiment(
        self,
        name: str,
        experiment: Callable[..., Coroutine[Any, Any, ExperimentResult]],
        source: Path,
        references: ReferenceOptions,
        **arguments: Any,
    ) -> None:
        """Run an experiment on FEWL, and show its table.

        ``arguments`` are passed to the experiment; they are also part of its default folder's name.
        """
        from trustassay.core.event_loop import run_anywhere

        folder = self.choose_folder(name, source, references.settings() | arguments)
        # Options are checked here, before a model is loaded.
        setup, read = references.build_setup(self.build_run_options()), self.select_records()
        result = run_anywhere(lambda: experiment(source, folder, setup, read, **arguments))
        self.show(result, read, folder)

    def build_run_options(self) -> RunOptions:
        """Return the options of the experiment's runs."""
        from trustassay.runs.intake import build_run_options

        # Missing keys are options that the user did not set.
        skip = self.records.get("skip_bad", False)
        return build_run_options(
            seed=self.seed, skip_bad=skip, progress=True, first_verdict=False, **self.spending
        )

    def select_records(self) -> RecordSelection:
        """Return the part of the input that is read."""
        from trustassay.papers.experiments.answers import RecordSelection

        return RecordSelection.of_options(self.records)

    def choose_folder(self, name: str, source: Path, settings: Mapping[str, Any]) -> Path:
        """Return the experiment's folder; by default its name follows from the settings.

        Raises:
            RunFolderError: the folder holds the table of another experiment.
        """
        from trustassay.errors import RunFolderError
        from trustassay.runs.folder import RunFolder
        from trustassay.runs.intake import default_folder

        if self.out is not None:
            stored_name = (RunFolder(self.out).read_json("experiment") or {}).get(
                "experiment", name
            )
            # The table of another experiment would be overwritten.
            if stored_name != name:
                message = f"holds the experiment {stored_name}, not {name}; choose another --out"
                raise RunFolderError(f"{self.out}: {message}")
            return self.out
        # Everything that changes the result, so that two experiments never share a folder.
        fields = [f"{name}={field}" for name, field in self.records.get("fields", {}).items()]
        run_settings = {
            "limit": self.records.get("limit"),
            "field": fields,
            "seed": self.seed,
            **settings,
        }
        run_settings |= {"sheet": self.records["sheet"]} if "sheet" in self.records else {}
        run_settings["skip_bad"] = self.records.get("skip_bad", False)
        default = default_folder(source, experiment=name, **run_settings)
        # The name of the experiment first, so that folders are found in a listing.
        return default.with_name(f"{name}-{default.name}")

    def show(self, result: ExperimentResult, read: RecordSelection, folder: Path) -> None:
        """Write a result into its folder, and print it."""
        # Known only after everything was read.
        result = result.with_skipped(len(read.skipped))
        result.write(folder)
        headings, rows = result.to_texts()
        say(one_line(result.title))
        show_table(headings, rows, (), wide=True)
        for note in result.notes:
            say(one_line(note))
        say(f"table:  {folder / 'experiment.md'}")
        # The page exists only with drawings.
        if result.drawings:
            say(f"page:   {folder / 'experiment.html'}")
        if self.as_json:
            print_json(result.to_dict())


@with_options
def experiment(
    name: Annotated[str, Flag("NAME", "The name of an experiment listed above.")],
    source: Annotated[
        Path,
        Flag(
            "INPUT",
            "Answers or questions, in the formats of score. CHALE, TruthfulQA, HaluEval and "
            "haltt4llm are read as published.",
        ),
    ],
    *,
    special: OwnOptions,
    references: ReferenceOptions,
    running: ExperimentOptions,
) -> None:
    """Repeat an experiment of a paper on your data and with your models.

    Every reply is stored. Run the same command again to continue after an interruption. An option
    that the experiment does not use is an error. Tables and figures are those of the FEWL paper.

    \b
    fewl-pairs       right answers against wrong ones: Tables 1, 2, 8, 10 to 12
    fewl-best        questions whose best answer scores highest: Tables 3, 9
    fewl-rank        models (the field `model`) by mean score: Table 4
    fewl-samples     two models' answers to each question, in order: Table 5; the
                     input needs `model`, `answers` and `incorrect_answers`
    fewl-experts     how many pairs each reference distinguishes, and the
                     distribution of its weights: Figures 3, 4, appendix C.5; the
                     input may have `reference_ratings`, {name: number}
    fewl-neighbours  answers to neighbouring questions, judged as answers to the
                     question itself: Figure 2
    five-choice      the accuracies of Table 4, from questions with choices;
                     its answers.jsonl is an input of fewl-rank
    fewl-icl         answers with examples that FEWL chooses against answers
                     without examples: Table 6
    fewl-sft         a model tuned on answers that FEWL chooses against the
                     untuned model: Table 7; needs pip install '.[papers]'

    \b
    trustassay papers experiment fewl-pairs qa_data.json \\
        --reference openai:gpt-4o-mini --answers 5 \\
        --backend generator=openai:gpt-4o-mini \\
        --backend similarity=cosine --backend similarity=novel
    trustassay papers experiment fewl-neighbours TruthfulQA.csv \\
        --judge openai:gpt-4o
    trustassay papers experiment five-choice truthfulqa_trivia_questions.json \\
        --model openai:gpt-4o-mini --shuffle
    trustassay papers experiment fewl-sft TruthfulQA.csv \\
        --reference openai:gpt-4o-mini --answers 5 \\
        --model hf:facebook/opt-1.3b --judge openai:gpt-4o
    """
    from trustassay.papers.experiments import experts, fewl, neighbours

    _refuse_other_options(name, special, references)
    # 1. The experiments that score given answers.
    scorings: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "fewl-pairs": (fewl.compare_pairs, {}),
        "fewl-best": (fewl.count_best_answers, {}),
        "fewl-rank": (fewl.rank_models_by_score, {}),
        "fewl-samples": (fewl.order_samples, {}),
        "fewl-experts": (experts.measure_experts, {"agrees": special.agrees}),
        "fewl-neighbours": (
            neighbours.judge_neighbours,
            {"judge": special.judge, "rubric": special.rubric, "of": special.of},
        ),
    }
    if name in scorings:
        work, arguments = scorings[name]
        running.run_fewl_experiment(name, work, source, references, **arguments)
    # 2. Those that ask or train a model.
    elif name == "five-choice":
        _run_five_choice(source, special, references.reference, running)
    else:
        _run_learning_experiment(name, source, special, references, running)


def _refuse_other_options(name: str, special: OwnOptions, references: ReferenceOptions) -> None:
    """Refuse an unknown experiment, an option that it does not read, or one that it lacks."""
    if name not in OPTIONS_OF:
        raise UnknownNameError(did_you_mean("experiment", name, OPTIONS_OF))
    flags = [flag for flag in list_given_flags(special) if flag not in OPTIONS_OF[name]]
    if name == "five-choice":
        # Nothing is compared: of the references only the models count.
        flags += [flag for flag in list_given_flags(references) if flag != "--reference"]
    if flags:
        raise UsageError(f"{flags[0]}: has no effect with {name}")
    if name in ("fewl-icl", "fewl-sft"):
        if len(special.model) != 1:
            raise UsageError(f"{name}: needs exactly one --model, got {len(special.model)}")
        if special.judge is None:
            raise UsageError(f"{name}: needs --judge")


def _run_five_choice(
    source: Path, special: OwnOptions, reference: list[str], running: ExperimentOptions
) -> None:
    from trustassay.core.event_loop import run_anywhere
    from trustassay.papers.experiments import choices as asking

    choice_setup = asking.FiveChoiceSetup(
        special.model,
        _parse_files(special.outputs),
        reference,
        special.shuffle,
        running.build_run_options(),
    )
    # Everything that changes the result is part of the default folder's name.
    settings = {
        "model": special.model,
        "outputs": special.outputs,
        "reference": reference,
        "shuffle": special.shuffle,
    }
    folder = running.choose_folder("five-choice", source, settings)
    # `read` collects the records that were skipped, for the closing lines.
    work, read = asking.run_five_choice, running.select_records()
    result = run_anywhere(lambda: work(source, folder, choice_setup, read))
    running.show(result, read, folder)


def _parse_files(outputs: Sequence[str]) -> dict[str, Path]:
    """Return files by the name of their model.

    Raises:
        ValueError: one is not NAME=FILE, or two have the same name.
    """
    files: dict[str, Path] = {}
    for option in outputs:
        name, _, path = option.partition("=")
        if not (name and path):
            raise UsageError(f"--outputs {option}: expected NAME=FILE")
        # The name is the model of its rows.
        if name in files:
            raise UsageError(
                f"--outputs: two files are called {name!r}; give each a different name"
            )
        files[name] = Path(path)
    return files


def _run_learning_experiment(
    name: str,
    source: Path,
    special: OwnOptions,
    references: ReferenceOptions,
    running: ExperimentOptions,
) -> None:
    from trustassay.papers.experiments import learning
    from trustassay.papers.tune import TuneOptions
    from trustassay.runs.answering import Answering

    model, judge, answering = (
        special.model[0],
        str(special.judge),
        Answering(max_tokens=special.max_tokens),
    )
    settings = {"model": model, "judge": judge, "max_tokens": str(special.max_tokens)}
    learning_setup: LearningSetup
    if name == "fewl-icl":
        work = learning.run_icl
        learning_setup = learning.LearningSetup(
            model, judge, answering, special.examples, special.questions
        )
        settings |= {"questions": str(special.questions), "examples": str(special.examples)}
    else:
        work = learning.run_sft
        # By position: the first options of the dataclass are those of the command.
        tuning = TuneOptions(
            *(special.full, special.epochs, special.steps, special.batch, special.learning_rate),
            seed=running.seed,
            progress=True,
        )
        learning_setup = learning.LearningSetup(
            model, judge, answering, tuning=tuning, test_share=special.test_share
        )
        settings |= {"tuning": str(tuning), "test_share": str(special.test_share)}
    # The default folder depends on all options, so a changed one starts a new experiment.
    folder = running.choose_folder(name, source, references.settings() | settings)
    read = running.select_records()
    setup = references.build_setup(running.build_run_options())
    running.show(work(source, folder, setup, read, learning_setup), read, folder)
