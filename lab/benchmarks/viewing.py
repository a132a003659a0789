"""How long the pages of `trustassay view` take, and how soon a fall among forty runs is found.

    python -m lab.benchmarks.viewing FOLDER --make     # forty runs of eight weeks: four minutes
    python -m lab.benchmarks.viewing FOLDER            # times; writes results/viewing.json
    python -m lab.benchmarks.viewing FOLDER --first    # times of the list of 2,000 runs
    python -m lab.benchmarks.viewing FOLDER --marks    # how often lines without a change have a
    mark
    python -m lab.benchmarks.viewing FOLDER --walk     # the tried hour in Chromium: clicks and
    seconds

The runs are real: `score` reads 160 answers about made-up towns, each to the same questions, five
runs a week. In every run some answers are wrong by chance (4 %); from the Tuesday of the sixth
week on a new version of the model writes wrong numbers (25 % of the answers about numbers).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lab.results import read_result, write_result
from trustassay.statistics.intervals import interval_within_bounds, unit_mean
from trustassay.statistics.levels import LevelEstimate, LevelStep, find_level_steps

RUNS, A_WEEK, ANSWERS, FALL = 40, 5, 160, 26
BEGIN = datetime.datetime(2026, 9, 28, 6, 30)
BY_CHANCE, WRONG_NUMBERS = 0.04, 0.25
MANY, LARGE = 2000, 200_000
LOADS = 20
LINES = 2000
FOR_THRESHOLD = 130
TEXTS = (".asked .passage .prose", ".asked > .prose")
"""Where the page of an answer has its passages and the response."""
NAMES = ["Al", "Bren", "Cor", "Dun", "Els", "Far", "Gor", "Hal", "Ist", "Jor"]
ENDS = ["ford", "mouth", "wick", "ham"]
TOWNS = [first + last for last in ENDS for first in NAMES]
RIVERS = ["Aren", "Bela", "Cind", "Dova", "Esk"]
COMMAND = "python -m lab.benchmarks.viewing FOLDER"


def facts(town: int) -> list[tuple[str, str, str, str]]:
    """Return domain, question, sentence and a wrong sentence of what is known of a town."""
    name, rng = TOWNS[town], np.random.default_rng([7, town])
    people, year, bridges = rng.integers(3, 90) * 100, rng.integers(900, 1890), rng.integers(2, 19)
    river = RIVERS[town % len(RIVERS)]
    other = RIVERS[(town + 2) % len(RIVERS)]

    def number(question: str, sentence: str, value: Any) -> tuple[str, str, str, str]:
        wrong = int(value) + int(rng.integers(1, 9)) * (100 if value > 1900 else 1)
        return "numbers", question, sentence.format(value), sentence.format(wrong)

    return [
        number(f"How many people live in {name}?", f"About {{}} people live in {name}.", people),
        number(f"When was {name} founded?", f"{name} was founded in the year {{}}.", year),
        number(f"How many bridges has {name}?", f"{name} has {{}} bridges.", bridges),
        (
            "rivers",
            f"On which river is {name}?",
            f"{name} lies on the river {river}.",
            f"{name} lies on the river {other}.",
        ),
    ]


def samples(run: int) -> list[dict[str, Any]]:
    """Return the answers of one run; ``run`` is its number, from 0."""
    rng, result = np.random.default_rng([11, run]), list[dict[str, Any]]()
    newer = run >= FALL
    for town in range(len(TOWNS)):
        known = facts(town)
        text = " ".join(sentence for _, _, sentence, _ in known)
        for place, (domain, question, right, wrong) in enumerate(known):
            chance = WRONG_NUMBERS if newer and domain == "numbers" else BY_CHANCE
            result.append(
                {
                    "id": f"{TOWNS[town]}-{place}",
                    "question": question,
                    "response": wrong if rng.random() < chance else right,
                    "documents": [{"title": TOWNS[town], "text": text}],
                    "model": "assistant-2026-11" if newer else "assistant-2026-09",
                    "domain": domain,
                }
            )
    return result[:ANSWERS]


def made_at(run: int) -> datetime.datetime:
    """Return when a run is said to be made: Monday to Friday mornings."""
    return BEGIN + datetime.timedelta(days=7 * (run // A_WEEK) + run % A_WEEK)


def begin_at(path: Path, at: datetime.datetime) -> None:
    """Write into a run that it began then."""
    run = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**run, "started": f"{at:%Y-%m-%dT%H:%M:%SZ}"}))


def make(folder: Path) -> None:
    """Score the answers of all runs, each into its folder; one that is finished stays."""
    from trustassay import score

    for run in range(RUNS):
        at = made_at(run)
        path = folder / f"nightly-{at:%m-%d}"
        if not (path / "summary.json").exists():
            score(samples(run), metrics="faithfulness", out=path)
        begin_at(path, at)
        print(path, flush=True)


@contextmanager
def served(folder: Path, cache: Path, *options: str) -> Iterator[str]:
    """Start the command on a folder; yield the address of its list of runs."""
    command = [sys.executable, "-m", "trustassay", "view", str(folder), "--port", "0", *options]
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        found = None
        while found is None:
            line = process.stderr.readline()
            if not line:
                raise RuntimeError("the server did not start")
            found = re.search(r"http://\S+/", line)
        yield found[0]
    finally:
        process.terminate()
        process.wait()


def fetched(address: str) -> tuple[float, str]:
    """Return how many milliseconds a page takes, and the page."""
    begin = time.perf_counter()
    with urllib.request.urlopen(address) as reply:
        text = reply.read().decode()
    return 1000 * (time.perf_counter() - begin), text


def loads(address: str) -> dict[str, float]:
    """Return the first time and the median of the others, in milliseconds, and the time of work
    that the server needs for one of the others, which others on the machine do not change.
    """
    first, before = fetched(address)[0], worked()
    times = [fetched(address)[0] for _ in range(LOADS)]
    work = 1000 * (worked() - before) / LOADS
    return {"first": round(first), "median": round(float(np.median(times))), "work": round(work)}


def worked() -> float:
    """Return the seconds of work of the processes that this one started."""
    here, ticks = os.getpid(), 0
    children = Path(f"/proc/{here}/task/{here}/children").read_text(encoding="ascii").split()
    for child in children:
        fields = Path(f"/proc/{child}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def until(address: str, ready: Callable[[str], bool]) -> float:
    """Return the seconds until a page is as wanted."""
    begin = time.perf_counter()
    while not ready(fetched(address)[1]):
        time.sleep(0.05)
    return round(time.perf_counter() - begin, 1)


def copies(folder: Path, into: Path) -> None:
    """Write 2,000 runs that hold the two small files of the forty alone, a day apart."""
    runs = sorted(folder.glob("nightly-*"))
    for place in range(MANY):
        source, target = runs[place * len(runs) // MANY], into / f"run-{place:04}"
        target.mkdir(parents=True)
        for name in ("run.json", "summary.json"):
            shutil.copy(source / name, target / name)
        begin_at(target, BEGIN + datetime.timedelta(days=place))


def large(source: Path, target: Path) -> None:
    """Write a run of 200,000 answers: those of a run again and again, each under its own id and
    with its own question."""
    target.mkdir(parents=True)
    for name in ("run.json", "summary.json"):
        shutil.copy(source / name, target / name)
    run = json.loads((target / "run.json").read_text())
    run["samples"]["samples"] = LARGE
    (target / "run.json").write_text(json.dumps(run))
    for name in ("samples.jsonl", "assessments.jsonl"):
        lines = [json.loads(line) for line in (source / name).read_text().splitlines()]
        with (target / name).open("w", encoding="utf-8") as file:
            for place in range(LARGE):
                one = dict(lines[place % len(lines)])
                one["id"] = f"{one['id']}-{place // len(lines)}"
                if "question" in one:
                    one["question"] += f" ({place // len(lines)})"
                file.write(json.dumps(one) + "\n")


def first(folder: Path) -> dict[str, Any]:
    """Return how long the list of 2,000 runs and a line over them take."""
    with tempfile.TemporaryDirectory() as made:
        here = Path(made)
        copies(folder, here / "many")
        with served(here / "many", here / "cache") as base:
            shown = f"{MANY:,} runs"
            indexed = until(base, lambda text: shown in text and "still to be read" not in text)
            return {
                "runs": MANY,
                "cores": os.cpu_count(),
                "load": round(os.getloadavg()[0], 1),
                "nice": os.nice(0),
                "index_s": indexed,
                "list_ms": loads(base),
                "trend_ms": loads(f"{base}trend"),
                "first_paint_ms": painted(base),
                "first_paint_of_one_word_ms": painted("data:text/html,word"),
            }


def times(folder: Path) -> dict[str, Any]:
    """Return how long the pages of forty runs and of 200,000 answers take."""
    result: dict[str, Any] = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory() as made:
        here = Path(made)
        with served(folder, here / "cache") as base:
            until(base, lambda text: f"{RUNS} runs" in text and "still to be read" not in text)
            pair = "compare?first=nightly-11-02&second=nightly-11-03"
            result["forty_runs"] = {
                "trend_ms": loads(f"{base}trend"),
                "compare_ms": loads(f"{base}{pair}"),
            }
        for name in ("nightly-11-02", "nightly-11-03"):
            large(folder / name, here / "large" / name)
        with served(here / "large", here / "cache") as base:
            until(base, lambda text: "nightly-11-03" in text and "still to be read" not in text)
            opened = fetched(f"{base}run?run=nightly-11-03")[0]
            read = until(f"{base}run?run=nightly-11-03", lambda text: "read so far" not in text)
            before = worked()
            took = until(f"{base}{pair}", lambda text: 'class="pairs"' in text)
            result["large"] = {
                "answers": LARGE,
                "opens_ms": round(opened),
                "all_read_s": read,
                "compare_s": took,
                "compare_work_s": round(worked() - before, 1),
                "compared_again_ms": loads(f"{base}{pair}"),
            }
    return result


def painted(address: str) -> int:
    """Return the median of the first contentful paint in Chromium, in milliseconds."""
    from playwright.sync_api import sync_playwright

    script = "performance.getEntriesByName('first-contentful-paint').map((one) => one.startTime)"
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"))
        page, found = browser.new_page(), []
        for _ in range(LOADS):
            page.goto(address)
            while not (paints := page.evaluate(script)):
                page.wait_for_timeout(20)
            found.append(paints[0])
        browser.close()
    return round(float(np.median(found)))


def rate(page: Any) -> None:
    """Press the key of the best rating if the passages hold the response, else of the worst."""
    passages, response = (page.locator(one).last.inner_text() for one in TEXTS)
    keys = page.locator(".rate button[name=choice]").evaluate_all(
        "(all) => all.map((one) => one.dataset.keys)"
    )
    page.keyboard.press(sorted(keys)[-1 if response.strip() in passages else 0].split()[0])


def rate_in_order(page: Any) -> None:
    """Rate answers of the run in the order of the file, those that are not rated yet."""
    page.locator(".where a").last.click()
    page.locator("select[name=order]").select_option("position")
    page.locator("form.filters button").click()
    page.locator(".answered h2 a").first.click()
    for number in range(1, FOR_THRESHOLD + 1):
        page.locator("nav.pages", has_text=f"{number} of {ANSWERS}").first.wait_for()
        page.wait_for_load_state()
        if not page.locator(".gave").count():
            rate(page)
            page.locator(".gave").wait_for()
        page.wait_for_load_state()
        page.keyboard.press("j")


def walk(folder: Path) -> list[dict[str, Any]]:
    """Go from the list of runs to an exported decision with clicks and keys; return the steps.

    Seconds are those of the pages; a person needs time to read besides.
    """
    from playwright.sync_api import sync_playwright

    steps: list[dict[str, Any]] = []

    def step(name: str, clicks: int, keys: int = 0, said: str = "") -> None:
        taken = round(time.perf_counter() - begun[-1], 1)
        begun.append(time.perf_counter())
        said = said.replace(f"{made}/", "")
        steps.append({"step": name, "clicks": clicks, "keys": keys, "seconds": taken, "said": said})

    with tempfile.TemporaryDirectory() as made, sync_playwright() as running:
        runs = Path(made) / "runs"
        shutil.copytree(folder, runs)
        browser = running.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(accept_downloads=True)
        with served(runs, Path(made) / "cache", "--rate", "anna") as base:
            ready = f"{RUNS} runs"
            until(base, lambda text: ready in text and "still to be read" not in text)
            begun = [time.perf_counter()]
            page.goto(base)
            card = page.locator(".small-lines li").first
            step("the fall is found", 0, 0, card.locator(".because").inner_text())
            card.locator("a", has_text="Which answers").click()
            page.locator(".pairs > li").first.wait_for()
            groups = page.locator(".kinds-of tbody tr").all_inner_texts()
            step("it is understood", 1, 0, "; ".join(" ".join(one.split()) for one in groups))
            page.locator("h1 a").last.click()
            page.locator("a", has_text="What to rate next").first.click()
            page.get_by_role("button", name="Draw 50 answers").click()
            progress = page.locator("#progress")
            for number in range(10):
                progress.filter(has_text=f"{number} of 50 done").wait_for()
                rate(page)
            progress.filter(has_text="10 of 50 done").wait_for()
            step("ten answers are rated", 3, 10, page.locator(".promise").first.inner_text())
            rate_in_order(page)
            step(
                f"{FOR_THRESHOLD} answers are rated in the order of the file", 4, 2 * FOR_THRESHOLD
            )
            page.locator(".where a").last.click()
            page.locator(".run-links a", has_text="calibrate").click()
            page.locator("select[name=ratings]").select_option("ratings-answer.jsonl")
            page.locator("form.filters button").click()
            page.locator(".error, .headline").first.wait_for()
            said = page.locator(".error, .metric .headline, .headline").last.inner_text()
            step("a threshold is calibrated from them", 4, 0, said)
            page.locator(".where a").first.click()
            page.locator(".small-lines a", has_text="Which answers").click()
            with page.expect_download() as download:
                page.locator(".decision a", has_text="Markdown").click()
            exported = download.value.path().read_text(encoding="utf-8").splitlines()[0]
            step("the decision of gate is exported", 3, 0, exported)
        browser.close()
    return steps


def marks() -> dict[str, Any]:
    """Return, in %, how often simulated lines of forty runs have a mark: without a change, of the
    same questions in each run, and how often a fall that stays is marked at its place or next to
    it, a run apart at both its sides."""
    rng, bounds = np.random.default_rng(5), (0.0, 1.0)

    def found(shares: Any, hard: Any = None) -> list[LevelStep]:
        chances = np.broadcast_to(np.array(shares)[:, None], (RUNS, 150)) if hard is None else hard
        rights = (rng.random((RUNS, 150)) < chances).mean(axis=1)
        ends = [
            interval_within_bounds(unit_mean(np.arange(150) < round(150 * one), None), bounds)
            for one in rights
        ]
        return find_level_steps(
            [
                LevelEstimate(one, *(end or bounds), 150)
                for one, end in zip(rights, ends, strict=True)
            ]
        )

    def of_lines(lines: int, wanted: Callable[[], bool]) -> float:
        return round(100 * sum(wanted() for _ in range(lines)) / lines, 1)

    def fall(by: float) -> list[float]:
        return [0.91] * FALL + [0.91 - by] * (RUNS - FALL)

    apart = [0.91] * 20 + [0.75] + [0.91] * 19
    result: dict[str, Any] = {"answers": 150, "lines": LINES}
    result["no change"] = of_lines(LINES, lambda: bool(found([0.9] * RUNS)))
    same = lambda: bool(found([], rng.beta(1.8, 0.2, 150)))  # noqa: E731
    result["no change, same questions"] = of_lines(LINES, same)
    for by in (0.04, 0.06, 0.08, 0.13):
        near = lambda by=by: any(s.rise < 0 and abs(s.at - FALL) < 2 for s in found(fall(by)))  # noqa: E731
        result[f"fall by {by:g}"] = of_lines(LINES, near)
    result["one run lower by 0.16"] = of_lines(
        LINES, lambda: [s.at for s in found(apart)] == [20, 21]
    )
    return result


def main() -> None:
    """Make the runs, or measure; write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--walk", action="store_true")
    parser.add_argument("--marks", action="store_true")
    parser.add_argument("--first", action="store_true")
    given = parser.parse_args()
    if given.make:
        make(given.folder)
        return
    try:
        figures = read_result("viewing")
    except FileNotFoundError:
        figures = {}
    if given.walk:
        figures["walk"] = walk(given.folder)
    elif given.marks:
        figures["marks_percent"] = marks()
    elif given.first:
        figures["first"] = first(given.folder)
    else:
        figures["times"] = times(given.folder)
    data = f"{RUNS} runs of `score` over {ANSWERS} made-up answers each, and copies of them"
    print(write_result("viewing", COMMAND, data, figures))


if __name__ == "__main__":
    main()
