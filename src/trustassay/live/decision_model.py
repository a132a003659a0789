"""``POST /v1/systemone`` and ``POST /v1/decisions``: a decision model behind both wires.

A request of either wire goes to the decision model of the scorer, whichever wire that speaks. With
a calibrator the probability in answers to yes/no questions is the calibrated one.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trustassay.backends.decision_wires import PATHS, DecisionRequest, build_reply, parse_request
from trustassay.core.decisions import DecisionAnswer, DecisionQuestion, compute_probabilities
from trustassay.errors import BackendError, UnparsedError
from trustassay.input.records import InputError
from trustassay.live import requests
from trustassay.live.app import Part
from trustassay.live.decide import LiveCalibrator, decide
from trustassay.live.service import Service
from trustassay.runs.calibrator import ACCEPT, Calibrator

INVALID_STATUSES = {"systemone": 422, "decisions": 400}
"""The status of a request that cannot be answered, by the wire."""
ERROR_STATUSES = {"limited": 429, "timeout": 504}
"""The status of other failed calls by their kind, if it is not 502."""
LOST_ANSWERS = ("malformed", "unparsed")
"""Kinds of failures of single answers in a reply that has others."""


def decision_model_part(path: Path | None) -> Callable[[Service], Part]:
    """Return a function that builds the routes for a service whose scorer has a decision model.

    Args:
        path: the calibrator; ``None``: nothing is calibrated.

    Raises:
        InputError, OSError: the calibrator cannot be read, or is not of a probability.
    """
    live = None if path is None else LiveCalibrator(path, ())
    if live and not all(0 <= point <= 1 for point in live.read().spread.points):
        raise InputError(f"{path}: --decisions needs a calibrator of probabilities from 0 to 1")

    def build_route(service: Service, wire: str) -> Route:
        async def answer(request: Request) -> Response:
            content = await requests.read_json(request)
            service.refuse_if_closing()
            try:
                parsed = parse_request(wire, content)
            except ValueError as error:
                return _build_fault(wire, INVALID_STATUSES[wire], str(error))
            return await requests.unless_gone(request, _answer(service, live, wire, parsed))

        return Route(PATHS[wire], answer, methods=["POST"])

    return lambda service: Part([build_route(service, wire) for wire in PATHS])


async def _answer(
    service: Service, live: LiveCalibrator | None, wire: str, request: DecisionRequest
) -> Response:
    """Ask the questions of a request, and return the reply."""
    futures = map(service.scorer.decide, request.questions)
    results = await asyncio.gather(*futures, return_exceptions=True)
    errors = {i: error for i, error in enumerate(results) if isinstance(error, BaseException)}
    if errors:
        # An answer that is missing leaves the others; any other failure is that of the request.
        kinds = {place: getattr(error, "kind", "") for place, error in errors.items()}
        worst = min(errors, key=lambda place: kinds[place] in LOST_ANSWERS)
        if kinds[worst] not in LOST_ANSWERS or len(errors) == len(results):
            name = request.ids[worst] or str(worst)
            return _describe_failure(wire, name, errors[worst])
    # Only now: an audit may have withdrawn the promise while the model answered.
    calibrator = live.read_for_request() if live else None
    pairs = [
        _read_answer(calibrator, question, result if isinstance(result, DecisionAnswer) else None)
        for question, result in zip(request.questions, results, strict=True)
    ]
    answers, fields = zip(*pairs, strict=True)
    return requests.reply(build_reply(wire, request, answers, fields))


def _read_answer(
    calibrator: Calibrator | None, question: DecisionQuestion, answer: DecisionAnswer | None
) -> tuple[DecisionAnswer | None, dict[str, Any]]:
    """Return an answer for the reply, ``None`` if it is unusable, and its further fields."""
    fields: dict[str, Any] = {"calibrated": False}
    if answer is None or answer.refusal is not None:
        return answer, fields
    if answer.label_mass is not None:
        # The client sees the mass, and decides what less than half of it is worth.
        fields["label_mass"] = answer.label_mass
        answer = replace(answer, label_mass=None)
    try:
        raw, *_ = compute_probabilities("reply", question, answer)
    except UnparsedError:
        return None, fields
    if calibrator is None or question.kind != "yes_no":
        return answer, fields
    decision = decide(calibrator, raw, "", _find_other_judge(calibrator, answer.model))
    chance = decision["probability"]
    fields |= {"calibrated": True, "raw": raw, "accept": decision["decision"] == ACCEPT}
    if decision["reason"]:
        fields["reason"] = decision["reason"]
    return replace(answer, raw=(chance, 1 - chance)), fields


def _find_other_judge(calibrator: Calibrator, model: str) -> str:
    """Return why the calibrator is of another model; empty if nothing says so."""
    judges = calibrator.score.source.judges
    if not judges or any(model in names for names in judges.values()):
        return ""
    return f"the answer is from {model[:60]!r}, which no labelled row had; calibrate this model"


def _describe_failure(wire: str, name: str, error: BaseException) -> Response:
    """Return the reply to a request that the model did not answer."""
    if not isinstance(error, BackendError):
        raise error
    kind = getattr(error, "kind", "")
    if kind == "refused":
        return _build_fault(wire, INVALID_STATUSES[wire], f"questions.{name}: {error}")
    status = ERROR_STATUSES.get(kind, 502)
    wait_s = getattr(error, "retry_after_s", None) or 1
    headers = {"retry-after": str(math.ceil(wait_s))} if status == 429 else None
    return _build_fault(wire, status, str(error), headers)


def _build_fault(
    wire: str, status: int, message: str, headers: dict[str, str] | None = None
) -> Response:
    kind = "invalid_request" if status == 422 else requests.ERROR_TYPES[status]
    content = requests.build_error(message, kind)
    # TypeSafe's errors have this field, those of other servers of its wire have the other.
    detail = {"detail": {"error_type": kind, "message": message}} if wire == "systemone" else {}
    return requests.reply(content | detail, status, headers)
