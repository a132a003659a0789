"""The page of what to rate next, and the addresses that store ratings.

The page shows the next answer that ``label`` drew, and what the ratings say about all answers.
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

from trustassay.core.files import is_disk_full, open_locked
from trustassay.errors import UsageError
from trustassay.people.annotate.session import NotOfferedError
from trustassay.people.label.calibration_work import (
    CalibrationPromise,
    labels_of_rubric,
    open_promise,
)
from trustassay.people.label.command import (
    DEFAULT_PROPOSED_ANSWERS,
    Labelling,
    LabelWork,
    PlanOptions,
    default_plan,
    open_work,
)
from trustassay.people.label.plan import read_plan
from trustassay.people.label.population import read_labels
from trustassay.report.serving import (
    FORM_NUMBER,
    AccessLinks,
    FormFields,
    MessageWriter,
    read_fields,
)
from trustassay.runs.folder import RunFolder
from trustassay.view.answers import answer_at, find_run
from trustassay.view.index import FINISHED, Index, file_stamp
from trustassay.view.listing import AnswerQuery, Listing
from trustassay.view.pages import PageError, Site, address
from trustassay.view.rating import (
    PeopleRatings,
    key_of,
    plan_of,
    ratings_paths,
    store_mark,
    store_rating,
)

TARGET_WIDTH = 0.1
"""The width of the interval that the rating aims at: the page shows how many ratings are left."""
PATIENCE_S = 0.3
"""Seconds that a page waits for a computation."""


class LabelProgress:
    """The estimate for all answers of a run from its ratings, computed in a thread after each one.

    ``result`` is ``None`` without a plan, and until it is computed. ``fault`` says why it cannot be
    computed.
    """

    def __init__(self, site: Site, folder: RunFolder) -> None:
        self._site, self._folder = site, folder
        self.path = default_plan(folder.path.resolve())
        self._work: LabelWork | None = None
        self._of_run = self._of = ""
        # The first guards the start of a thread; the second the work, which a proposal does as
        # well.
        self._starting, self._working = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        self.result: Labelling | None = None
        self.fault = ""

    def _join_stamps(self) -> str:
        """Return a text that changes with any file that the result depends on."""
        folder = self._folder
        files = (folder.samples_path, folder.assessments_path, self.path)
        return " ".join(map(file_stamp, (*files, *ratings_paths(self._site, folder))))

    @property
    def ready(self) -> bool:
        """Whether the result takes all stored ratings into account."""
        return self._of == self._join_stamps()

    def wait(self, seconds: float = PATIENCE_S) -> None:
        """Compute the result if needed; return when it is ready or the time is over."""
        with self._starting:
            if not self.ready and not (self._thread and self._thread.is_alive()):
                self._thread = threading.Thread(target=self._compute, daemon=True)
                self._thread.start()
        if self._thread:
            self._thread.join(seconds)

    def _compute(self) -> None:
        """Compute the result until no file has changed meanwhile."""
        while not self.ready:
            # Taken before reading: a rating that comes while this works makes it work once more.
            now = self._join_stamps()
            try:
                with self._working:
                    work = self._read_work()
                    self.result = (
                        work.summarise((), TARGET_WIDTH, beyond=False) if work.plan else None
                    )
                self.fault = ""
            except Exception as error:  # it is told on the page, which goes on
                is_expected = isinstance(error, UsageError | OSError)
                self.result = None
                self.fault = str(error) if is_expected else f"{type(error).__name__}: {error}"
            self._of = now

    def _read_work(self) -> LabelWork:
        """Return the answers, which are read once, with the current plan and labels."""
        rubric = self._site.scale.rubric
        assert rubric
        files = [path for path in ratings_paths(self._site, self._folder) if path.exists()]
        source = labels_of_rubric(files, rubric)
        # Reading the answers takes long; ratings change often, runs rarely.
        of_run = file_stamp(self._folder.samples_path) + file_stamp(self._folder.assessments_path)
        if self._work is None or self._work.plan is None or of_run != self._of_run:
            self._work = open_work([self._folder.path], self.path, source, PlanOptions())
            self._of_run = of_run
        else:
            self._work.plan = read_plan(self.path)
            self._work.right = read_labels(self._work.population, source)
        return self._work

    def propose(self) -> None:
        """Begin the plan, or add answers to it if all of it are rated.

        Errors are those of :func:`~trustassay.people.label.command.label`.
        """
        with self._working, open_locked(self.path):
            try:
                work = self._read_work()
                labelling = work.summarise((), TARGET_WIDTH, beyond=False) if work.plan else None
                if labelling is None or labelling.rated == labelling.drawn:
                    work.propose(DEFAULT_PROPOSED_ANSWERS)
            finally:
                # The lock creates the file: without a plan in it, it is removed again.
                if not self.path.stat().st_size:
                    self.path.unlink()


@lru_cache(maxsize=2)
def progress_of(site: Site, path: Path) -> LabelProgress:
    """Return the progress of the run in a folder, from a cache of the last ones."""
    return LabelProgress(site, RunFolder(path))


@lru_cache(maxsize=2)
def _open_promise(site: Site, path: Path, _stamp: str) -> CalibrationPromise:
    folder, rubric = RunFolder(path), site.scale.rubric
    plan = plan_of(folder)
    assert plan and rubric
    return open_promise(path, plan, ratings_paths(site, folder), rubric)


def update_promise(site: Site, folder: RunFolder, *, may_grow: bool) -> CalibrationPromise | None:
    """Return what a plan for calibrate promises by now; ``None`` where the run has none.

    Args:
        site: has the rubric. folder: the run.
        may_grow: whether the plan may be continued, if all of it is rated.
    """
    plan = plan_of(folder)
    if plan is None or not plan.purpose:
        return None
    stamp = file_stamp(folder.samples_path) + file_stamp(folder.assessments_path)
    promise = _open_promise(site, folder.path, f"{stamp} {plan.name}")
    promise.update(may_grow=may_grow)
    return promise


def next_page(site: Site, index: Index, request: Request) -> Response:
    """Return the page for rating the next answer of the plan; it shows no scores."""
    row, listing = find_run(site, index, request)
    promise = progress_of(site, listing.folder.path)
    try:
        calibration = update_promise(site, listing.folder, may_grow=False)
        plan = plan_of(listing.folder)
    except (UsageError, OSError) as error:
        return site.problem(row.title, str(error), 409)
    if calibration is None:
        promise.wait()
    # The order of the plan is the order of rating: draws depend on the labels before them.
    keys = [key for draw in plan.draws for key in draw.answers] if plan else []
    own_ratings = {key[0]: PeopleRatings(site, listing.folder, key).own for key in keys}
    waiting = [name for name, rating in own_ratings.items() if rating is None]
    # Skipped answers can be rated later; they do not block the next one.
    skipped = [
        listing.place_of(name)
        for name, rating in own_ratings.items()
        if rating and not rating.level
    ]
    place = listing.place_of(waiting[0]) if waiting else None
    last = request.query_params.get("last", "")
    return site.html(
        "next.html.jinja",
        run=row,
        listing=listing,
        promise=promise,
        calibration=calibration,
        planned=len(own_ratings),
        waiting=len(waiting),
        skipped=[at for at in skipped if at is not None],
        place=place,
        sample=None if place is None else listing.sample(place),
        query={"run": row.key, "page": "next"},
        last=int(last) if FORM_NUMBER.fullmatch(last) else None,
    )


# forms


def _rate(site: Site, listing: Listing, place: int, fields: FormFields) -> None:
    choice, note = fields.get("choice", ""), fields.get("note", "")
    store_rating(
        site, listing.folder, listing.sample(place), fields.get("act", "rate"), choice, note
    )
    # Only a rating continues a plan for calibrate: a page that is looked at writes nothing.
    update_promise(site, listing.folder, may_grow=True)
    promise = progress_of(site, listing.folder.path)
    # starts the computation now, so that the next page need not wait
    if promise.result:  # somebody looks at it
        promise.wait(0)


def _mark(site: Site, listing: Listing, place: int, fields: FormFields) -> None:
    answer = answer_at(listing, place)
    if PeopleRatings(site, listing.folder, key_of(answer.sample)).hidden:
        raise NotOfferedError("rate the answer first: its verdicts are hidden until then")
    by_name = {result_of_metric.name: result_of_metric for result_of_metric in answer.results}
    result, number = by_name.get(fields.get("metric", "")), fields.get("statement", "0")
    if result is None or not FORM_NUMBER.fullmatch(number):
        raise NotOfferedError("there is no such verdict")
    store_mark(site, listing.folder, answer.sample, result, int(number), fields.get("verdict", ""))


def _propose(site: Site, listing: Listing, _place: int, _fields: FormFields) -> None:
    progress_of(site, listing.folder.path).propose()


FORM_ACTIONS: dict[str, Callable[[Site, Listing, int, FormFields], None]] = {
    "rate": _rate,
    "verdict": _mark,
    "propose": _propose,
}


def _perform(site: Site, index: Index, request: Request, fields: FormFields) -> Response:
    """Perform the action of a form, and return a redirect to the page that follows."""
    try:
        row, listing = find_run(site, index, request)
    except PageError:
        raise HTTPException(404) from None
    if reason := site.explain_read_only(listing.folder):
        raise HTTPException(409, reason)
    if row.state != FINISHED:
        raise HTTPException(409, "the run is not finished; you can rate it when it is.")
    params, name = request.query_params, request.url.path.rpartition("/")[2]
    at = params.get("at", "0")
    place = int(at) if FORM_NUMBER.fullmatch(at) else -1
    if not 0 <= place < len(listing):
        read = listing.read >= listing.total
        # 503 while the answer may still come: the page's script tries again
        raise HTTPException(404 if read else 503, "the run is being read.")
    FORM_ACTIONS[name](site, listing, place, fields)
    if params.get("page") == "next":
        last = place if name == "rate" else None
        return RedirectResponse(address(site.base, "next", run=row.key, last=last), 303)
    query = {"run": row.key, "at": place, **AnswerQuery.of(params).to_fields()}
    return RedirectResponse(address(site.base, "answer", **query), 303)


def routes(site: Site, index: Index, links: AccessLinks, tell: MessageWriter) -> list[Route]:
    """Return the routes of the forms in :data:`FORM_ACTIONS`."""

    async def endpoint(request: Request) -> Response:
        if links.find_owner(request.path_params["token"]) is None:
            raise HTTPException(404)
        if not site.rater:
            return PlainTextResponse(
                "these pages are read-only; to rate, start `trustassay view` with --rate NAME.", 403
            )
        # Read only now: a sender without the right to rate is refused before its form is.
        fields = await read_fields(request)
        try:
            return await asyncio.to_thread(_perform, site, index, request, fields)
        except NotOfferedError as error:
            return PlainTextResponse(str(error), 400)
        except (UsageError, OSError) as error:
            tell(f"{site.rater}: a rating was not stored: {error}")
            full = isinstance(error, OSError) and is_disk_full(error)
            return PlainTextResponse("the disk is full." if full else f"{error}.", 503)

    return [Route(f"/{{token}}/{name}", endpoint, methods=["POST"]) for name in FORM_ACTIONS]
