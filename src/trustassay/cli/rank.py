"""``trustassay rank``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.cli.results import scored_run
from trustassay.options import Argument, BackendChoices, Flag, Records, Seed
from trustassay.show.terminal import one_line, print_json, say, show_table

if TYPE_CHECKING:
    from trustassay.statistics.ranking import PairDifference
    from trustassay.workflows.rank import Ranking

MOST = 20
"""Pairs of models that cannot be told apart which are listed."""


@with_options
def rank(  # noqa: PLR0913 - one argument an option
    sources: Annotated[
        list[Path],
        Argument(
            "A run's folder, or answers of several models, told apart by the field model, or "
            "by their files.",
            metavar="INPUT...",
        ),
    ],
    *,
    metric: Annotated[
        str | None,
        Flag(
            "The metric, where the run has several; for answers what to score them with, "
            "as for score. Default: fewl:form=agreement.",
            metavar="NAME[:OPTION=VALUE,...]",
        ),
    ] = None,
    backends: BackendChoices,
    out: Annotated[
        Path | None,
        Flag("The folder of the run that scores answers."),
    ] = None,
    page: Annotated[
        Path | None,
        Flag("Write a page with the ranking drawn."),
    ] = None,
    tqa: Annotated[
        bool,
        Flag(
            "Also hold the scores of single answers against the TQA metric: likeness to the "
            "right answers of the input less that to its wrong ones, by --similarity.",
            name="--tqa",
        ),
    ] = False,
    seed: Seed,
    records: Records,
    as_json: common.Json,
) -> None:
    """Rank models by their mean score over the same questions, and say how sure that is.

    Where the answers have labels, the order is held against true accuracy.

    \b
    trustassay rank runs/one
    trustassay rank small-model.jsonl large-model.jsonl --metric faithfulness
    trustassay rank answers.jsonl --metric fewl:form=agreement --page ranking.html
    """
    from trustassay.backends import DEFAULT_SIMILARITY, resolve
    from trustassay.workflows import rank as ranking

    folder, name, failed = scored_run(
        common.source_of(sources), metric, backends, records, out=out, seed=seed
    )
    similarity = None
    if tqa:
        similarity = resolve.similarity(backends.get("similarity") or DEFAULT_SIMILARITY)
    found = ranking.rank(folder, metric=name, seed=seed, similarity=similarity)
    _show(found)
    if page:
        write_ranking(found, sources, page)
        say(f"page: {page}")
    if as_json:
        print_json(found.to_dict())
    if failed:
        raise typer.Exit(1)


def statements(found: Ranking) -> list[str]:
    """Say in sentences which models cannot be told apart, and how far the order is the true one."""
    from trustassay.statistics.intervals import FEWEST, too_few

    differences = found.found.differences
    unclear = [one for one in differences if not one.apart]
    corrected = f", corrected for {len(differences)} pairs" if len(differences) > 1 else ""
    if reason := too_few("questions that all models answered", found.questions, FEWEST):
        lines = [f"No models can be told apart: {reason}."]
    elif not unclear:
        largest = _p(max(one.p for one in differences))
        lines = [f"All models differ significantly (largest p = {largest}{corrected})."]
    else:
        lines = [_unclear(found, one, corrected) for one in unclear[:MOST]]
        if len(unclear) > MOST:
            lines.append(f"Nor can {len(unclear) - MOST} more pairs; --json lists them.")
    if found.found.without:
        lines.append(f"No intervals: {found.found.without}.")
    for name, why in zip(found.models, found.unscored, strict=True):
        if why:
            counts = ", ".join(f"{count:,} {word}" for word, count in sorted(why.items()))
            lines.append(f"Answers of {name} without a score, in no mean: {counts}.")
    agreement = found.found.agreement
    if agreement is not None:
        lines.append(_agreement(found))
    for pairs in found.pairs:
        if pairs.pairs:
            share = 100 * pairs.alike / pairs.pairs
            lines.append(
                f"Of {pairs.pairs:,} pairs of answers to a question that differ by "
                f"{pairs.truth}, the score orders {share:.1f} % alike; chance is 50 %."
            )
    return lines


def _unclear(found: Ranking, one: PairDifference, corrected: str) -> str:
    within = ""
    if one.interval:
        low, high = (f"{end:+.3f}".replace("-", "−") for end in one.interval)
        within = f" (95 % interval {low} to {high})"
    return (
        f"{found.models[one.better]} and {found.models[one.worse]} cannot be told apart: they "
        f"differ by {abs(one.value):.3f}{within}, p = {_p(one.p)}{corrected}."
    )


def _p(value: float) -> str:
    return f"{value:.2f}" if value >= 0.095 else f"{value:.2g}"


def _agreement(found: Ranking) -> str:
    assert found.found.agreement is not None
    agreement = found.found.agreement
    parts = []
    for name, value in (
        ("Kendall's tau", agreement.kendall),
        ("Spearman's rho", agreement.spearman),
    ):
        parts.append(f"{name} is not defined" if value is None else f"{name} {value:.2f}")
    m = len(found.models)
    ways = 1
    for number in range(2, m + 1):
        ways *= number
    return (
        f"With true accuracy: {', '.join(parts)}. {m} models stand in the true order by chance "
        f"once in {ways:,} times."
    )


def rows(found: Ranking) -> list[list[str]]:
    """Return the table of the models."""
    ranked = found.found
    table = []
    for place, name in enumerate(found.models):
        interval = ranked.intervals[place]
        within = f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else "too few"
        cells = [name, f"{ranked.means[place]:.3f}", within]
        if ranked.probabilities is not None:
            cells += [_percent(value) for value in ranked.probabilities[place].tolist()]
        if ranked.truth is not None:
            cells.append(f"{100 * ranked.truth[place]:.1f}")
        table.append(cells)
    return table


def headings(found: Ranking) -> list[str]:
    """Return the headings of that table."""
    ranks = []
    if found.found.probabilities is not None:
        ranks = [f"rank {place}" for place in range(1, len(found.models) + 1)]
    accuracy = ["true, %"] if found.found.truth is not None else []
    return ["model", "mean", "95 % interval", *ranks, *accuracy]


def _percent(value: float) -> str:
    if 0 < value < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 < value < 1 else f"{100 * value:.0f} %"


def _show(found: Ranking) -> None:
    say(one_line(f"{found.metric.title}: {found.questions:,} questions that all models answered"))
    if found.left_out:
        say(f"{found.left_out:,} questions are left out: not every model has a score for them")
    show_table(headings(found), rows(found), ())
    for line in statements(found):
        say(one_line(line))


def write_ranking(found: Ranking, sources: list[Path], path: Path) -> None:
    """Write the page of a ranking."""
    from markupsafe import Markup

    from trustassay.show.document import (
        MEAN,
        Block,
        Chart,
        Document,
        Row,
        Section,
        Table,
        Text,
        interval_bars,
    )
    from trustassay.show.text import number

    ranked = found.found
    lines = statements(found)
    means = [
        (name, float(mean), interval)
        for name, mean, interval in zip(found.models, ranked.means, ranked.intervals, strict=True)
    ]
    note = Markup("Bar: 95 % interval over questions; {}mean.").format(MEAN)
    bars = interval_bars(means, lambda mean: number(mean, 3))
    table = [Row(name, cells) for name, *cells in rows(found)]
    parts: list[Block] = [
        *(Text(line) for line in lines[1:]),
        Chart("Mean score of each model", note, [bars]),
        Table("Model", headings(found)[1:], table, "In numbers"),
    ]
    Document(
        "rank",
        f"{', '.join(source.name or str(source) for source in sources)}: models ranked",
        {
            "input": ", ".join(map(str, sources)),
            "questions": f"{found.questions:,}",
            "left out": f"{found.left_out:,}",
        },
        lines[0].replace("95 %", "95\xa0%"),
        [],
        [Section(found.metric.title, parts)],
    ).write(path)
