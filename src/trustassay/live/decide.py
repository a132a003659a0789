"""``POST /v1/decide``: whether to accept an answer, by a calibrator that an audit may withdraw."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trustassay.core.json_form import read_json
from trustassay.input.records import InputError
from trustassay.live import requests
from trustassay.live.app import Part
from trustassay.live.service import Service
from trustassay.runs.calibrator import (
    ACCEPT,
    ASK,
    Calibrator,
    check_calibrator,
    read_calibrator,
    read_group_value,
    read_score_part,
)


class LiveCalibrator:
    """A calibrator that is read again when its file changes."""

    def __init__(self, path: Path, metrics: Collection[str]) -> None:
        """Read the file.

        Args:
            path: the file.
            metrics: the names of the metrics that may be scored; empty for a decision model.

        Raises:
            InputError, OSError: as :meth:`read`.
        """
        self._path, self._metrics = path, metrics
        self._version: Any = None
        self.read()

    def read(self) -> Calibrator:
        """Return the calibrator as its file is now.

        Raises:
            InputError: the file is damaged, or of a metric that is not scored here.
            OSError: it cannot be read.
        """
        stat = self._path.stat()
        # Taken before reading: a file that is replaced in between is read again the next time.
        version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if version != self._version:
            calibrator = read_calibrator(self._path)
            metric = calibrator.score.source.metric
            if metric and metric not in self._metrics:
                advice = f"add --metric {metric}"
                if not self._metrics:
                    advice = "--decisions needs a calibrator of a column with model probabilities"
                raise InputError(f"{self._path}: calibrates the metric {metric}; {advice}")
            self._calibrator, self._version = calibrator, version
        return self._calibrator

    def read_for_request(self) -> Calibrator:
        """Return the calibrator as its file is now; RequestError if it cannot be read."""
        try:
            return self.read()
        except (InputError, OSError):
            # Nothing is decided by an older version: an audit may have withdrawn it.
            message = "the calibrator's file cannot be read, so no decision was made"
            raise requests.RequestError(500, message) from None


def decide(calibrator: Calibrator, score: float, of: str, fault: str = "") -> dict[str, Any]:
    """Return the decision on an answer as a JSON object.

    Args:
        score: as the judge gives it, NaN without.
        of: the value of the calibrator's ``by``.
        fault: why the calibrator does not fit the score; empty if it does.
    """
    promise = calibrator.find_promise(of)
    chance = float(calibrator.probabilities([score])[0])
    accepted = not fault and bool(calibrator.accepts([score], [of])[0])
    reason = fault
    if not fault and not calibrator.is_valid and (audit := calibrator.audit):
        reason = f"the promise has been {audit.status} since {audit.day}: {audit.reason}"
    elif not fault and promise is None:
        reason = "the calibrator makes no promise" + (
            f" for {calibrator.by} {of!r:.60}" if calibrator.by else ""
        )
    elif not fault and math.isnan(score):
        reason = "there is no score"
    elif not fault and calibrator.is_other_scale([score])[0]:
        reason = f"the score is {score:g}, but the scores of the calibration were from 0 to 1"
    return {
        "decision": ACCEPT if accepted else ASK,
        "probability": None if math.isnan(chance) else chance,
        "at_most": None if promise is None else promise.at_most,
        "confidence": None if promise is None else promise.confidence,
        "valid": calibrator.is_valid and promise is not None and not fault,
        "reason": reason,
    }


def decision_part(path: Path, metrics: Collection[str]) -> Callable[[Service], Part]:
    """Return a function that builds the route for a service.

    Args:
        path: the calibrator. metrics: the names of the metrics that the service scores.

    Raises:
        InputError, OSError: the calibrator cannot be read, or is of another metric.
    """
    live = LiveCalibrator(path, metrics)

    def part(service: Service) -> Part:
        async def answer(request: Request) -> Response:
            calibrator = live.read_for_request()
            content = await requests.read_json(request)
            if calibrator.score.source.metric:
                return await requests.unless_gone(
                    request, _decide_sample(service, calibrator, content)
                )
            return _decide_scores(calibrator, content)

        return Part([Route("/v1/decide", answer, methods=["POST"])])

    return part


async def _decide_sample(service: Service, calibrator: Calibrator, record: Any) -> Response:
    """Score a sample, and decide on it."""
    assay = await service.score(record)
    source = calibrator.score.source
    # With the options settled for this sample: those that are `auto` may depend on it.
    settings = {one.name: one.settings() for one in service.scorer.metrics_for(assay.sample)}
    fault = assay.errors.get(source.metric, "")
    try:
        check_calibrator(calibrator, settings, service.scorer.backend_names, "this service")
    except InputError as error:
        fault = str(error)
    score = read_score_part(assay[source.metric], source.part)
    return requests.reply(decide(calibrator, score, read_group_value(record, calibrator.by), fault))


def _decide_scores(calibrator: Calibrator, content: Any) -> Response:
    """Decide on one score, or on several."""
    if not isinstance(content, dict) or {"score", "scores"} <= content.keys():
        raise requests.RequestError(400, "expected an object with either score or scores")
    is_list = "scores" in content
    name: str = "scores" if is_list else "score"
    kind: Any = Sequence[float | None] if is_list else float | None
    try:
        value = read_json(kind, content.get(name, ""), name)
        of = read_json(str, content.get("by", ""), "by")
        judge = read_json(Mapping[str, str], content.get("judge", {}), "judge")
    except ValueError as error:
        field, _, message = str(error).partition(": ")
        problems = [{"field": field, "message": message}]
        return requests.fault(422, "no decision was made", problems=problems)
    scores = [math.nan if score is None else score for score in (value if is_list else [value])]
    fault = _find_other_judge(calibrator, judge)
    decisions = [decide(calibrator, score, of, fault) for score in scores]
    return requests.reply({"decisions": decisions} if is_list else decisions[0])


def _find_other_judge(calibrator: Calibrator, judge: Mapping[str, str]) -> str:
    """Return why scores are not of the judge that was calibrated; empty if they are."""
    for name, known in calibrator.score.source.judges.items():
        if name not in judge:
            return f"expected {name} in the field judge, as in the calibration"
        if judge[name] not in known:
            return f"no labelled answer of the calibration had {name} {judge[name][:60]!r}"
    return ""
