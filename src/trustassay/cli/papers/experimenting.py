"""Options, folder and output that all commands of ``trustassay papers experiment`` share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    from trustassay.papers.experiments.measuring import FewlSetup
    from trustassay.runs.intake import RunOptions
import dataclasses
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trustassay.cli import common
from trustassay.report.terminal import one_line, print_json, say, show_table
from trustassay.runs.options import (
    INPUT,
    MODELS,
    OUTPUT,
    Flag,
    RecordOptions,
    Seed,
    SpendingOptions,
)

if TYPE_CHECKING:
    from trustassay.papers.experiments.answers import RecordSelection as ReadRecords
    from trustassay.papers.experiments.results import ExperimentResult
    from trustassay.runs.intake import RunOptions


@dataclass(frozen=True)
class ReferenceOptions:
    """Who is asked, and by what answers are compared."""

    reference: Annotated[
        list[str],
        Flag(
            "--reference",
            "A model whose answers are compared, a URI as for score --model. May be given "
            "more than once. Without one the input has `references`.",
            metavar="[NAME=]URI",
            group=MODELS,
        ),
    ] = field(default_factory=list)
    answers: Annotated[
        int,
        Flag(
            "--answers", "Different answers that each reference is asked for.", group=INPUT, least=1
        ),
    ] = 1
    generator: Annotated[
        str | None,
        Flag(
            "--generator",
            "A model that writes wrong and corrected answers, where the input has none.",
            metavar="URI",
            group=MODELS,
        ),
    ] = None
    pairs: Annotated[
        int, Flag("--pairs", "Wrong and corrected answers that count for a question.", least=1)
    ] = 25
    embedder: Annotated[
        str | None,
        Flag(
            "--embedder",
            "The embedding model by which neighbours are found: embedded (the default), "
            "openai:MODEL[@BASE_URL], hf:ID-or-path.",
            metavar="URI",
            group=MODELS,
        ),
    ] = None
    similarity: Annotated[
        list[str],
        Flag(
            "--similarity",
            "A similarity, as of score; each gives a block of rows. May be given more than once.",
            metavar="URI",
            group=MODELS,
        ),
    ] = field(default_factory=lambda: ["cosine"])
    neighbours: Annotated[int, Flag("--neighbours", "Questions behind a penalty.", least=1)] = 10
    max_similarity: Annotated[
        float,
        Flag("--max-similarity", "Cosine from which questions are too alike to be neighbours."),
    ] = 0.8
    weight_temperature: Annotated[
        float,
        Flag("--weight-temperature", "Divides the expertise before its exponential is taken."),
    ] = 1.0
    single: Annotated[
        str | None,
        Flag(
            "--single",
            "The reference that counts where one alone does. Default: the first one.",
            metavar="NAME",
        ),
    ] = None

    def build_setup(self, options: RunOptions) -> FewlSetup:
        """Return the settings of an experiment; raise ValueError for options that do not fit."""
        from trustassay.metrics.fewl import Fewl
        from trustassay.papers.experiments.measuring import FewlSetup

        return FewlSetup(
            references=self.reference,
            generator=self.generator,
            embedder=self.embedder,
            # The same similarity twice would give the same rows twice.
            similarities=tuple(dict.fromkeys(self.similarity)),
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


Source = Annotated[
    Path,
    Flag(
        "INPUT",
        "Answers or questions, as of score; CHALE, TruthfulQA, HaluEval and haltt4llm as "
        "published.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """How an experiment is carried out, and where its table goes."""

    records: RecordOptions
    spending: SpendingOptions
    out: Annotated[
        Path | None,
        Flag(
            "--out",
            "The folder of the experiment: its table, and the runs behind it.",
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

        folder = self.choose_folder(name, source, dataclasses.asdict(references) | arguments)
        # Options are checked here, before a model is loaded.
        setup, read = references.build_setup(self.build_run_options()), self.select_records()
        result = run_anywhere(lambda: experiment(source, folder, setup, read, **arguments))
        self.show(result, read, folder)

    def build_run_options(self) -> RunOptions:
        """Return the options of the experiment's runs."""
        from trustassay.runs.intake import build_run_options

        # Missing keys are options that the user did not set.
        skip = self.records.get("skip_bad", False)
        return build_run_options(seed=self.seed, skip_bad=skip, progress=True, **self.spending)

    def select_records(self) -> ReadRecords:
        """Return the part of the input that is read."""
        from trustassay.papers.experiments.answers import RecordSelection as ReadRecords

        return ReadRecords(**self.records)

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
        run_settings["skip_bad"] = self.records.get("skip_bad", False)
        default = default_folder(source, experiment=name, **run_settings)
        # The name of the experiment first, so that folders are found in a listing.
        return default.with_name(f"{name}-{default.name}")

    def show(self, result: ExperimentResult, read: ReadRecords, folder: Path) -> None:
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
