"""What all commands of ``trustassay experiment`` share: options, folder, and the table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from trustassay.cli import common
from trustassay.cli.options import Records, Spending
from trustassay.cli.references import References
from trustassay.show.terminal import one_line, print_json, say, show_table

if TYPE_CHECKING:
    from trustassay.runs.options import RunOptions
    from trustassay.workflows.experiments.answers import Records as ReadRecords
    from trustassay.workflows.experiments.results import Result

__all__ = ["Running", "Source"]

Source = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="Answers or questions, as of score; CHALE, TruthfulQA, HaluEval and haltt4llm as "
        "published.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Running:
    """How an experiment is carried out, and where its table goes."""

    records: Records
    spending: Spending
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(
            help="The folder of the experiment: its table, and the runs behind it.",
            show_default=False,
        ),
    ] = None
    seed: common.Seed = 0
    as_json: common.Json = False

    def of_fewl(
        self,
        name: str,
        experiment: Callable[..., Coroutine[Any, Any, Result]],
        source: Path,
        references: References,
        **others: Any,
    ) -> None:
        """Carry out an experiment on FEWL, and show its table.

        ``others`` are its own arguments, which give it a default folder of its own, too.
        """
        from trustassay.event_loop import run_anywhere

        folder = self.folder(name, source, dataclasses.asdict(references) | others)
        setup, read = references.setup(self.options()), self.read()
        result = run_anywhere(lambda: experiment(source, folder, setup, read, **others))
        self.show(result, read, folder)

    def options(self) -> RunOptions:
        """Return them as a run's options."""
        from trustassay.runs.options import run_options

        skip = self.records.skip_bad
        return run_options(seed=self.seed, skip_bad=skip, progress=True, **self.spending.keywords())

    def read(self) -> ReadRecords:
        """Return which part of the input is read."""
        from trustassay.workflows.experiments.answers import Records as ReadRecords

        return ReadRecords(**self.records.read())

    def folder(self, name: str, source: Path, settings: Mapping[str, Any]) -> Path:
        """Return the experiment's folder, by default one of its name and settings.

        Raises:
            RunFolderError: the folder holds the table of another experiment.
        """
        from trustassay.errors import RunFolderError
        from trustassay.runs.folder import RunFolder
        from trustassay.runs.naming import default_folder

        if self.out is not None:
            found = (RunFolder(self.out).read_json("experiment") or {}).get("experiment", name)
            if found != name:
                words = f"holds the experiment {found}, not {name}; choose another --out"
                raise RunFolderError(f"{self.out}: {words}")
            return self.out
        own = {**dataclasses.asdict(self.records), "seed": self.seed, **settings}
        found = default_folder(source, experiment=name, **own)
        return found.with_name(f"{name}-{found.name}")

    def show(self, result: Result, read: ReadRecords, folder: Path) -> None:
        """Print a result, write it into its folder; exit with status 1 if samples are left out."""
        result = result.with_skipped(len(read.skipped))
        result.write(folder)
        headings, rows = result.texts()
        say(one_line(result.title))
        show_table(headings, rows, (), wide=True)
        for note in result.notes:
            say(one_line(note))
        say(f"table:  {folder / 'experiment.md'}")
        if result.drawings:
            say(f"page:   {folder / 'experiment.html'}")
        if self.as_json:
            print_json(result.to_dict())
        if result.left_out:
            raise typer.Exit(1)
