"""Takes the pictures of the guide from today's program: ``python -m lab.benchmarks.pictures``.

Needs Debian's ``chromium``. ``docs/images/which-metric.svg`` is drawn by
``python -m lab.benchmarks.which_metric`` with the tables that it shows.
"""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import trustassay

DOCS = Path(__file__).parents[2] / "docs"
IMAGES = DOCS / "images"
ANSWERS = Path(trustassay.__file__).parent / "input/recorded/answers.jsonl"
SITE = runpy.run_path(str(DOCS / "_site/figures.py"))
SIZE = {"report.png": "1000,620", "annotate.png": "1000,760"}
"""Width and height of each picture, in pixels."""
TRUSTASSAY = [sys.executable, "-m", "trustassay"]


def take(address: str, name: str) -> None:
    """Store what a browser shows at an address.

    Raises:
        SystemExit: there is no browser.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit(
            "python -m lab.benchmarks.pictures needs chromium: apt-get install chromium"
        )
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    waiting = ["--virtual-time-budget=3000", f"--window-size={SIZE[name]}"]
    target = f"--screenshot={IMAGES / name}"
    command = [chromium, *options, *waiting, target, address]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    print(f"{name}: {(IMAGES / name).stat().st_size / 1000:.0f} kB")


def report(folder: Path) -> Path:
    """Score the bundled answers; take the report's first page. Return the run's folder."""
    run = folder / "run"
    # By faithfulness the first cards are answers that no passage supports, with the words marked.
    command = [*TRUSTASSAY, "score", str(ANSWERS), "--metric", "faithfulness", "--out", str(run)]
    subprocess.run(command, check=True, capture_output=True)
    take((run / "report.html").as_uri(), "report.png")
    return run


def annotate(folder: Path, run: Path) -> None:
    """Take the page on which people rate answers."""
    ratings = ["--rater", "anna", "--rubric", "truthfulness", "--rubric", "informativeness"]
    command = [*TRUSTASSAY, "annotate", str(run), *ratings, "--out", str(folder / "ratings.jsonl")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        assert server.stdout is not None
        try:
            found = (re.search(r"https?://\S+", line) for line in server.stdout)
            address = next(match[0] for match in found if match)
            take(address, "annotate.png")
        finally:
            server.terminate()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        annotate(Path(name), report(Path(name)))
    entailer = trustassay.entailer("embedded").name
    taken = {
        name: {"entailer": entailer, "sha256": SITE["checksum"](IMAGES / name)} for name in SIZE
    }
    SITE["PICTURES"].write_text(json.dumps(taken, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
