"""A search in the report page of a long run, in a real browser.

    python -m lab.benchmarks.search               # a page of 500 answers with long evidence
    python -m lab.benchmarks.search report.html

Needs playwright and Chromium. A search counts until the page has been drawn; "CPU" is the time that
the page's main thread worked. Each is the middle one of five, the first one apart.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.benchmarks import answers

if TYPE_CHECKING:
    from playwright.sync_api import Page

ANSWERS = 500
PASSAGES = 30
SENTENCES = 40
SEARCH = """async (words) => {
  const [field, found] = ["search", "found"].map((id) => document.getElementById(id));
  const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const start = performance.now();
  field.value = words;
  field.dispatchEvent(new Event("input"));
  do await drawn(); while (found.textContent.startsWith("Searching"));
  return performance.now() - start;
}"""


def write(path: Path) -> None:
    """Write answers of forty sentences over thirty passages of about 140 words."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for number in range(ANSWERS):
            texts = [
                " ".join(answers.sentence(rng, 14) for _ in range(10)) for _ in range(PASSAGES)
            ]
            said = [answers.response(rng, texts) for _ in range(SENTENCES // 4)]
            sample = {
                "id": f"long-{number}",
                "question": answers.sentence(rng, 20)[:-1] + "?",
                "response": " ".join(said),
                "answers": [[" ".join(answers.words(rng, 2))] for _ in range(5)],
                "documents": [{"title": answers.sentence(rng, 4), "text": text} for text in texts],
            }
            file.write(json.dumps(sample) + "\n")


def report(folder: Path) -> Path:
    """Score such answers, and return the page."""
    write(folder / "answers.jsonl")
    command = "score answers.jsonl --entailer lexical --out run".split()
    subprocess.run([sys.executable, "-m", "trustassay", *command], cwd=folder, check=True)
    return folder / "run" / "report.html"


def measure(page: Page, words: str) -> tuple[float, float]:
    """Return the milliseconds that a search takes, and how many of them the page worked."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked() -> float:
        metrics: list[dict[str, Any]] = devtools.send("Performance.getMetrics")["metrics"]
        return next(float(m["value"]) for m in metrics if m["name"] == "ThreadTime")

    before = worked()
    took = float(page.evaluate(SEARCH, words))
    return took, 1000 * (worked() - before)


def searches(path: Path) -> None:
    """Open a page and print a table of searches."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        started = time.perf_counter()
        page.goto(path.absolute().as_uri())
        loaded = time.perf_counter() - started
        rows = {"the first, as soon as the page is loaded": [measure(page, "long")]}
        page.reload()
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 9000)))")
        rows["the first, some seconds later"] = [measure(page, "ba ce")]
        later = ["ba", "nowhere", "", "long-7", "gu fo"]
        rows["later ones"] = [measure(page, words) for words in later]
        elements = page.evaluate("document.querySelectorAll('*').length")
        browser.close()
    print(
        f"\n{path.stat().st_size / 1e6:.1f} MB, {elements:,} elements, loaded in {loaded:.1f} s\n"
    )
    print("| search | ms | of that CPU, ms |\n| --- | --- | --- |")
    for name, times in rows.items():
        took, worked = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"| {name} | {took:.0f} | {worked:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, nargs="?")
    path = parser.parse_args().report
    with tempfile.TemporaryDirectory() as folder:
        searches(path or report(Path(folder)))


if __name__ == "__main__":
    main()
