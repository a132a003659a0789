"""Who can read what the commands write: its owner alone, whatever the umask is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.people.towns import towns
from tests.support import jsonl

PROGRAM = """
import asyncio, os, sys
os.umask(0)
import trustassay
from trustassay.calls.store import default_cache, open_cache
from trustassay.cli.main import main
from trustassay.core.tracebacks import write_failure, write_internal_error
from trustassay.report.serving import AccessLinks
from trustassay.view.index import Index, index_path
from pathlib import Path

def run(*arguments):
    sys.argv = ["trustassay", *arguments]
    try:
        main()
    except SystemExit as ending:
        assert ending.code in (None, 0, 4), arguments  # 4: undecided, with so few answers

lexical = ["--metric", "faithfulness", "--entailer", "lexical"]
for name in ("one", "two"):
    run("score", "answers.jsonl", *lexical, "--out", f"runs/{name}")
run("report", "runs/one", "runs/two", "--out", "out/both.html")
run("compare", "runs/one", "runs/two", "--page", "out/compare.html")
run("gate", "runs/one", "--min", "faithfulness.passed=1%", "--junit", "out/gate.xml")
run("monitor", "runs/one", "--state", "state/monitor.json", "--prometheus", "out/t.prom", "--max",
    "faithfulness.failed=10%")
run("label", "runs/one", "--number", "5")
run("annotate", "runs/one", "--rater", "anna", "--export", "out/sheet.csv")
lines = Path("out/sheet.csv").read_text("utf-8-sig").splitlines()
filled = [lines[0], *(line.replace(",", ",3,", 1).replace(",3,,", ",3,", 1) for line in lines[1:])]
Path("filled.csv").write_text("\\n".join(filled) + "\\n")
run("annotate", "runs/one", "--rater", "anna", "--import", "filled.csv", "--out", "rated/r.jsonl")
AccessLinks(Path("rated/r.jsonl"), ["anna"])
Index(Path("runs"), index_path(Path("runs"))).refresh()
open_cache(default_cache()).close()
trustassay.score("answers.jsonl", metrics="faithfulness", entailer="lexical", out="api/run")

async def serve():
    how = {"metrics": "faithfulness", "entailer": "lexical", "out": "live/run"}
    async with trustassay.scorer(**how) as scorer:
        await scorer.score({"question": "q", "response": "r", "documents": ["r"]})
asyncio.run(serve())
run("calibrate", "labelled.csv", "--label", "label", "--score", "grade", "--out", "cal/c.json")
write_failure(Path("runs/one"), "faithfulness", ValueError("quoted"))
write_internal_error(Path("runs/one"), ValueError("quoted"))
write_internal_error(None, ValueError("quoted"))
"""
PRIVATE = ("runs", "state", "rated", "home", "api", "live", "cal")
"""Folders that the program makes, each by another command."""


def test_only_the_owner_reads_what_is_written_but_named_outputs_are_as_the_umask_says(
    tmp_path: Path,
) -> None:
    jsonl(tmp_path / "answers.jsonl", list(towns(12)))
    rows = [f"q{i},text {i},{i / 100},{'yes' if i > 30 else 'no'}" for i in range(80)]
    text = "\n".join(["id,response,grade,label", *rows])
    (tmp_path / "labelled.csv").write_text(text + "\n")
    home = tmp_path / "home"
    environment = os.environ | {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_STATE_HOME": str(home / "state"),
        "TRUSTASSAY_CACHE": str(home / "calls"),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    readable = {
        str(path.relative_to(tmp_path)): oct(path.stat().st_mode & 0o777)
        for place in PRIVATE
        for path in [tmp_path / place, *(tmp_path / place).rglob("*")]
        if path.stat().st_mode & 0o077
    }
    assert readable == {}
    names = {path.name for path in (tmp_path / "runs").rglob("*")}
    assert names >= {"report.html", "calls.sqlite", "assessments.parquet", "internal-error.txt"}
    assert {path.name for path in home.rglob("*.sqlite")} >= {"calls.sqlite"}
    assert json.loads((tmp_path / "cal" / "c.json").read_text())
    outputs = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()}
    names = {"both.html", "compare.html", "gate.xml", "t.prom", "sheet.csv"}
    assert outputs == dict.fromkeys(names, 0o666)
