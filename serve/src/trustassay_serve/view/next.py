"""What to rate next: the answers that ``label`` drew, and what the ratings say of all answers; and
the addresses that store ratings.
"""

import asyncio
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from trustassay.errors import UsageError
from trustassay.files import alone, is_full
from trustassay.runs.folder import RunFolder
from trustassay.workflows.annotate.session import NotOfferedError
from trustassay.workflows.label.command import (
    PROPOSED,
    Labelling,
    LabelWork,
    PlanOptions,
    default_plan,
    open_work,
)
from trustassay.workflows.label.plan import read_plan
from trustassay.workflows.label.population import LabelSource, read_labels
from trustassay.workflows.serving import NUMBER, Fields, Links, Tell, read_fields
from trustassay_serve.view.answers import answer_at, find
from trustassay_serve.view.index import FINISHED, Index, stamp
from trustassay_serve.view.listing import Asked, Listing
from trustassay_serve.view.pages import Site, address
from trustassay_serve.view.rating import Rated, key_of, mark, plan_of, rate, ratings_paths

WIDTH = 0.1
"""Of the interval to which the page counts."""
PATIENCE_S = 0.3
"""Seconds that a page waits for what is being computed."""


class Promise:
    """What the ratings of a run say of all its answers, computed in a thread, anew after each one.
    result: ``None`` without a plan, and until it is computed. fault: why it cannot be.
    """

    def __init__(self, site: Site, folder: RunFolder) -> None:
        self._site, self._folder = site, folder
        self.path = default_plan(folder.path.resolve())
        self._work: LabelWork | None = None
        self._of_run = self._of = ""
        self._starting, self._working = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        self.result: Labelling | None = None
        self.fault = ""

    def _stamps(self) -> str:
        folder = self._folder
        files = (folder.samples_path, folder.assessments_path, self.path)
        return " ".join(map(stamp, (*files, *ratings_paths(self._site, folder))))

    @property
    def ready(self) -> bool:
        """Whether it is of all that is stored."""
        return self._of == self._stamps()

    def wait(self, seconds: float = PATIENCE_S) -> None:
        """Compute what is new; return when that is done or the time is over."""
        with self._starting:
            if not self.ready and not (self._thread and self._thread.is_alive()):
                self._thread = threading.Thread(target=self._compute, daemon=True)
                self._thread.start()
        if self._thread:
            self._thread.join(seconds)

    def _compute(self) -> None:
        while not self.ready:
            now = self._stamps()
            try:
                with self._working:
                    work = self._read()
                    self.result = work.told((), WIDTH, beyond=False) if work.plan else None
                self.fault = ""
            except Exception as error:  # it is told on the page, which goes on
                named = isinstance(error, UsageError | OSError)
                self.result = None
                self.fault = str(error) if named else f"{type(error).__name__}: {error}"
            self._of = now

    def _read(self) -> LabelWork:
        """Return the answers, which are read once, with the plan and the labels of now."""
        rubric = self._site.scale.rubric
        assert rubric
        passing = [one for one in rubric.upwards if rubric.values[one] >= rubric.passes]
        files = [path for path in ratings_paths(self._site, self._folder) if path.exists()]
        source = LabelSource(files, positive=passing)
        if rubric.numeric:
            source = LabelSource(files, at_least=rubric.passes)
        of_run = stamp(self._folder.samples_path) + stamp(self._folder.assessments_path)
        if self._work is None or self._work.plan is None or of_run != self._of_run:
            self._work = open_work([self._folder.path], self.path, source, PlanOptions())
            self._of_run = of_run
        else:
            self._work.plan = read_plan(self.path)
            self._work.labels = read_labels(self._work.population, source)
        return self._work

    def propose(self) -> None:
        """Add answers to the plan, or begin it, unless some of it are still to be rated; errors as
        of :func:`~trustassay.workflows.label.command.label`.
        """
        with self._working, alone(self.path):
            try:
                work = self._read()
                told = work.told((), WIDTH, beyond=False) if work.plan else None
                if told is None or told.rated == told.drawn:
                    work.propose(PROPOSED)
            finally:
                if not self.path.stat().st_size:
                    self.path.unlink()


@lru_cache(maxsize=2)
def promise_of(site: Site, path: Path) -> Promise:
    """Return that of the run in a folder; those that were looked at last are kept."""
    return Promise(site, RunFolder(path))


def shown(site: Site, index: Index, request: Request) -> Response:
    """Return the page on which the next answer of the plan is rated, without its scores."""
    found = find(site, index, request)
    if isinstance(found, Response):
        return found
    row, listing = found
    promise = promise_of(site, listing.folder.path)
    promise.wait()
    try:
        plan = plan_of(listing.folder)
    except (UsageError, OSError) as error:
        return site.problem(row.title, str(error), 409)
    keys = [key for draw in plan.draws for key in draw.answers] if plan else []
    own = {key[0]: Rated(site, listing.folder, key).own for key in keys}
    waiting = [name for name, one in own.items() if one is None]
    skipped = [listing.place_of(name) for name, one in own.items() if one and not one.said]
    place = listing.place_of(waiting[0]) if waiting else None
    last = request.query_params.get("last", "")
    return site.html(
        "next.html.jinja",
        run=row,
        listing=listing,
        promise=promise,
        planned=len(own),
        waiting=len(waiting),
        skipped=[at for at in skipped if at is not None],
        place=place,
        sample=None if place is None else listing.sample(place),
        query={"run": row.key, "page": "next"},
        last=int(last) if NUMBER.fullmatch(last) else None,
    )


# what is stored


def _rate(site: Site, listing: Listing, place: int, fields: Fields) -> None:
    choice, note = fields.get("choice", ""), fields.get("note", "")
    rate(site, listing.folder, listing.sample(place), fields.get("act", "rate"), choice, note)
    promise = promise_of(site, listing.folder.path)
    if promise.result:  # somebody looks at it
        promise.wait(0)


def _mark(site: Site, listing: Listing, place: int, fields: Fields) -> None:
    answer = answer_at(listing, place)
    if Rated(site, listing.folder, key_of(answer.sample)).hidden:
        raise NotOfferedError("rate the answer first: its verdicts are hidden until then")
    by_name = {one.name: one for one in answer.results}
    result, number = by_name.get(fields.get("metric", "")), fields.get("statement", "0")
    if result is None or not NUMBER.fullmatch(number):
        raise NotOfferedError("there is no such verdict")
    mark(site, listing.folder, answer.sample, result, int(number), fields.get("verdict", ""))


def _propose(site: Site, listing: Listing, _place: int, _fields: Fields) -> None:
    promise_of(site, listing.folder.path).propose()


ACTS: dict[str, Callable[[Site, Listing, int, Fields], None]] = {
    "rate": _rate,
    "verdict": _mark,
    "propose": _propose,
}


def _acted(site: Site, index: Index, request: Request, fields: Fields) -> Response:
    """Do what a form asks for, and return where it leads."""
    found = find(site, index, request)
    if isinstance(found, Response):
        raise HTTPException(404)
    row, listing = found
    if row.state != FINISHED:
        raise HTTPException(409, "the run is not finished; rate it when it is.")
    asked, name = request.query_params, request.url.path.rpartition("/")[2]
    at = asked.get("at", "0")
    place = int(at) if NUMBER.fullmatch(at) else -1
    if not 0 <= place < len(listing):
        read = listing.read >= listing.total
        raise HTTPException(404 if read else 503, "the run is being read.")
    ACTS[name](site, listing, place, fields)
    if asked.get("page") == "next":
        last = place if name == "rate" else None
        return RedirectResponse(address(site.base, "next", run=row.key, last=last), 303)
    query = {"run": row.key, "at": place, **Asked.of(asked).query()}
    return RedirectResponse(address(site.base, "answer", **query), 303)


def routes(site: Site, index: Index, links: Links, tell: Tell) -> list[Route]:
    """Return the addresses that take the forms of :data:`ACTS`."""

    async def endpoint(request: Request) -> Response:
        if links.owner(request.path_params["token"]) is None:
            raise HTTPException(404)
        if not site.rater:
            return PlainTextResponse("only read here: --rate NAME lets NAME rate.", 403)
        fields = await read_fields(request)
        try:
            return await asyncio.to_thread(_acted, site, index, request, fields)
        except NotOfferedError as error:
            return PlainTextResponse(str(error), 400)
        except (UsageError, OSError) as error:
            tell(f"{site.rater}: a rating was not stored: {error}")
            full = isinstance(error, OSError) and is_full(error)
            return PlainTextResponse("the disk is full." if full else f"{error}.", 503)

    return [Route(f"/{{token}}/{name}", endpoint, methods=["POST"]) for name in ACTS]
