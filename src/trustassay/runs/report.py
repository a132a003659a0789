"""Write the report page of a run, and the page of several runs together."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.core.metric import Metric, MetricInfo, Summary
from trustassay.core.outcome import Outcomes
from trustassay.core.progress import SILENT, StepProgress
from trustassay.errors import RunFolderError
from trustassay.input.places import name_of
from trustassay.input.ratings import Rating, Ratings
from trustassay.input.records import InputError
from trustassay.judging.entailer_quality import EntailerQuality, find_entailer_quality
from trustassay.judging.input_kind import INPUT_KINDS
from trustassay.report.answers import (
    AnswerRatings,
    MetricColumn,
    RaterRatings,
    RatingsSummary,
    answer_of,
)
from trustassay.report.distributions import LONGEST_NAME
from trustassay.report.page import (
    AskedQuestion,
    PooledMetric,
    PooledPage,
    ReportMetric,
    ReportRun,
    ReportSample,
    write_page,
    write_template,
)
from trustassay.report.review import ReviewCounts, lines_of, problem_of
from trustassay.runs import calibrator as probabilities
from trustassay.runs import counts
from trustassay.runs.calibrator import read_calibrator
from trustassay.runs.folder import (
    RunFolder,
    find_run_model,
    load_metrics,
    read_metric_infos,
)
from trustassay.runs.intake import WHY
from trustassay.runs.lines import StepCallback, hash64
from trustassay.runs.remarks import read_asked_rows, write_notes, write_remarks
from trustassay.runs.units import read_domain
from trustassay.runs.unjudged import explain_unjudged
from trustassay.statistics.comparison import sign_flip_p
from trustassay.statistics.resampling import generator, holm

LARGER_JUDGE = "larger_judge"
"""Key in ``summary.json`` of the estimated price of a larger judge."""


def write_report(  # noqa: PLR0913 - what a page can show
    folder: RunFolder,
    metrics_here: Sequence[Metric] = (),
    *,
    domain_field: str = counts.DOMAIN,
    counted: counts.RunCounts | None = None,
    rated: "RunRatings | None" = None,
    calibrated: probabilities.CalibrationResult | None = None,
    notes: Sequence[str] = (),
    steps: StepProgress = SILENT,
) -> None:
    """Write ``report.html`` from the files of a finished run.

    Args:
        metrics_here: the metrics that draw their evidence; by default those that are installed.
        domain_field: the field of a sample's domain.
        counted: the counts over the run, if they were made just now.
        rated: ratings. They are shown with the answers, and replace the samples' own labels in
            charts.
        calibrated: the result of a calibrator. Without it, one that was applied before is shown.
        notes: texts below the first sentence.

    Raises:
        RunFolderError: the folder holds no finished run.
        UnknownNameError: a run of an earlier version, and a metric of it is not installed.
        StoppedError: ``steps`` were asked to stop.
    """
    # Step 1: read settings and figures. A summary of other metrics would raise far from here.
    run, summary = folder.read_finished()
    metrics = list(read_metric_infos(folder, run).values())
    try:
        total = int(run["samples"]["samples"])
        summaries = [Summary(**summary["metrics"][metric.name]) for metric in metrics]
    except (KeyError, TypeError, ValueError):
        message = "damaged, or of another run; run the command of this run again"
        raise RunFolderError(f"{folder.path}/summary.json: {message}") from None
    folder.check_samples(total)
    # Step 2: count the run, if the caller has not.
    drawing = {metric.name: metric for metric in metrics_here} or load_metrics(run)
    counted = counted or counts.count_run(
        folder,
        run,
        metrics,
        domain_field=domain_field,
        installed_metrics=drawing.values(),
        rating_of=rated.mean_of if rated else counts.read_sample_label,
        steps=steps,
    )
    # Step 3: apply the calibrator that the run had before, from its copy in the folder.
    if calibrated is None and probabilities.CALIBRATED in summary:
        with steps.begin("applying the calibrator", total) as step:
            calibrated = probabilities.calibrate_run(
                folder, read_calibrator(folder.path / probabilities.CALIBRATOR), step
            )
    # Step 4: the answers that are shown, the neediest first. They are read one by one while the
    # page is written: all together would not fit into memory.
    places, order = counted.choice.by_need(), list(run["metrics"])
    words = counted.outcomes[order[0]].words
    with steps.begin("writing the report", len(places)) as step:

        def iterate_samples() -> Iterator[ReportSample]:
            for place in places:
                assessments = folder.assessments_at(place.assessments, len(order))
                # In the order of the run's metrics, which is that of the page.
                assessments.sort(key=lambda assessment: order.index(assessment.metric))
                sample = folder.sample_at(place.sample)
                ratings = rated.ratings_of(sample.id, sample.model) if rated else None
                chance = calibrated.chance_of(place.number) if calibrated else None
                first = assessments[0]
                outcome = counts.determine_outcome(drawing.get(first.metric), first)
                yield ReportSample(
                    sample,
                    assessments,
                    ratings,
                    place.number + 1,
                    chance,
                    outcome=words.get(outcome.kind, ""),
                    groups=[int(one.column.places[place.number]) for one in counted.columns],
                )
                step()

        # Step 5: everything that the template shows.
        page = ReportRun(
            title=name_of(run["input"]),
            facts=_list_facts(run),
            metrics=[
                ReportMetric(
                    m.name,
                    m.title,
                    s,
                    m.figures,
                    counted.histograms[m.name],
                    counted.groups[m.name],
                    drawing.get(m.name),
                )
                for m, s in zip(metrics, summaries, strict=True)
            ],
            total=total,
            samples=iterate_samples(),
            ratings=rated.summary if rated else None,
            selection=counted.choice.selection() if total > counts.MAX_ANSWERS_SHOWN else None,
            remarks=[
                *filter(None, [" ".join(explain_unjudged(summary, run))]),
                *write_remarks(summary, total),
            ],
            notes=[*notes, *write_notes(summary)],
            outcomes=list(counted.outcomes.values()),
            columns=counted.columns,
            asked=read_asked_rows(summary),
            looked=counted.look_counts,
            lines=lines_of({m.name: m.title for m in metrics}, drawing),
            judge=describe_judge(run, summary),
            chances=probabilities.describe_calibration(calibrated.to_dict())
            if calibrated
            else None,
        )
        write_page(page, folder.report_path)


def describe_judge(
    run: Mapping[str, Any], summary: Mapping[str, Any] | None = None
) -> EntailerQuality | None:
    """Return how reliable the entailer of a run is; ``None`` if it has none, or judged nothing.

    Args:
        run: the content of ``run.json``.
        summary: the content of ``summary.json``, which has the price of a larger entailer and the
            kind of the answers.
    """
    entailer, summary = run["backends"].get("entailer"), summary or {}
    if not entailer or summary.get(counts.LOOKED_KEY, {}).get("judged") == 0:
        return None
    kind = summary.get(counts.KIND_KEY)
    return find_entailer_quality(
        str(entailer),
        run["metrics"],
        summary.get(LARGER_JUDGE),
        run.get(WHY, ""),
        run["backends"].get("second"),
        # A later version may write kinds that are not known here.
        kind if kind in INPUT_KINDS else None,
    )


def _list_facts(run: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that a reader needs first; all settings are below the figures."""
    facts = {"input": name_of(run["input"])}
    if run.get("skipped"):
        facts["faulty records skipped"] = f"{run['skipped']:,}"
    facts |= {
        word: ", ".join(map(str, names.values())) if isinstance(names, Mapping) else str(names)
        for word, names in run["backends"].items()
    }
    for metric, options in run["metrics"].items():
        if "profile" in options:
            facts[f"{metric} profile"] = str(options["profile"])
    return facts | {"seed": str(run["seed"]), "trustassay": str(run["trustassay"])}


class RunRatings:
    """Ratings joined with the answers of a run.

    A rating belongs to the answer with its id. If both name a model, the models must be equal too.

    Args:
        folder: of the run; its samples are read once.
        ratings: by people or anything else.
        source: the name of their file, which is shown.

    Raises:
        InputError: the ratings are choices between two answers.
        RunFolderError: the samples are damaged.
    """

    def __init__(self, folder: RunFolder, ratings: Ratings, source: str) -> None:
        if ratings.pairs:
            raise InputError(
                f"{source}: holds choices between two answers (annotate --pairs); expected ratings "
                "of single answers. For choices, use `trustassay agree`"
            )
        self._ratings = ratings
        self._by_item: dict[str, list[Rating]] = {}
        for rating in ratings.ratings:
            self._by_item.setdefault(rating.item, []).append(rating)
        answers, rated_answers, used_ratings = 0, 0, 0
        raters: set[str] = set()
        # Ratings that are still unmatched, by id; matched ones are subtracted.
        unknown = {item: len(ratings_of_item) for item, ratings_of_item in self._by_item.items()}
        for sample in folder.sample_records() if folder.samples_path.exists() else ():
            answers += 1
            ratings_of_item = self._ratings_of(sample["id"], sample.get("model"))
            rated_answers += bool(ratings_of_item)
            used_ratings += len(ratings_of_item)
            raters.update(rating.rater for rating in ratings_of_item)
            if ratings_of_item:
                unknown[sample["id"]] -= len(ratings_of_item)
        unmatched = {item: n for item, n in unknown.items() if n > 0}
        numbers = not ratings.categories
        self.summary = RatingsSummary(
            source, numbers, len(raters), used_ratings, rated_answers, answers, unmatched
        )

    def ratings_of(self, sample_id: str, model: str | None) -> AnswerRatings | None:
        """Return the ratings of an answer, ``None`` where it has none."""
        by_rater: dict[str, list[Rating]] = {}
        for rating in self._ratings_of(sample_id, model):
            by_rater.setdefault(rating.rater, []).append(rating)
        if not by_rater:
            return None
        return AnswerRatings([self._list_ratings(*of_rater) for of_rater in by_rater.items()])

    def mean_of(self, sample: Mapping[str, Any]) -> float | None:
        """Return the mean rating of a stored sample; ``None`` without one, or if it is a word."""
        result = self.ratings_of(sample["id"], sample.get("model"))
        return result.mean if result else None

    def _ratings_of(self, sample_id: str, model: str | None) -> list[Rating]:
        return [
            rating
            for rating in self._by_item.get(sample_id, ())
            if not (rating.model and model) or rating.model == model
        ]

    def _list_ratings(self, name: str, ratings_of_rater: list[Rating]) -> RaterRatings:
        # A rater may rate an answer several times, to measure agreement with themselves.
        ratings_of_rater = sorted(ratings_of_rater, key=lambda rating: rating.repeat)
        categories = self._ratings.categories
        return RaterRatings(
            name,
            [
                categories[int(rating.value)] if categories else f"{rating.value:g}"
                for rating in ratings_of_rater
            ],
            () if categories else [rating.value for rating in ratings_of_rater],
            [rating.note for rating in ratings_of_rater if rating.note],
        )


MAX_QUESTIONS_SHOWN = 20
"""Questions whose answers are shown side by side: those on which the models differ most."""
TEST_LEVEL = 0.05
"""Level of the tests whether the best model is better than each other one."""
MAX_ANSWERS_PER_QUESTION = 12
"""Answers to one question that are shown; of more, the best and the worst."""


class _PooledRun(NamedTuple):
    """A finished run on a page of several."""

    folder: RunFolder
    settings: Mapping[str, Any]
    """The content of ``run.json``."""
    infos: Mapping[str, MetricInfo]
    """The descriptions of its metrics, by name."""


class _PooledAnswer(NamedTuple):
    """An answer of one of several runs."""

    score: float
    """By the first of the common metrics."""
    model: str
    run: int
    """The number of its run, from 0."""
    place: counts.AnswerPlace
    """Where it is stored in the folder of its run."""


def write_pooled(
    paths: Sequence[Path],
    out: Path,
    *,
    domain_field: str = counts.DOMAIN,
    steps: StepProgress = SILENT,
) -> list[str]:
    """Write the page of several finished runs to ``out`` and return its first lines.

    The answers of a run that names no model count under the name of its folder.

    Raises:
        RunFolderError: a folder holds no finished run or occurs twice, or the runs have no metric
            in common, or a metric with different ranges.
        StoppedError: ``steps`` were asked to stop.
    """
    runs = []
    for path in paths:
        folder = RunFolder(path)
        settings, _ = folder.read_finished()
        runs.append(_PooledRun(folder, settings, read_metric_infos(folder, settings)))
    # Also the same folder by two paths: its answers would count twice.
    if len({run.folder.path.resolve() for run in runs}) < len(runs):
        raise RunFolderError("the same run is given twice; expected different runs")
    pool = _PooledRuns(runs, domain_field)
    for number, run in enumerate(runs):
        total = int(run.settings["samples"]["samples"])
        with steps.begin(f"reading {run.folder.path.name}", total) as step:
            pool.count(number, step)
    judges = [describe_judge(run.settings) for run in runs]
    page = PooledPage(
        title=f"{len(runs)} runs",
        facts={"runs": ", ".join(run.folder.path.name for run in runs)},
        looked=pool.looked,
        lines=lines_of(
            {name: info.title for name, info in pool.infos.items()}, pool.installed_metrics
        ),
        warnings=list(pool.warnings()),
        metrics=[
            PooledMetric(name, info.title, pool.groups[name]) for name, info in pool.infos.items()
        ],
        judge=judges[0] if len({judge.name if judge else None for judge in judges}) == 1 else None,
        questions=pool.pick_questions(),
        outcomes=pool.outcomes(),
        apart=pool.test_models_apart(),
    )
    # The ratings that the drawing of groups looks for in a run are the samples' own labels here.
    write_template("pooled.html.jinja", out, private=False, page=page, run={"ratings": None})
    first_lines = [
        f"{run}: {line}"
        for run, of_run in page.outcomes.items()
        for outcomes in of_run
        for line in outcomes.lines
    ]
    return [*first_lines, f"{page.headline} {page.models}".strip()]


def _find_shared_metrics(runs: Sequence[_PooledRun]) -> dict[str, MetricInfo]:
    """Return the descriptions of the metrics that all runs have, by name.

    Raises:
        RunFolderError: there is none, or the ranges of its scores differ.
    """
    shared_names = [name for name in runs[0].infos if all(name in run.infos for run in runs)]
    if not shared_names:
        message = "; ".join(f"{run.folder.path.name}: {', '.join(run.infos)}" for run in runs)
        raise RunFolderError(f"the runs have no metric in common ({message})")
    for name in shared_names:
        # Scores with different ranges cannot be averaged.
        kinds = {(run.infos[name].score_range, run.infos[name].lower_is_better) for run in runs}
        if len(kinds) > 1:
            raise RunFolderError(
                f"the scores of {name} have different ranges in these runs; expected runs with the "
                f"same options of {name}"
            )
    return {name: runs[0].infos[name] for name in shared_names}


class _PooledRuns:
    """Counts over several finished runs, by the metrics that all of them have."""

    def __init__(self, runs: Sequence[_PooledRun], domain_field: str) -> None:
        self.runs, self.infos, self._domain_field = runs, _find_shared_metrics(runs), domain_field
        installed = load_metrics(runs[0].settings)
        self.installed_metrics = {
            name: metric for name, metric in installed.items() if name in self.infos
        }
        """The common metrics that are installed; only these can say which answers need a look."""
        self._first = next(iter(self.infos.values()))
        self.groups = {
            name: counts.create_groups(info, domain_field) for name, info in self.infos.items()
        }
        self.looked = ReviewCounts(any(metric.line for metric in self.installed_metrics.values()))
        self.answers: dict[int, list[_PooledAnswer]] = {}
        """Answers by the hash of their question; 8 bytes, as all runs together may be large."""
        self._answer_hashes: set[int] = set()
        self.repeated = 0

    def count(self, number: int, step: StepCallback) -> None:
        """Count all answers of the run with this number."""
        run = self.runs[number]
        unnamed = find_run_model(run.settings) or run.folder.path.name
        name_model = counts.ModelNamer(run.settings, self.installed_metrics.values())
        for place, sample, all_of_sample in counts.read_rows(run.folder, list(run.infos.values())):
            # Each run may have further metrics, in another order.
            by_name = {assessment.metric: assessment for assessment in all_of_sample}
            assessments = [by_name[name] for name in self.infos]
            model = str(name_model(sample, assessments[0]) or unnamed)
            domain = read_domain(sample, self._domain_field)
            flags = [
                problem_of(self.installed_metrics.get(assessment.metric), assessment) is not None
                for assessment in assessments
            ]
            counts.count_looks(self.looked, assessments, flags, self.installed_metrics)
            for assessment in assessments:
                if assessment.score is not None:
                    self.groups[assessment.metric].add(
                        name_model(sample, assessment) or unnamed,
                        domain,
                        assessment.score,
                        counts.read_sample_label(sample),
                    )
            # The same answer in two runs, as after a copy of a part: it would count twice in every
            # mean.
            key = hash64(json.dumps([sample["id"], model, sample.get("response")]))
            self.repeated += key in self._answer_hashes
            self._answer_hashes.add(key)
            if assessments[0].score is not None:
                answers = self.answers.setdefault(hash64(sample["question"].strip()), [])
                answers.append(_PooledAnswer(assessments[0].score, model, number, place))
            step()

    def warnings(self) -> Iterator[str]:
        """Yield a sentence for each setting in which runs differ, and on repeated answers."""
        for name in self.infos:
            options = [
                json.dumps(run.settings["metrics"][name], sort_keys=True) for run in self.runs
            ]
            if len(set(options)) > 1:
                yield f"{name} has different options in these runs; scores may not be comparable"
        for backend in ("entailer", "second", "embedder", "similarity", "judge"):
            names = {str(run.settings["backends"].get(backend, "none")) for run in self.runs}
            if len(names) > 1:
                yield f"the runs use different backends as {backend}: {', '.join(sorted(names))}"
        if self.repeated:
            subject = "answer is" if self.repeated == 1 else "answers are"
            yield f"{self.repeated:,} {subject} counted twice (same id, model and text)"

    def outcomes(self) -> dict[str, list[Outcomes]]:
        """Return the outcomes by the name of the run, one for each of the metrics."""
        result: dict[str, list[Outcomes]] = {}
        for run in self.runs:
            by_metric = counts.read_outcomes(run.folder, load_metrics(run.settings).values())
            # Folders with the same name in different places are distinguished by their full path.
            name = run.folder.path.name
            name = str(run.folder.path) if name in result else name
            result[name] = [by_metric[metric] for metric in self.infos]
        return result

    def test_models_apart(self) -> dict[tuple[str | None, str | None], bool]:
        """Test for each other model whether the model with the best mean is better.

        The scores of questions that both answered are compared in pairs, by sign flips. The
        p-values are corrected for the number of models (Holm).

        Returns:
            By the names of both models, whether the difference is significant.
        """
        groups = self.groups[self._first.name]
        models = [name.model for name in groups.models()]
        by_model: dict[str, dict[int, list[float]]] = {}
        for question, answers in self.answers.items():
            for answer in answers:
                # The groups of the page have names cut to this length, by which they are found
                # here.
                scores_by_question = by_model.setdefault(answer.model[:LONGEST_NAME], {})
                scores_by_question.setdefault(question, []).append(answer.score)
        means = {
            model: {
                question: sum(scores) / len(scores)
                for question, scores in scores_by_question.items()
            }
            for model, scores_by_question in by_model.items()
        }
        sign = -1 if groups.lower_is_better else 1
        p_values = []
        for model in models[1:]:
            best, other = means.get(str(models[0]), {}), means.get(str(model), {})
            shared_questions = sorted(best.keys() & other.keys())
            differences = [sign * (best[key] - other[key]) for key in shared_questions]
            rng = generator(0, "pooled", str(model))
            # A model that is ahead on the common questions cannot be worse.
            p_values.append(sign_flip_p(differences, rng) if sum(differences) > 0 else 1.0)
        compared = zip(models[1:], holm(p_values), strict=True)
        return {(models[0], model): p < TEST_LEVEL for model, p in compared}

    def pick_questions(self) -> list[AskedQuestion]:
        """Return the questions on which the models differ most, with their answers, best first."""
        ranked = []
        for answers in self.answers.values():
            by_model: dict[str, _PooledAnswer] = {}
            for pooled_answer in answers:
                # Of several answers of a model to a question the first one is shown.
                by_model.setdefault(pooled_answer.model, pooled_answer)
            # An answer of one model alone shows no difference.
            if len(by_model) > 1:
                # The best answer comes first.
                sign = 1 if self._first.lower_is_better else -1
                ranked.append(sorted(by_model.values(), key=lambda item: sign * item.score))
        # By the distance of the best answer from the worst.
        ranked.sort(key=lambda answers: -abs(answers[0].score - answers[-1].score))
        columns = {
            name: MetricColumn(
                place, info.title, info.score_range, self.installed_metrics.get(name)
            )
            for place, (name, info) in enumerate(self.infos.items())
        }
        result = []
        for answers in ranked[:MAX_QUESTIONS_SHOWN]:
            half = MAX_ANSWERS_PER_QUESTION // 2
            selected = answers
            if len(answers) > MAX_ANSWERS_PER_QUESTION:
                selected = [*answers[:half], *answers[-half:]]
            page_answers = []
            for pooled_answer in selected:
                run = self.runs[pooled_answer.run]
                sample = run.folder.sample_at(pooled_answer.place.sample)
                stored_assessments = run.folder.assessments_at(
                    pooled_answer.place.assessments, len(run.infos)
                )
                by_name = {assessment.metric: assessment for assessment in stored_assessments}
                assessments = [by_name[name] for name in columns]
                answer = answer_of(pooled_answer.place.number + 1, 0, sample, assessments, columns)
                page_answers.append((pooled_answer.model, run.folder.path.name, answer))
            question = page_answers[0][2].sample.question
            best, worst = answers[0].score, answers[-1].score
            result.append(AskedQuestion(question, len(answers), page_answers, best, worst))
        return result
