"""The pages that a rater sees, and the server that shows them and stores ratings.

Each rater has a secret link and may write from one browser tab at a time. Pages do not show models,
scores or ids. All texts of answers count as hostile.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from trustassay.core.files import is_disk_full
from trustassay.core.sample import is_blank
from trustassay.people.annotate.project import AnnotationProject
from trustassay.people.annotate.session import (
    MAX_NOTE_CHARS,
    AnnotationSession,
    NotOfferedError,
    RaterState,
)
from trustassay.people.label.calibration_work import CalibrationPromise
from trustassay.report.markdown import markdown_html
from trustassay.report.serving import (
    FORM_NUMBER,
    AccessLinks,
    AllowedHosts,
    FormFields,
    MessageWriter,
    build_application,
    build_asset_routes,
    read_fields,
)
from trustassay.report.text import cut, spell_out_hidden, visible
from trustassay.text.numbers import amount

ASSETS = {
    "annotate.css": (("trustassay.report", "report.css"), (__package__, "annotate.css")),
    "annotate.js": ((__package__, "annotate.js"),),
}
ANSWER_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def render_page(
    project: AnnotationProject,
    rater: RaterState,
    token: str,
    step: int | None = None,
    scale: int = 0,
    promise: CalibrationPromise | None = None,
) -> str:
    """Render the current page of a rater, or that of an earlier ``step``."""
    current = rater.current if step is None else step
    task = None if current is None else _build_task(project, rater, current, scale)
    more = {"task": task, "again": step is not None, "promise": promise}
    return _render("annotate.html.jinja", project, rater, token, **more)


def render_list_page(project: AnnotationProject, rater: RaterState, token: str) -> str:
    """Render the list of all answers that a rater has rated or skipped, the latest first."""
    listed = []
    for step in sorted({rating // rater.scales for rating in rater.states}, reverse=True):
        item = project.items[rater.steps[step].item]
        answers = " | ".join(item.shown_answers(swapped=rater.steps[step].swapped))
        ratings, note = _describe_ratings(project, rater, step), rater.note(step)
        listed.append((step, item.question, answers, ratings, note))
    return _render("ratings.html.jinja", project, rater, token, listed=listed)


def _render(
    template: str, project: AnnotationProject, rater: RaterState, token: str, **more: object
) -> str:
    more |= {"rater": rater, "base": f"/{token}", "longest_note": MAX_NOTE_CHARS}
    more |= {"pairs": project.pairs, "shows_gold": project.options.shows_gold}
    return _create_environment().get_template(template).render(total=len(rater.steps), **more)


def _describe_ratings(project: AnnotationProject, rater: RaterState, step: int) -> str:
    """Describe a rater's ratings of a step on all scales; empty if there are none yet."""
    states = [rater.states.get(rating) for rating in rater.ratings(step)]
    if not any(states):
        return ""
    choices = ["open" if state is None else state.choice or "skipped" for state in states]
    # One word is enough for a single scale, or if the whole step was skipped.
    if len(set(choices)) == 1 and (len(choices) == 1 or choices[0] == "skipped"):
        return choices[0]
    ratings_by_scale = zip(project.scales, choices, strict=True)
    return ", ".join(f"{scale.name} {word}" for scale, word in ratings_by_scale)


def _build_task(
    project: AnnotationProject, rater: RaterState, step: int, scale: int
) -> dict[str, Any]:
    """Build the content of a page: the question and its answers, one of which is rated now."""
    current_step = rater.steps[step]
    item = project.items[current_step.item]
    if project.pairs:
        sides = zip(
            ("First", "Second"), item.shown_answers(swapped=current_step.swapped), strict=True
        )
        answers: list[tuple[str, str, bool, str]] = [(*side, True, "") for side in sides]
    else:
        answers = _build_answers(project, rater, step)
    return {
        "step": step,
        "question": item.question,
        "answers": answers,
        "scales": _build_scales(project, rater, step, scale),
        "golds": item.golds if project.options.shows_gold else (),
        "documents": item.documents,
        "note": rater.note(step),
    }


def _build_scales(
    project: AnnotationProject, rater: RaterState, step: int, scale: int
) -> list[dict[str, Any]]:
    """Build the scales of a step; the first open one is active, else the one at ``scale``."""
    ratings = rater.ratings(step)
    # With several rubrics an answer is rated on one scale after the other.
    active = next((at for at, rating in enumerate(ratings) if rating not in rater.states), scale)
    result: list[dict[str, Any]] = []
    for place, (rating, scale_of_rating) in enumerate(zip(ratings, project.scales, strict=True)):
        prefix = f"{scale_of_rating.name}/" if len(ratings) > 1 else ""
        result.append({"scale": scale_of_rating, "prefix": prefix, "active": place == active})
        # "former" is a rating that was taken back; the page shows it as a reminder.
        for name, states in (("given", rater.states), ("former", rater.undone_states)):
            result[-1][name] = states[rating].choice if rating in states else None
    return result


def _build_answers(
    project: AnnotationProject, rater: RaterState, current: int
) -> list[tuple[str, str, bool, str]]:
    """Return for each answer shown its title, text, whether it is rated now, and its ratings."""
    page = rater.steps[current].page
    same = [place for place, step in enumerate(rater.steps) if step.page == page]
    result = []
    for letter, place in enumerate(same):
        title = f"Answer {ANSWER_LETTERS[letter] if letter < len(ANSWER_LETTERS) else letter + 1}"
        text = project.items[rater.steps[place].item].answers[0]
        is_current = place == current
        rating_in_words = "" if is_current else _describe_ratings(project, rater, place)
        result.append((title if len(same) > 1 else "Answer", text, is_current, rating_in_words))
    return result


@cache
def _create_environment() -> Environment:
    environment = Environment(
        # autoescape and StrictUndefined: answers may contain markup, and a misspelt name must fail.
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        finalize=spell_out_hidden,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"visible": visible, "amount": amount, "cut": cut}
    environment.filters |= {"markdown": markdown_html, "blank": is_blank}
    return environment


LEASE_S = 15.0
"""Seconds after which a silent tab counts as closed; an open tab sends a sign every 5 seconds."""


class WritingTabs:
    """The tab from which each rater may write; each page draws a random name for its tab."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._leases: dict[str, tuple[str, float]] = {}

    def claim(self, rater: str, tab: str, *, take: bool = False) -> bool:
        """Reserve writing for a tab, and return whether it may write.

        It may if no other tab does, or if it takes over. A page without scripts has no name
        (``""``); it may write while no other tab does.
        """
        holder, until = self._leases.get(rater, ("", 0.0))
        # Two tabs of a rater would show the same step, and the later rating would replace the
        # earlier one.
        if holder != tab and self._now() < until and not take:
            return False
        if tab:
            self._leases[rater] = tab, self._now() + LEASE_S
        return True

    def leave(self, rater: str, tab: str) -> None:
        """Release the reservation of a tab that was closed."""
        if self._leases.get(rater, ("", 0.0))[0] == tab:
            del self._leases[rater]


MAX_TAB_NAME_CHARS = 64
OTHER_TAB_MESSAGE = "this rater is already rating in another tab."

ACTIONS: Mapping[str, Callable[[AnnotationSession, str, FormFields], Awaitable[object]]] = {
    "rate": lambda session, rater, fields: session.rate(
        rater, _parse_number(fields, "step"), fields.get("choice", ""), fields.get("note", "")
    ),
    "skip": lambda session, rater, fields: session.skip(
        rater, _parse_number(fields, "step"), fields.get("note", "")
    ),
    "undo": lambda session, rater, fields: session.undo(rater, _parse_number(fields, "last")),
    "reopen": lambda session, rater, _: session.reopen(rater),
}
"""The actions of a rater, by the last part of the address to which the form is sent."""


def build_annotation_application(
    session: AnnotationSession,
    links: AccessLinks,
    tell: MessageWriter,
    hosts: AllowedHosts | None = None,
    promise: CalibrationPromise | None = None,
) -> ASGIApp:
    """Build the ASGI application that shows pages and stores ratings.

    ``/TOKEN`` is a rater's page and ``/TOKEN/ratings`` the list of all ratings; ``/TOKEN/rate``,
    ``skip``, ``undo``, ``reopen`` and ``tab`` take forms. With a ``promise`` the plan grows as
    people rate.
    """
    # One state for the whole application: handlers run in a single event loop.
    tabs = WritingTabs()

    # 404 and not 403, so that guessing tokens gives no hint.
    def find_rater(request: Request) -> RaterState:
        rater = links.find_owner(request.path_params["token"])
        if rater is None:
            raise HTTPException(404)
        return session.raters[rater]

    async def show_page(request: Request) -> Response:
        rater, token = find_rater(request), request.path_params["token"]
        if "step" not in request.query_params:
            return HTMLResponse(render_page(session.project, rater, token, None, 0, promise))
        texts = [request.query_params.get(name, "0") for name in ("step", "scale")]
        step, scale = (int(text) if FORM_NUMBER.fullmatch(text) else -1 for text in texts)
        is_rated = any(rating in rater.states for rating in rater.ratings(step))
        if not (is_rated and 0 <= scale < rater.scales):
            # The rating was taken back meanwhile, or the step was never shown.
            return RedirectResponse(f"/{token}", 303)
        return HTMLResponse(render_page(session.project, rater, token, step, scale, promise))

    async def show_list(request: Request) -> Response:
        return HTMLResponse(
            render_list_page(session.project, find_rater(request), request.path_params["token"])
        )

    async def update_tab(request: Request) -> Response:
        rater, fields = find_rater(request), await read_fields(request)
        name = fields.get("tab", "")[:MAX_TAB_NAME_CHARS]
        if "leave" in fields:
            tabs.leave(rater.name, name)
        elif not tabs.claim(rater.name, name, take="take" in fields):
            return PlainTextResponse(OTHER_TAB_MESSAGE, 409)
        return Response(status_code=204)

    def build_endpoint(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            rater, fields = find_rater(request), await read_fields(request)
            # Checked before anything is stored.
            if not tabs.claim(rater.name, fields.get("tab", "")[:MAX_TAB_NAME_CHARS]):
                return PlainTextResponse(OTHER_TAB_MESSAGE, 409)
            # To report the end once, when the last step is finished.
            open_before = rater.current is not None
            try:
                await ACTIONS[name](session, rater.name, fields)
                if promise:
                    await follow_plan(session, promise)
            except NotOfferedError as error:
                return PlainTextResponse(str(error), 400)
            except OSError as error:
                # The rater learns the cause; the path in the error goes to the terminal only.
                cause = "the disk is full" if is_disk_full(error) else "the file cannot be written"
                tell(f"{rater.name}: a rating was not stored: {error}")
                return PlainTextResponse(f"{cause}.", 503)
            if open_before and rater.current is None:
                skipped = f", {len(rater.skipped):,} skipped" if rater.skipped else ""
                tell(f"{rater.name} has finished: {rater.rated:,} rated{skipped}")
            # 303, so that reloading the page does not send the form again.
            return RedirectResponse(
                f"/{request.path_params['token']}{next_address(rater, fields)}", 303
            )

        return endpoint

    def next_address(rater: RaterState, fields: FormFields) -> str:
        """Return the page after a request: when revisiting an answer, its next scale."""
        if "again" not in fields or "choice" not in fields:
            return ""
        scale = session.parse_choice(fields["choice"])[0] + 1
        return f"?step={fields['step']}&scale={scale}" if scale < rater.scales else ""

    # Assets first: "/{token}" would match their addresses as well.
    routes = [*build_asset_routes(ASSETS), Route("/{token}", show_page)]
    routes.append(Route("/{token}/ratings", show_list))
    routes.append(Route("/{token}/tab", update_tab, methods=["POST"]))
    routes += [
        Route(f"/{{token}}/{name}", build_endpoint(name), methods=["POST"]) for name in ACTIONS
    ]
    return build_application(routes, tell, hosts)


async def follow_plan(session: AnnotationSession, promise: CalibrationPromise) -> None:
    """Update what is promised, and ask for the next batch of the plan once this one is rated.

    Raises:
        OSError: the plan cannot be written; the next request tries again.
    """
    # A label is complete when everybody who is asked has rated the answer.
    unfinished = {
        session.project.items[step.item].id
        for rater in session.raters.values()
        for place, step in enumerate(rater.steps)
        if any(rating not in rater.states for rating in rater.ratings(place))
    }
    # In a thread: the promise takes a second at a look, and other raters must not wait.
    await asyncio.to_thread(promise.update, may_grow=True, unfinished=unfinished)
    session.follow(promise.work.plan)


def _parse_number(fields: FormFields, name: str) -> int:
    text = fields.get(name, "")
    if not FORM_NUMBER.fullmatch(text):
        raise NotOfferedError(f"{name}: expected a number")
    return int(text)
