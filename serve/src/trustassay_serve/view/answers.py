"""The answers of a run: a list with filters, and the page of one answer."""

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from trustassay.calls.prices import Prices, Tokens
from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import decoded, file_lines
from trustassay.sample import Sample, SampleError, question_key
from trustassay.show.answers import Answer, answer_of
from trustassay.views import Piece, word_differences
from trustassay.workflows.serving import NUMBER
from trustassay_serve.view.index import FINISHED, Index, RunRow
from trustassay_serve.view.listing import Asked, Listing
from trustassay_serve.view.pages import Site, when
from trustassay_serve.view.rating import Rated, key_of, verdicts_of

A_PAGE = 50
"""Answers on a page."""
NO_RUN = "There is no run of this name here; it may have been moved or removed."
STARTING_S = 5.0
"""Seconds that a page waits for a run which a server that has just begun does not know yet."""
NO_ANSWER = "There is no such answer in this run, or it is not read yet."
OTHER_RUNS = 200
"""Runs, the newest first, in which the same question is looked for."""
SEARCHING_S = 2.0
"""Seconds after which a search through files ends, and says so."""
MOST_CALLS = 40
SHORTEST = 16
"""Characters of a text by which a request is recognised as one about an answer."""


class Run(NamedTuple):
    """A run that is looked at."""

    row: RunRow
    listing: Listing


def find(site: Site, index: Index, request: Request, name: str = "run") -> Run | Response:
    """Return the run that an address names, or the page that says why it cannot be shown."""
    key = request.query_params.get(name, "")
    if index.run(key) is None:
        index.complete.wait(STARTING_S)
    row, folder = index.run(key), index.folder(key)
    if row is None or folder is None:
        return site.problem("No such run", f"{key[:200]}: {NO_RUN}")
    try:
        return Run(row, site.listings.of(folder))
    except (RunFolderError, UnknownNameError, OSError) as error:
        return site.problem(row.title, str(error), 409)


def listed(site: Site, index: Index, request: Request) -> Response:
    """Return the list of a run's answers; what is asked for stays in the address."""
    found = find(site, index, request)
    if isinstance(found, Response):
        return found
    row, listing = found
    asked = Asked.of(request.query_params)
    places = listing.places(asked)
    page = _number(request, "page", 1)
    shown = places[A_PAGE * (page - 1) : A_PAGE * page].tolist()
    listed = [answer_at(listing, place) for place in shown]
    return site.html(
        "answers.html.jinja",
        run=row,
        made=when(row.made),
        listing=listing,
        asked=asked,
        query={"run": row.key, **asked.query()},
        answers=listed,
        hidden={
            one.place for one in listed if Rated(site, listing.folder, key_of(one.sample)).hidden
        },
        count=len(places),
        page=page,
        pages=-(-len(places) // A_PAGE),
        figures=index.figures(row.key),
    )


def one(site: Site, index: Index, request: Request) -> Response:
    """Return the page of an answer, between those before and after it in the list it is from."""
    found = find(site, index, request)
    if isinstance(found, Response):
        return found
    row, listing = found
    asked = Asked.of(request.query_params)
    place = _place(listing, request)
    if place is None:
        return site.problem(
            row.title, "There is no such answer in this run, or it is not read yet."
        )
    order = listing.places(asked).tolist()
    at = order.index(place) if place in order else -1
    answer = answer_at(listing, place)
    folder, sample = listing.folder, answer.sample
    given = Rated(site, folder, key_of(sample))
    may_mark = site.rater and not given.hidden and row.state == FINISHED
    return site.html(
        "blind.html.jinja" if given.hidden else "one.html.jinja",
        run=row,
        listing=listing,
        asked=asked,
        query={"run": row.key, **asked.query()},
        answer=replace(answer, ratings=given.shown),
        given=given,
        marked=verdicts_of(site, folder, sample, answer.results, given.faults) if may_mark else [],
        place=place,
        number=at + 1,
        count=len(order),
        before=order[at - 1] if at > 0 else None,
        after=order[at + 1] if 0 <= at < len(order) - 1 else None,
    )


def _number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name, "")
    return max(1, int(given)) if NUMBER.fullmatch(given) else default


def _place(listing: Listing, request: Request) -> int | None:
    """Return the place that an address names, by number (``at``) or by the sample's id."""
    given = request.query_params.get("at", "")
    if NUMBER.fullmatch(given):
        return int(given) if int(given) < len(listing) else None
    return listing.place_of(request.query_params.get("id", ""))


def answer_at(listing: Listing, place: int) -> Answer:
    """Return the answer at a place with what the metrics say of it."""
    sample, assessments = listing.sample(place), listing.assessments(place)
    return answer_of(place + 1, place, sample, assessments, listing.columns)


# the same question elsewhere


class Elsewhere(NamedTuple):
    """The answer of another run, or of another model, to the same question.

    pieces: its text with what differs from the answer that is looked at; ``None`` where too much
    does. place: its place in its run.
    """

    run: RunRow
    place: int
    sample: Sample
    pieces: Sequence[Piece] | None
    verdicts: str


def elsewhere(site: Site, index: Index, request: Request) -> Response:
    """Return the part of a page with the answers to the same question in other runs."""
    found = _behind(site, index, request)
    if isinstance(found, Response):
        return found
    (row, _), place, sample = found
    others, whole = _same_question(site, index, row.key, place, sample)
    return site.html("elsewhere.html.jinja", others=others, whole=whole, run=row)


def _behind(site: Site, index: Index, request: Request) -> tuple[Run, int, Sample] | Response:
    """Return the answer that an address names, or the page that says why what is behind it is not
    shown: who rates blind sees it when it is rated.
    """
    found = find(site, index, request)
    if isinstance(found, Response):
        return found
    place = _place(found.listing, request)
    if place is None:
        return site.problem(found.row.title, NO_ANSWER)
    sample = found.listing.sample(place)
    if Rated(site, found.listing.folder, key_of(sample)).hidden:
        return site.problem(found.row.title, "This is shown when you have rated the answer.", 409)
    return found, place, sample


def _same_question(
    site: Site, index: Index, key: str, place: int, sample: Sample
) -> tuple[list[Elsewhere], bool]:
    """Return the answers to the question of a sample, and whether all runs were looked through."""
    key_of_question, end = question_key(sample.question), time.monotonic() + SEARCHING_S
    needle = json.dumps(sample.question)[1:-1][:80].encode()
    query = "SELECT * FROM runs WHERE state = ? ORDER BY key = ? DESC, made DESC LIMIT ?"
    rows = [RunRow(*one) for one in index.ask(query, (FINISHED, key, OTHER_RUNS + 1))]
    result: list[Elsewhere] = []
    for row in rows[:OTHER_RUNS]:
        folder = index.folder(row.key)
        if folder is None or not key_of_question:
            continue
        for number, line in enumerate(file_lines(folder.samples_path)):
            if time.monotonic() > end:
                return result, False
            if needle not in line or (row.key == key and number == place):
                continue
            try:
                other = Sample.parse(decoded(line))
            except (ValueError, SampleError):
                continue  # its own page names the line
            if question_key(other.question) == key_of_question:
                pieces = word_differences(sample.response or "", other.response or "")
                verdicts = "not rated by you yet"
                if not Rated(site, folder, key_of(other)).hidden:
                    verdicts = ", ".join(_verdicts(folder, other.id, end))
                result.append(Elsewhere(row, number, other, pieces, verdicts))
    return result, len(rows) <= OTHER_RUNS


def _verdicts(folder: RunFolder, sample_id: str, end: float) -> Iterator[str]:
    """Yield what each metric said of a sample, in a word or a score."""
    beginning = f'{{"id": {json.dumps(sample_id)}, '.encode()
    for line in file_lines(folder.assessments_path):
        if line.startswith(beginning):
            told = json.loads(line)
            score = "no score" if told.get("score") is None else f"{told['score']:.2f}"
            word = "failed" if told.get("error") is not None else told.get("verdict") or ""
            yield f"{told['metric']} {word} {score}".replace("  ", " ")
        elif time.monotonic() > end:
            return


# the calls behind it


class Call(NamedTuple):
    """A stored call; ``usd`` is its published price, ``None`` where it has none."""

    capability: str
    backend: str
    request: str
    reply: str
    seconds: float
    tokens: str
    usd: float | None


def calls(site: Site, index: Index, request: Request) -> Response:
    """Return the part of a page with the calls whose request quotes an answer."""
    found = _behind(site, index, request)
    if isinstance(found, Response):
        return found
    (_, listing), place, sample = found
    texts = _quoted(sample, [one.evidence for one in listing.assessments(place)])
    made, whole = _calls(listing.folder, texts)
    return site.html("calls.html.jinja", calls=made, whole=whole, most=MOST_CALLS)


def _quoted(sample: Sample, evidence: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the texts by which the requests about an answer are recognised."""
    pieces = [str(one["text"]) for own in evidence for one in own if one.get("text")]
    texts = [sample.response or "", sample.question, *pieces]
    return list(dict.fromkeys(text.strip() for text in texts if len(text.strip()) >= SHORTEST))


def _calls(folder: RunFolder, texts: Sequence[str]) -> tuple[list[Call], bool]:
    """Return the stored calls whose request quotes one of the texts, and whether all were seen."""
    if not folder.calls_path.exists() or not texts:
        return [], True
    end, prices = time.monotonic() + SEARCHING_S, Prices()
    result: list[Call] = []
    forms = [form for text in texts for form in {text, *_as_json(text)}]
    query = "SELECT capability, backend, request, reply, seconds, prompt_tokens, reply_tokens FROM "
    with closing(sqlite3.connect(f"file:{folder.calls_path.resolve()}?mode=ro", uri=True)) as store:
        for row in store.execute(f"{query} calls ORDER BY rowid"):
            if time.monotonic() > end or len(result) == MOST_CALLS:
                return result, False
            if any(form in row[2] for form in forms):
                result.append(_call(row, prices))
    return result, True


def _as_json(text: str) -> set[str]:
    """Return a text as it stands between the quotes of JSON, whichever way that was written."""
    return {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}


def _call(row: tuple[Any, ...], prices: Prices) -> Call:
    capability, backend, request, reply, seconds, prompt, replied = row
    tokens, usd = "", None
    if prompt is not None and replied is not None:
        tokens = f"{prompt:,} + {replied:,} tokens"
        usd = prices.usd(backend, Tokens(prompt, replied))
    return Call(capability, backend, _laid_out(request), _laid_out(reply), seconds, tokens, usd)


def _laid_out(text: str) -> str:
    """Return JSON with its parts on lines of their own and its line ends as they are."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1).replace("\\n", "\n")
