"""All figures of the scored rows, and the page that shows them."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.benchmarks.public_labels.figures import (
    VIEWS,
    LabelledScores,
    collect_flags,
    collect_scores,
    measure_auroc,
    measure_line,
    measure_share,
    measure_spans,
    name_faulty_step,
)
from lab.benchmarks.public_labels.rows import LANGUAGES, LabelledRow, read_rows
from lab.benchmarks.public_labels.scoring import METRICS, ScoredRow, read_scores
from trustassay.statistics.resampling import cluster_numbers

Json = dict[str, Any]
AGENT_LABELS = Path(__file__).with_name("agent_labels.csv")
"""Conversations of tau-bench that we read: which end with a claim that no result bears out."""


class Comparison(NamedTuple):
    """Two kinds of rows that a score should tell apart."""

    title: str
    set: str
    right: str
    """The label of right rows."""
    wrong: str
    """The label of wrong rows."""
    rule: str
    """The trivial rule to beat."""
    group: str = ""
    """The only part of the set that counts; empty for all."""


COMPARISONS = (
    Comparison("quintd, whole outputs", "quintd", "right", "wrong", "words"),
    Comparison("attributionbench, in domain", "attributionbench-in", "right", "wrong", "words"),
    Comparison(
        "attributionbench, out of domain", "attributionbench-ood", "right", "wrong", "words"
    ),
    Comparison("tau-bench, reward", "tau-bench", "right", "wrong", "fewer messages"),
    Comparison("tau-bench, read by us", "tau-bench", "clean", "false_claim", "fewer messages"),
    Comparison("scitab, contradicted", "scitab", "supported", "contradicted", "no negation"),
    Comparison("scitab, not supported", "scitab", "supported", "not_supported", "words"),
    Comparison("tlm-simpleqa", "tlm-simpleqa", "right", "wrong", "TLM"),
    Comparison(
        "tlm-simpleqa, labels not by words", "tlm-simpleqa", "right", "wrong", "TLM", "read"
    ),
    *(
        Comparison(
            f"multilingual-nli, {language}",
            "multilingual-nli",
            "right",
            "wrong",
            "letter pairs",
            language,
        )
        for language in LANGUAGES
    ),
)
SPAN_SETS = ("quintd",)
STEP_SETS = ("who-and-when",)
PREFERENCE_SETS = ("pandalm",)
PARTS = ("report", "all")


def build_figures(folder: Path, sets: Collection[str]) -> Json:
    """Return the figures of everything that the folder has scores of."""
    figures: Json = {}
    for comparison in COMPARISONS:
        if comparison.set in sets:
            figures[comparison.title] = {part: _compare(folder, comparison, part) for part in PARTS}
    for name in sets:
        rows = read_rows(name)
        if name in SPAN_SETS:
            figures[f"{name}, spans"] = {
                part: _measure_spans(folder, name, _select(rows, part)) for part in PARTS
            }
        if name in STEP_SETS:
            figures[f"{name}, step and agent"] = {"all": _measure_steps(folder, name, rows)}
        if name in PREFERENCE_SETS:
            figures[f"{name}, agreement"] = {"all": _measure_preferences(folder, name, rows)}
    return figures


def _select(rows: Sequence[LabelledRow], part: str) -> list[LabelledRow]:
    return [row for row in rows if part in ("all", row.part)]


def _read_compared_rows(comparison: Comparison, part: str) -> list[LabelledRow]:
    rows = _select(read_rows(comparison.set), part)
    if comparison.right == "clean":
        labels = read_agent_labels()
        rows = [row._replace(label=labels[row.id]) for row in rows if row.id in labels]
    kinds = (comparison.right, comparison.wrong)
    return [row for row in rows if row.label in kinds and comparison.group in ("", row.group)]


def read_agent_labels() -> dict[str, str]:
    """Return our labels of conversations, by ``task-trial``."""
    with AGENT_LABELS.open(newline="", encoding="utf-8") as file:
        return {f"{row['task_id']}-{row['trial']}": row["label"] for row in csv.DictReader(file)}


def _compare(folder: Path, comparison: Comparison, part: str) -> Json:
    rows = _read_compared_rows(comparison, part)
    result: Json = {
        "rows": {
            label: sum(row.label == label for row in rows)
            for label in (comparison.right, comparison.wrong)
        },
        "rules": {
            name: measure_auroc(_label_scores(rows, comparison, _read_rule(rows, name)))
            for name in rows[0].trivial
        },
    }
    for reader, metrics in METRICS[comparison.set].items():
        scores = read_scores(folder, comparison.set, reader)
        # The second reader reads some rows alone.
        scored_rows = [row for row in rows if row.id in scores]
        if scored_rows and (reader == "second" or len(scored_rows) == len(rows)):
            result[reader] = {
                metric: _measure_metric(metric, scored_rows, scores, comparison)
                for metric in (name.partition(":")[0] for name in metrics)
            }
    return result


def _read_rule(rows: Sequence[LabelledRow], name: str) -> Any:
    return np.array([row.trivial[name] for row in rows])


def _label_scores(
    rows: Sequence[LabelledRow], comparison: Comparison, scores: Any
) -> LabelledScores:
    right = np.array([row.label == comparison.right for row in rows])
    return LabelledScores(scores, right, cluster_numbers([row.cluster for row in rows]))


def _measure_metric(
    metric: str,
    rows: Sequence[LabelledRow],
    scores: Mapping[str, ScoredRow],
    comparison: Comparison,
) -> Json:
    rule = _read_rule(rows, comparison.rule)
    data = _label_scores(rows, comparison, rule)
    figures: Json = {"line": measure_line(collect_flags(rows, scores, metric), *data[1:])}
    for name, value in VIEWS[metric].items():
        of_view = data._replace(scores=collect_scores(rows, scores, metric, value))
        if (measured := measure_auroc(of_view, rule)) is not None:
            figures[name] = measured
    return figures


def _measure_spans(folder: Path, name: str, rows: Sequence[LabelledRow]) -> Json:
    everything = {row.id: [(0, len(row.record["response"]))] for row in rows}
    result: Json = {"rules": {"everything": measure_spans(rows, everything)}}
    for other in ("gpt4", "gpt35", "llama3"):
        with_other = [row for row in rows if other in row.other_spans]
        marks = {row.id: row.other_spans[other] for row in with_other}
        result["rules"][other] = measure_spans(with_other, marks)
    for reader in METRICS[name]:
        scores = read_scores(folder, name, reader)
        scored_rows = [row for row in rows if row.id in scores]
        if scored_rows and (reader == "second" or len(scored_rows) == len(rows)):
            marks = {
                row.id: [
                    (start, end)
                    for answer in scores[row.id].of_metric("faithfulness")
                    for start, end in answer.marks
                ]
                for row in scored_rows
            }
            result[reader] = {"faithfulness": measure_spans(scored_rows, marks)}
    return result


def _measure_steps(folder: Path, name: str, rows: Sequence[LabelledRow]) -> Json:
    result: Json = {}
    for group in sorted({row.group for row in rows}):
        of_group = [row for row in rows if row.group == group]
        steps = {"rules": {row.id: int(row.trivial["constant"]) for row in of_group}}
        for reader in METRICS[name]:
            scores = read_scores(folder, name, reader)
            if all(row.id in scores for row in of_group):
                steps[reader] = {row.id: name_faulty_step(scores[row.id]) for row in of_group}
        for reader, step_of_row in steps.items():
            result.setdefault(reader, {})[group] = _measure_named_steps(of_group, step_of_row)
    return result


def _measure_named_steps(rows: Sequence[LabelledRow], step_of_row: Mapping[str, int]) -> Json:
    clusters = [row.cluster for row in rows]
    agents = [[step["agent"] for step in row.record["history"]] for row in rows]
    right_steps = [step_of_row[row.id] == int(row.label) for row in rows]
    right_agents = [
        names[step_of_row[row.id]] == names[int(row.label)]
        for row, names in zip(rows, agents, strict=True)
    ]
    return {
        "step": measure_share(right_steps, clusters),
        "agent": measure_share(right_agents, clusters),
    }


def _measure_preferences(folder: Path, name: str, rows: Sequence[LabelledRow]) -> Json:
    result: Json = {
        "rules": {
            rule: _measure_choices(rows, {row.id: row.trivial[rule] for row in rows})
            for rule in rows[0].trivial
        }
    }
    for reader, metrics in METRICS[name].items():
        scores = read_scores(folder, name, reader)
        scored_rows = [row for row in rows if row.id in scores]
        if scored_rows:
            choices = {row.id: _read_choice(scores[row.id], metrics[0]) for row in scored_rows}
            result[reader] = {metrics[0]: _measure_choices(scored_rows, choices)}
    return result


def _read_choice(scored: ScoredRow, metric: str) -> float:
    # 1 for the first answer, -1 for the second, 0 where the judge has no clear preference.
    score = next((answer.score for answer in scored.of_metric(metric)), None)
    return 0.0 if score is None else 2 * score - 1


def _measure_choices(rows: Sequence[LabelledRow], choices: Mapping[str, float]) -> Json:
    labels = {1.0: "1", -1.0: "2", 0.0: "0"}
    hits = [labels[float(np.sign(choices[row.id]))] == row.label for row in rows]
    return measure_share(hits, [row.cluster for row in rows])


# The page -----------------------------------------------------------------------------------------

HEAD = """# Compared with labels of others

Eight public sets with labels that we did not write; the labels *read by us* are ours. Made by
`python -m lab.benchmarks.public_labels`; `public-labels.json` has all intervals. Rules were chosen
on one part of the rows; no rule was chosen on the other part, *report*, but one: the threshold of
contradictions in `tool_use` went from .5 to .8 after a look at both (`embedded-at-0.5` is without).

*Rule* reads nothing. AUROC is the chance that a right row scores higher than a wrong one; a row
that was not judged stands in the middle. *Beyond* is what a score has beyond the rule named above
the table. Right rows that need a look are *false alarms*, wrong ones that do are *caught*; their
balanced accuracy is at the shipped line. *False alarms*, *caught* and *judged* are of *report*. The
second reader and judge is Qwen2.5-Coder 1.5B, on a few rows drawn at random. Figures before this
version are in brackets. What the errors come from: [causes](public-labels-causes.md).
"""
COLUMNS = (
    "reader",
    "score",
    "AUROC, report",
    "beyond",
    "AUROC, all",
    "balanced accuracy",
    "false alarms",
    "caught",
    "judged",
)
READER_NAMES = {"rules": "rule", "second": "with second reader"}


def build_page(figures: Json) -> str:
    """Return the page of the figures, of now and of the version before, if there is one."""
    now, before = figures["now"], figures.get("before", {})
    comparisons = {comparison.title: comparison for comparison in COMPARISONS}
    lines = [HEAD]
    for title, parts in now.items():
        lines += [f"## {title}", ""]
        if title in comparisons:
            counts = ", ".join(f"{n} {label}" for label, n in parts["report"]["rows"].items())
            rule = comparisons[title].rule
            lines += [f"Rows of *report*: {counts}. Compared with the rule: {rule}.", ""]
            head: Sequence[str] = COLUMNS
            table = [*_list_scores(parts, before.get(title, {}))]
        else:
            head = ("reader", "figure", *(f"value, {part}" for part in parts))
            table = [*_list_figures(parts, before.get(title, {}))]
        lines += [_join_cells(head), _join_cells(["---"] * len(head)), *table, ""]
    return "\n".join(lines)


def _join_cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list_scores(parts: Json, before: Json) -> Iterator[str]:
    """Yield a line for each score of a comparison."""

    def cell(part: str, *keys: str) -> str:
        return _format(_look_up(parts[part], keys), _look_up(before.get(part, {}), keys))

    report = parts["report"]
    for rule, measured in report["rules"].items():
        values = [cell(part, "rules", rule) for part in ("report", "all")]
        judged = f"{measured['judged']} of {measured['rows']}"
        yield _join_cells(["rule", rule, values[0], "", values[1], "", "", "", judged])
    for reader in report:
        if reader in ("rows", "rules"):
            continue
        for metric, scores in report[reader].items():
            for name, measured in scores.items():
                if name == "line":
                    continue
                keys = (reader, metric, name)
                # The line is the metric's, not that of each of its scores.
                figures = ("balanced_accuracy", "false_alarms", "caught")
                line = [
                    cell("report", reader, metric, "line", figure) if name == "score" else ""
                    for figure in figures
                ]
                yield _join_cells(
                    [
                        READER_NAMES.get(reader, reader),
                        f"{metric} {name}",
                        cell("report", *keys),
                        cell("report", *keys, "beyond the rule"),
                        cell("all", *keys),
                        *line,
                        f"{measured['judged']} of {measured['rows']}",
                    ]
                )


def _list_figures(parts: Json, before: Json) -> Iterator[str]:
    """Yield a line for each figure of what is no comparison."""
    for reader, figures in next(iter(parts.values())).items():
        for path in _list_paths(figures):
            keys = (reader, *path)
            values = [
                _format(_look_up(parts[part], keys), _look_up(before.get(part, {}), keys))
                for part in parts
            ]
            yield _join_cells([READER_NAMES.get(reader, reader), " ".join(path), *values])


def _list_paths(
    figures: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to each measured value."""
    for key, value in figures.items():
        if isinstance(value, Mapping) and "value" in value:
            yield (*above, key)
        elif isinstance(value, Mapping):
            yield from _list_paths(value, (*above, key))


def _look_up(figures: Any, path: Sequence[str]) -> Any:
    for key in path:
        figures = figures.get(key) if isinstance(figures, Mapping) else None
    return figures


def _format(measured: Any, before: Any) -> str:
    if not isinstance(measured, Mapping) or measured.get("value") is None:
        return ""
    text = _format_share(measured["value"])
    if isinstance(measured.get("interval"), Sequence) and not isinstance(measured["interval"], str):
        low, high = measured["interval"]
        text += f" ({_format_share(low)} to {_format_share(high)})"
    if isinstance(before, Mapping) and before.get("value") not in (None, measured["value"]):
        text += f" [{_format_share(before['value'])}]"
    return text


def _format_share(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1)
