"""A finished run as Python users have it: everything is read from its folder when it is used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trustassay.errors import install
from trustassay.metric import Summary
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import StoredAssessments

if TYPE_CHECKING:
    import pandas

    from trustassay.runs.execute import RunOutcome
    from trustassay.runs.looks import Looks, WorstAnswer
    from trustassay.show.notebook import RunShown


class Run:
    """A finished run; everything is read from its folder when it is used."""

    def __init__(self, folder: RunFolder, outcome: RunOutcome, index: Any = None) -> None:
        """``index`` is that of a data frame's rows that were scored."""
        self._folder = folder
        self._index = index
        self.outcome = outcome
        self.metrics = tuple(outcome.metrics)

    @property
    def path(self) -> Path:
        """The run's folder; without ``out`` it is temporary, and is removed when this object and
        its assessments are no longer referenced.
        """
        return self._folder.path

    @cached_property
    def summary_file(self) -> dict[str, Any]:
        """The content of ``summary.json``."""
        return self._folder.read_summary() or {"metrics": {}}

    @cached_property
    def summaries(self) -> Mapping[str, Summary]:
        """The summary of each metric, with intervals and the samples behind each figure."""
        return {k: Summary(**v) for k, v in self.summary_file["metrics"].items()}

    @property
    def summary(self) -> Mapping[str, Mapping[str, float | int | None]]:
        """The figures of each metric: ``run.summary["grounding"]["trust_score"]``."""
        return {name: summary.values for name, summary in self.summaries.items()}

    @property
    def assessments(self) -> StoredAssessments:
        """The assessments in input order, a sequence that is read from disk."""
        return self._folder.assessments()

    @property
    def calibrated(self) -> Mapping[str, Any] | None:
        """What the calibrator found, ``None`` without one: how many answers it accepts, and whether
        the run is like the one that it was made from. ``to_pandas`` has each answer's probability.
        """
        from trustassay.runs.probabilities import CALIBRATED

        return self.summary_file.get(CALIBRATED)

    def looks(self, most: int = 5) -> Looks:
        """Return how many answers need a look, and the worst ``most`` of them."""
        from trustassay.runs.looks import looks_of

        return looks_of(self._folder, self.metrics, most)

    def worst(self, n: int = 5) -> list[WorstAnswer]:
        """Return the ``n`` answers that need a look most, the worst first, each with its reason.

        An answer needs a look if a metric says so by its line, or if it could not be scored; those
        come last. Of a metric without a line the worst scores come first.
        """
        return list(self.looks(n).worst)

    def __repr__(self) -> str:
        """The sentence on the answers that need a look, the headline figures, and the folder."""
        from trustassay.show.notebook import as_text

        return as_text(self._shown(0))

    def _repr_html_(self) -> str:
        """What a notebook shows: the same as a table, the scores as a picture, the worst answers.

        Every text of the samples is escaped.
        """
        from trustassay.show.notebook import as_html

        return as_html(self._shown(5))

    def _shown(self, worst: int) -> RunShown:
        from trustassay.runs.looks import short
        from trustassay.runs.report import judge_of
        from trustassay.show.notebook import MetricShown, RunShown, WorstShown

        found = self.looks(worst)
        settings = self._folder.read_run()
        judge = judge_of(settings, self.summary_file) if settings else None
        return RunShown(
            str(self.path),
            found.sentence(),
            [
                MetricShown(
                    metric,
                    self.summaries[metric.name],
                    found.verdicts[metric.name],
                    found.scores[metric.name],
                )
                for metric in self.metrics
            ],
            [WorstShown(a.id, short(a.question, 240), a.verdict, a.reason) for a in found.worst],
            judge.note if judge else "",
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Return the assessments as a table: ``id``, ``question``, ``response``, what was found.

        That of a pandas frame has the frame's index, unless more than 1,000 rows were skipped.

        Raises:
            ImportError: pandas is not installed; the message says how to install it.
        """
        try:
            import pandas
        except ImportError as error:
            words = f"to_pandas needs pandas, which is not installed: {install('pandas')}"
            raise ImportError(words) from error
        import arro3.io

        table = arro3.io.read_parquet(self._folder.parquet_path).read_all()
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        places: dict[str, int] = {}
        texts: dict[str, list[Any]] = {"question": [], "response": []}
        for place, record in enumerate(self._folder.sample_records()):
            places[record["id"]] = place
            for name, found in texts.items():
                found.append(record.get(name))
        rows = [places[one] for one in columns["id"]]
        shown = {name: [found[row] for row in rows] for name, found in texts.items()}
        frame = pandas.DataFrame({"id": columns.pop("id"), **shown, **columns})
        return frame if self._index is None else frame.set_axis(self._index.take(rows))

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report page, to ``path`` or into the run's folder, and return where it is."""
        from trustassay.runs.report import write_report

        write_report(self._folder, self.metrics)
        if path is None:
            return self._folder.report_path
        return Path(shutil.copyfile(self._folder.report_path, path))
