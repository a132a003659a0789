"""How long rating in `view` takes on runs of many answers: the first rating, a plan, and what the
page then says of all answers after each rating.

    python -m lab.benchmarks.view_rating --answers 2000 --answers 20000 --answers 200000

A run of made-up answers is scored by the lexical entailer, and its lines are repeated under other
ids. The pages are asked in this process, by a new application for each size, as after a start.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from starlette.testclient import TestClient

from lab.results import write_result
from trustassay import score
from trustassay.report.serving import AccessLinks
from trustassay.runs.folder import RunFolder
from trustassay.view.index import Index
from trustassay.view.next import LabelProgress, progress_of
from trustassay.view.pages import Site
from trustassay.view.rating import plan_of
from trustassay.view.server import application

SCORED = 200
RATED = 30
PASSAGE = (
    "The town of number {n} lies on the river Arve. It has {houses} houses, a mill and a bridge. "
)


def rows(number: int) -> Iterator[dict[str, Any]]:
    """Answers of some 100 words with their passages; every third has a wrong number."""
    for n in range(number):
        told = PASSAGE.format(n=n, houses=100 + n)
        answer = PASSAGE.format(n=n, houses=100 + n + (n % 3 == 0))
        documents = [told + "Many people go there by boat in summer. " * 8, told[:40] * 6]
        yield {
            "id": f"t{n}",
            "question": f"What is known of the town of number {n}?",
            "response": answer * 4,
            "documents": documents,
        }


def make_run(folder: Path, answers: int) -> None:
    """Write a finished run of so many answers, whose lines are those of ``SCORED`` repeated."""
    score(list(rows(SCORED)), metrics="faithfulness", entailer="lexical", out=folder, report=False)
    for name in ("samples.jsonl", "assessments.jsonl"):
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        with (folder / name).open("wb") as file:
            for n in range(answers):
                line = lines[n % len(lines)]
                old = f"t{n % len(lines)}"
                line = line.replace(b'"id": "%s"' % old.encode(), b'"id": "t%d"' % n, 1)
                file.write(
                    line.replace(b"of number %s?" % old[1:].encode(), b"of number %d?" % n, 1)
                )
    for name in ("run", "summary"):
        content = json.loads((folder / f"{name}.json").read_bytes())
        if name == "run":
            content["samples"]["samples"] = answers
        RunFolder(folder).write_json(name, content)


def measure(root: Path, answers: int) -> dict[str, Any]:
    """Return the seconds that each step takes, of a run of so many answers."""
    make_run(root / "one", answers)
    index = Index(root, root / "index.sqlite")
    index.refresh()
    links = AccessLinks(root / "index.sqlite", ["viewer"])
    base = f"/{links.tokens['viewer']}"
    site = Site(root.resolve(), base, "anna")
    client = TestClient(application(site, index, links, print, None))
    folder = RunFolder(root.resolve() / "one")
    start = time.monotonic()
    while client.get(f"{base}/answer?run=one&at={answers - 1}").status_code != 200:
        pass
    opened = time.monotonic()
    reply = client.post(f"{base}/rate?run=one&at={answers - 1}", data={"choice": "4"})
    reply.raise_for_status()
    first = time.monotonic()
    client.post(f"{base}/rate?run=one&at=7", data={"choice": "4"}).raise_for_status()
    second = time.monotonic()
    client.post(f"{base}/propose?run=one&page=next").raise_for_status()
    planned = time.monotonic()
    promise = progress_of(site, root / "one")
    told: list[float] = []
    plan = plan_of(folder)
    assert plan
    for draw in plan.draws[:RATED]:
        place = int(draw.answers[0][0].removeprefix("t"))
        choice = "0" if place % 3 == 0 else "5"
        url, sent = f"{base}/rate?run=one&at={place}&page=next", time.monotonic()
        client.post(url, data={"choice": choice}, follow_redirects=False)
        wait(promise)
        told.append(time.monotonic() - sent)
    share = promise.result and promise.result.figures[0].interval
    return {
        "answers": answers,
        "megabytes": round((root / "one" / "samples.jsonl").stat().st_size / 1e6, 1),
        "last_answer_shown_s": round(opened - start, 2),
        "first_rating_s": round(first - opened, 2),
        "further_rating_s": round(second - first, 3),
        "plan_s": round(planned - second, 2),
        "told_after_a_rating_s": {
            "median": round(sorted(told)[len(told) // 2], 2),
            "largest": round(max(told), 2),
        },
        "interval": share and [round(end, 3) for end in share],
    }


def wait(promise: LabelProgress) -> None:
    """Wait until what the page says is of all ratings."""
    while not promise.ready:
        promise.wait(1.0)


def main() -> None:
    """Measure and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, action="append", required=True)
    sizes = parser.parse_args().answers
    figures = []
    for answers in sizes:
        with TemporaryDirectory() as folder:
            figures.append(measure(Path(folder), answers))
        print(json.dumps(figures[-1]))
    words = " ".join(f"--answers {one}" for one in sizes)
    data = "made-up answers of 100 words, scored by the lexical entailer, on two shared cores"
    write_result("view-rating", f"python -m lab.benchmarks.view_rating {words}", data, figures)


if __name__ == "__main__":
    main()
