"""Pages of a run's answers: the list with filters, one answer, and what belongs to it.

These are the answers to the same question in other runs, and the calls behind an answer.
"""

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from trustassay.calls.prices import Prices, TokenCounts
from trustassay.calls.store import build_read_only_uri
from trustassay.core.evidence import Piece, diff_words
from trustassay.core.sample import Sample, SampleError, question_key
from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.report.answers import AnswerCard, answer_of
from trustassay.report.serving import FORM_NUMBER
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import decode_object, read_lines
from trustassay.view.index import FINISHED, Index, RunRow
from trustassay.view.listing import AnswerQuery, Listing
from trustassay.view.pages import PageError, Site, format_time, read_page_number
from trustassay.view.rating import PeopleRatings, key_of, verdicts_of

A_PAGE = 50
"""Answers on a page."""
NO_RUN = "This folder has no run of that name; it may have been moved or removed."
STARTING_S = 5.0
"""Seconds that a page waits for a run that a server which has just started may not know yet."""
NO_ANSWER = "This run has no such answer, or the answer has not been read yet."
OTHER_RUNS = 200
"""The most runs, newest first, in which the same question is looked for."""
SEARCHING_S = 2.0
"""Seconds after which a search through files ends; the page then says that it is incomplete."""
MOST_CALLS = 40
"""The most calls that a page shows."""
SHORTEST = 16
"""The fewest characters of a text by which a request is recognised; less matches by chance."""


class ViewedRun(NamedTuple):
    """The run of a page."""

    row: RunRow
    """Its row in the table of runs."""
    listing: Listing
    """Its answers."""


def find_run(site: Site, index: Index, request: Request) -> ViewedRun:
    """Return the run that an address names; PageError if it cannot be shown."""
    key = request.query_params.get("run", "")
    # A server that has just started may not have read this run yet.
    if index.run(key) is None:
        index.complete.wait(STARTING_S)
    row = index.run(key)
    if row is None:
        raise PageError("No such run", f"{key[:200]}: {NO_RUN}")
    try:
        return ViewedRun(row, site.listings.of(index.folder(row)))
    except (RunFolderError, UnknownNameError, OSError) as error:
        # 409: the run is there, and can be shown when its files are repaired
        raise PageError(row.title, str(error), 409) from None


def answers_page(site: Site, index: Index, request: Request) -> Response:
    """Return the page with the list of a run's answers, as the query of the address says."""
    row, listing = find_run(site, index, request)
    answer_query = AnswerQuery.of(request.query_params)
    places = listing.places(answer_query)
    page = read_page_number(request.query_params)
    places_on_page = places[A_PAGE * (page - 1) : A_PAGE * page].tolist()
    answers = [answer_at(listing, place) for place in places_on_page]
    return site.html(
        "answers.html.jinja",
        run=row,
        made=format_time(row.made),
        listing=listing,
        asked=answer_query,
        query={"run": row.key, **answer_query.to_fields()},
        answers=answers,
        # In blind mode the scores of answers that are not rated yet are not shown.
        hidden={
            answer.place
            for answer in answers
            if PeopleRatings(site, listing.folder, key_of(answer.sample)).hidden
        },
        count=len(places),
        page=page,
        pages=-(-len(places) // A_PAGE),
        figures=index.figures(row.key),
    )


def answer_page(site: Site, index: Index, request: Request) -> Response:
    """Return the page of an answer, with links to its neighbours in the list that it is from."""
    viewed = find_run(site, index, request)
    row, listing = viewed
    answer_query = AnswerQuery.of(request.query_params)
    place = _find_place(viewed, request)
    order = listing.places(answer_query).tolist()
    at = order.index(place) if place in order else -1
    answer = answer_at(listing, place)
    folder, sample = listing.folder, answer.sample
    ratings = PeopleRatings(site, folder, key_of(sample))
    # Verdicts of an unfinished run may still change, so they cannot be marked.
    may_mark = site.find_rater(folder) and not ratings.hidden and row.state == FINISHED
    return site.html(
        "blind.html.jinja" if ratings.hidden else "one.html.jinja",
        run=row,
        listing=listing,
        asked=answer_query,
        query={"run": row.key, **answer_query.to_fields()},
        answer=replace(answer, ratings=ratings.shown),
        given=ratings,
        marked=verdicts_of(site, folder, sample, answer.results, ratings.faults)
        if may_mark
        else [],
        place=place,
        number=at + 1,
        count=len(order),
        before=order[at - 1] if at > 0 else None,
        after=order[at + 1] if 0 <= at < len(order) - 1 else None,
    )


def _find_place(viewed: ViewedRun, request: Request) -> int:
    """Return the place that an address names, by number (``at``) or by the sample's id.

    Raises:
        PageError: there is no such answer.
    """
    text = request.query_params.get("at", "")
    if FORM_NUMBER.fullmatch(text):
        place = int(text) if int(text) < len(viewed.listing) else None
    else:
        place = viewed.listing.place_of(request.query_params.get("id", ""))
    if place is None:
        raise PageError(viewed.row.title, NO_ANSWER)
    return place


def answer_at(listing: Listing, place: int) -> AnswerCard:
    """Return the answer at a place, with its assessments."""
    sample, assessments = listing.sample(place), listing.assessments(place)
    return answer_of(place + 1, place, sample, assessments, listing.columns)


# the same question elsewhere


class OtherRunAnswer(NamedTuple):
    """An answer of another run, or of another model, to the same question."""

    run: RunRow
    """Its run."""
    place: int
    """Its place in that run."""
    sample: Sample
    """Its sample."""
    pieces: Sequence[Piece] | None
    """Its text with the differences from the answer of the page; ``None`` if too much differs."""
    verdicts: str
    """Its verdicts and scores, or why they are hidden."""


def elsewhere_page(site: Site, index: Index, request: Request) -> Response:
    """Return the fragment of a page with the answers to the same question in other runs."""
    (row, _), place, sample = _find_answer(site, index, request)
    other_answers, is_complete = _find_same_question(site, index, row.key, place, sample)
    return site.html("elsewhere.html.jinja", others=other_answers, whole=is_complete, run=row)


def _find_answer(site: Site, index: Index, request: Request) -> tuple[ViewedRun, int, Sample]:
    """Return the answer that an address names.

    Raises:
        PageError: it cannot be shown, in blind mode because it has not been rated yet.
    """
    viewed = find_run(site, index, request)
    place = _find_place(viewed, request)
    sample = viewed.listing.sample(place)
    # Calls and other answers would give away the verdict.
    if PeopleRatings(site, viewed.listing.folder, key_of(sample)).hidden:
        raise PageError(viewed.row.title, "Hidden until you rate the answer.", 409)
    return viewed, place, sample


def _find_same_question(
    site: Site, index: Index, key: str, place: int, sample: Sample
) -> tuple[list[OtherRunAnswer], bool]:
    """Return the other answers to a sample's question, and whether all runs were searched."""
    key_of_question, end = question_key(sample.question), time.monotonic() + SEARCHING_S
    # The beginning of the question, as JSON writes it, sorts out most lines without parsing them.
    needle = json.dumps(sample.question)[1:-1][:80].encode()
    # The run itself first (other models), then the newest. One more row than is searched tells
    # whether these are all.
    query = "SELECT * FROM runs WHERE state = ? ORDER BY key = ? DESC, made DESC LIMIT ?"
    rows = [RunRow(*columns) for columns in index.ask(query, (FINISHED, key, OTHER_RUNS + 1))]
    result: list[OtherRunAnswer] = []
    for row in rows[:OTHER_RUNS]:
        if not key_of_question:
            continue
        try:
            folder = index.folder(row)
        except RunFolderError:
            continue  # its own page says why
        for number, line in enumerate(read_lines(folder.samples_path)):
            if time.monotonic() > end:
                return result, False
            if needle not in line or (row.key == key and number == place):
                continue
            try:
                other = Sample.parse(decode_object(line))
            except (ValueError, SampleError):
                continue  # its own page names the line
            if question_key(other.question) == key_of_question:
                pieces = diff_words(sample.response or "", other.response or "")
                verdicts = "not yet rated by you"
                if not PeopleRatings(site, folder, key_of(other)).hidden:
                    verdicts = ", ".join(_read_verdicts(folder, other.id, end))
                result.append(OtherRunAnswer(row, number, other, pieces, verdicts))
    return result, len(rows) <= OTHER_RUNS


def _read_verdicts(folder: RunFolder, sample_id: str, end: float) -> Iterator[str]:
    """Yield the verdict and the score of each metric for a sample."""
    # assessments are written with the id first, so that a line can be recognised without parsing
    beginning = f'{{"id": {json.dumps(sample_id)}, '.encode()
    for line in read_lines(folder.assessments_path):
        if line.startswith(beginning):
            assessment = json.loads(line)
            score = "no score" if assessment.get("score") is None else f"{assessment['score']:.2f}"
            word = (
                "failed" if assessment.get("error") is not None else assessment.get("verdict") or ""
            )
            yield f"{assessment['metric']} {word} {score}".replace("  ", " ")
        elif time.monotonic() > end:
            return


# the calls behind it


class QuotingCall(NamedTuple):
    """A stored call whose request quotes an answer."""

    capability: str
    """The capability that was called."""
    backend: str
    """The backend that replied."""
    request: str
    """The request, laid out for reading."""
    reply: str
    """The reply, laid out for reading."""
    seconds: float
    """How long the call took."""
    tokens: str
    """The tokens of prompt and reply in words; empty if they are not known."""
    usd: float | None
    """The published price; ``None`` where there is none."""


def calls_page(site: Site, index: Index, request: Request) -> Response:
    """Return the fragment of a page with the calls whose request quotes an answer."""
    (row, listing), place, sample = _find_answer(site, index, request)
    texts = _collect_quotes(
        sample, [assessment.evidence for assessment in listing.assessments(place)]
    )
    try:
        quoting_calls, is_complete = _find_calls(listing.folder, texts)
    except sqlite3.Error as error:
        message = f"{listing.folder.calls_path}: the stored calls cannot be read ({error})"
        raise PageError(row.title, message, 409) from None
    return site.html("calls.html.jinja", calls=quoting_calls, whole=is_complete, most=MOST_CALLS)


def _collect_quotes(sample: Sample, evidence: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the texts by which requests about an answer are recognised."""
    pieces = [
        str(record["text"]) for records in evidence for record in records if record.get("text")
    ]
    texts = [sample.response or "", sample.question, *pieces]
    return list(dict.fromkeys(text.strip() for text in texts if len(text.strip()) >= SHORTEST))


def _find_calls(folder: RunFolder, texts: Sequence[str]) -> tuple[list[QuotingCall], bool]:
    """Return the stored calls whose request quotes one of the texts, and whether these are all."""
    if not folder.calls_path.exists() or not texts:
        return [], True
    end, prices = time.monotonic() + SEARCHING_S, Prices()
    result: list[QuotingCall] = []
    forms = [form for text in texts for form in {text, *_json_forms(text)}]
    query = "SELECT capability, backend, request, reply, seconds, prompt_tokens, reply_tokens FROM "
    # read only: a run that is being written keeps its own connection
    with closing(sqlite3.connect(build_read_only_uri(folder.calls_path), uri=True)) as store:
        for row in store.execute(f"{query} calls ORDER BY rowid"):
            if time.monotonic() > end or len(result) == MOST_CALLS:
                return result, False
            if any(form in row[2] for form in forms):
                result.append(_build_call(row, prices))
    return result, True


def _json_forms(text: str) -> set[str]:
    """Return a text as it appears in JSON, with other characters than ASCII escaped and not."""
    return {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}


def _build_call(row: tuple[Any, ...], prices: Prices) -> QuotingCall:
    capability, backend, request, reply, seconds, prompt, replied = row
    tokens, usd = "", None
    if prompt is not None and replied is not None:
        tokens = f"{prompt:,} + {replied:,} tokens"
        usd = prices.usd(backend, TokenCounts(prompt, replied))
    return QuotingCall(
        capability, backend, _lay_out(request), _lay_out(reply), seconds, tokens, usd
    )


def _lay_out(text: str) -> str:
    """Return JSON with each part on its own line, and with real line ends in its texts."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1).replace("\\n", "\n")
