"""``trustassay rank``: models by what became of the same questions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trustassay.cli import common
from trustassay.cli.common import Json, join_sources
from trustassay.cli.options import Only, with_options
from trustassay.cli.results import score_run
from trustassay.report.terminal import (
    one_line,
    print_json,
    results_on_output,
    say,
    show_rows,
)
from trustassay.runs.options import (
    OUTPUT,
    BackendChoices,
    Flag,
    KnownLabelOptions,
    RecordOptions,
    Seed,
)
from trustassay.text.numbers import amount

if TYPE_CHECKING:
    from trustassay.compare.ranking import Ranking


@with_options
def rank(  # noqa: PLR0913 - one argument an option
    sources: Annotated[
        list[str],
        Flag(
            "INPUT...",
            "A run's folder, or files of answers. The models are named in the field `model`, or "
            "each file is a model.",
        ),
    ],
    *,
    metric: common.RankMetric,
    labels: KnownLabelOptions,
    backends: Annotated[BackendChoices, Only("model", "judge", "entailer", "backends")],
    out: Annotated[
        Path | None, Flag("--out", "Folder of the run that scores the answers.", group=OUTPUT)
    ],
    page: common.Page,
    seed: Seed,
    records: RecordOptions,
    as_json: Json,
) -> None:
    """Rank models by their answers to the same questions, with intervals and tests.

    Models are ranked by the share of questions that passed, over the questions that all models were
    asked; a refused question did not pass. For a metric without a pass threshold (fewl, reference)
    they are ranked by the mean score, over the questions for which every model has a score.

    If the answers have labels, the order is compared with the accuracy by these labels.

    \b
    trustassay rank runs/one
    trustassay rank small-model.jsonl large-model.jsonl --metric faithfulness
    trustassay rank answers.jsonl --metric fewl:form=agreement --page ranking.html
    """
    from trustassay.compare import ranking
    from trustassay.compare.corrected import LabelFiles

    folder, name, _ = score_run(
        join_sources(sources), metric, backends, records, out=out, seed=seed
    )
    label_files = LabelFiles.from_options(**labels)
    result = ranking.rank(folder, metric=name, labels=label_files, seed=seed)
    with results_on_output(not as_json):
        _show_ranking(result)
    if page:
        ranking.build_document(result, sources).write(page)
        say(f"page: {page}")
    if as_json:
        print_json(result.to_dict())


def _show_ranking(result: "Ranking") -> None:
    from trustassay.compare import ranking

    # By shares all questions count; by a figure only those that every model has a score for.
    state = "asked of" if result.by_share else "scored for"
    say(
        one_line(
            f"{result.metric.title}: {amount(result.questions, 'question')} {state} all models, "
            f"ranked by {'share ' if result.by_share else ''}{result.by}"
        )
    )
    if result.left_out:
        say(f"excluded: {amount(result.left_out, 'question')} not {state} all models")
    table = ranking.build_table(result)
    show_rows("model", table.columns, table.rows, wide=True)
    for line in ranking.describe_ranking(result):
        say(one_line(line))
