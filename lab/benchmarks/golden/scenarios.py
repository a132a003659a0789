"""What is run: files, and the commands of each job in a folder of its own that holds them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.benchmarks.golden.models import PORT, draw

PY = "python:lab.benchmarks.golden.models:"
HERE = f"http://127.0.0.1:{PORT}"
LEXICAL = "--entailer lexical"
FUNCTION = f"--entailer {PY}entails"
CHAT = f"--model {PY}one"
JUDGES = f"--judge {PY}judge --judge strict={PY}strict"
REFERENCES = f"--reference a={PY}one --reference b={PY}two --backend generator={PY}generator"
VECTORS = f"--embedder {PY}vectors"
SMALL = "small.jsonl"


@dataclass(frozen=True)
class Step:
    """A command's arguments in one line, and what its process has besides the usual environment.

    shown: what of it is compared: "out" with the exit status, and "err". Of a command that is
    stopped it depends on the moment.
    """

    line: str
    environment: Mapping[str, str] = field(default_factory=dict)
    shown: str = "out err"


@dataclass(frozen=True)
class Job:
    """Commands, one after another. served: with the endpoint. weight: jobs of more start first."""

    steps: Sequence[Step]
    served: bool = False
    weight: int = 1


METRIC_NAMES = (
    "consistency factcheck faithfulness fewl grounding harmonicity judge pairwise "
    "reference trustscore uncertainty"
).split()
METRICS = {
    "grounding": f"answers.jsonl --metric grounding {LEXICAL}",
    "grounding-paper": (
        f"citations.jsonl --metric grounding:profile=paper,splitter=sentencex {FUNCTION}"
    ),
    "faithfulness": f"answers.jsonl --metric faithfulness {LEXICAL}",
    "faithfulness-claims": (
        f"{SMALL} --metric faithfulness:claims=model {FUNCTION} --judge {PY}judge"
    ),
    "embedded": f"{SMALL} --metric faithfulness --metric grounding",
    "factcheck": f"answers.jsonl --metric factcheck {FUNCTION}",
    "factcheck-model": f"{SMALL} --metric factcheck:by=model --judge {PY}judge",
    "factcheck-retriever": (
        f"asked.jsonl --metric factcheck --retriever bm25:passages {CHAT} {LEXICAL}"
    ),
    "trustscore": f"{SMALL} --metric consistency --metric trustscore {CHAT} {LEXICAL}",
    "fewl": f"answers.jsonl --metric fewl:weights=uniform {VECTORS}",
    "fewl-agreement": "answers.jsonl --metric fewl:form=agreement",
    "fewl-models": f"{SMALL} --metric fewl:answers=5 {REFERENCES} {VECTORS}",
    "harmonicity": f"asked.jsonl --metric harmonicity {CHAT} {VECTORS}",
    "harmonicity-codes": f"asked.jsonl --metric harmonicity:perturbation=codes {CHAT} {VECTORS}",
    "harmonicity-recorded": f"answers.jsonl --metric harmonicity {VECTORS}",
    "semantic-harmonicity": (
        f"asked.jsonl --metric semantic_harmonicity:perturbations=2 {CHAT} {FUNCTION}"
    ),
    "uncertainty": f"asked.jsonl --metric uncertainty:parts=auto+pairs {CHAT} {FUNCTION}",
    "judge": f"answers.jsonl --metric judge:repeats=5,aggregate=majority {JUDGES}",
    "judge-order": f"{SMALL} --metric judge:order=both,rubric=informativeness,repeats=3 {JUDGES}",
    "judge-entailer": f"answers.jsonl --metric judge:by=entailer {FUNCTION}",
    "judge-rubric": f"{SMALL} --metric judge:rubric=tone.yaml,repeats=4,temperature=none {JUDGES}",
    "reference": "answers.jsonl --metric reference:without=meteor",
    "default": f"answers.jsonl {LEXICAL} --unit about.topic",
}
"""Arguments of ``score`` by what they show; each is run at two seeds."""
BAD = {
    "no-file": "score none.jsonl",
    "no-command": "scoer answers.jsonl",
    "no-option": "score answers.jsonl --metrix grounding",
    "metric": "score answers.jsonl --metric groundng",
    "metric-option": "score answers.jsonl --metric grounding:profil=paper",
    "metric-value": "score answers.jsonl --metric grounding:threshold=high",
    "metric-range": "score answers.jsonl --metric judge:repeats=0",
    "broken-json": "score broken.jsonl",
    "missing-field": "score fieldless.jsonl --metric grounding",
    "no-answers": "score asked.jsonl --metric faithfulness",
    "empty-file": "score empty.jsonl",
    "csv": "score wide.csv",
    "same-ids": "score twice.jsonl --metric faithfulness --entailer lexical",
    "scheme": "score answers.jsonl --entailer hff:model",
    "function": f"score answers.jsonl --metric judge --judge {PY}nobody",
    "module": "score answers.jsonl --metric judge --judge python:no_module:judge",
    "no-key": "score asked.jsonl --model openai:gpt-4o-mini",
    "no-model": "score answers.jsonl --metric judge",
    "seed": "score answers.jsonl --seed x",
    "limit": "score answers.jsonl --limit 0",
    "budget": "score asked.jsonl --budget lots --model replay:r.jsonl",
    "prices": f"score asked.jsonl --prices broken.jsonl {CHAT}",
    "field": "score answers.jsonl --field nothing=x",
    "style": f"score asked.jsonl --style loud {CHAT}",
    "calibrator": f"score answers.jsonl {LEXICAL} --calibrator ratings.csv",
    "replay": "score asked.jsonl --model replay:none.jsonl",
    "retriever": "score asked.jsonl --retriever bm25:none --metric factcheck",
    "skip-bad": f"score broken.jsonl --skip-bad {LEXICAL} --metric faithfulness --out runs/one",
    "merge-nothing": "merge runs/none --out whole",
    "compare-nothing": "compare runs/none runs/other",
    "gate-figure": "gate runs/none --min faithfulness.mean=0.8",
    "study-label": "study runs/none --label label",
    "agree-file": "agree none.csv",
    "agree-columns": "agree wide.csv",
    "label-nothing": "label runs/none",
    "calibrate-nothing": "calibrate runs/none --label label",
    "rank-one": "rank answers.jsonl --metric none",
    "rubric": "rubric check bad.yaml",
    "rescore": "rescore runs/none --out runs/other",
    "shard": "shard answers.jsonl --into 0",
    "cite-by": "papers cite answers.jsonl --by magic --out cited.jsonl",
    "out-is-file": "score answers.jsonl --entailer lexical --out wide.csv",
}
"""Wrong calls by what is wrong."""
JUDGED = f"score labelled.jsonl --metric judge:repeats=3 --metric faithfulness --judge {PY}judge"
LABELLED = f"{JUDGED} {LEXICAL} --out runs/one"
EARLIER = f"score earlier.jsonl --metric judge:repeats=3 --metric faithfulness --judge {PY}judge"
STOPPED = f"score answers.jsonl --metric judge:repeats=5 {JUDGES} --out runs/one"
OLD = (
    "score answers.jsonl --metric judge:repeats=2 --metric factcheck --metric "
    f"harmonicity --judge {PY}judge {CHAT} {FUNCTION} {VECTORS} --out old"
).replace("lab.benchmarks", "benchmarks")
"""The run whose stored calls are kept in ``lab/results/golden-calls``, under the names that the
models had then."""


def jobs(commands: Sequence[str]) -> dict[str, Job]:
    """Return all jobs by name. commands: the names of all commands, with those of groups."""
    found = {f"help/{name.replace(' ', '-')}": _job(f"{name} --help") for name in commands}
    found["help/trustassay"] = _job("--help", "--version", "")
    found |= {f"bad/{name}": _job(line) for name, line in BAD.items()}
    found |= {
        f"score/{name}": Job(
            [Step(f"score {line} --json --seed {seed} --out runs/{seed}") for seed in (0, 1)],
            weight=5,
        )
        for name, line in METRICS.items()
    }
    silent = {"GOLDEN_SILENT": "1"}
    found["resume/interrupted"] = Job(
        [
            Step(STOPPED, {"GOLDEN_STOP": "SIGINT@37"}, shown=""),
            Step(STOPPED, {"GOLDEN_STOP": "SIGKILL@45"}, shown=""),
            Step(STOPPED, shown=""),
            Step(STOPPED, silent),
        ],
        weight=5,
    )
    found["resume/old-calls"] = _job(Step(OLD, silent))
    found["resume/rescore"] = _job(
        f"score answers.jsonl --metric judge:repeats=5 {JUDGES} --out runs/five",
        Step("rescore runs/five --metric judge:repeats=3 --out runs/three --json", silent),
        Step("rescore runs/five --seed 7 --out runs/seven --json", silent),
        "report runs/five runs/three",
    )
    found["resume/shards"] = _job(
        "shard answers.jsonl --into 3 --out parts --whole",
        *(
            f"score parts/answers.jsonl.shard-{n}-of-3.jsonl {SHARDED} --out runs/{n}"
            for n in range(3)
        ),
        "merge runs/0 runs/1 runs/2 --out runs/whole --json",
        f"score answers.jsonl {SHARDED} --out runs/unsharded",
    )
    for seed in (0, 1):
        found[f"labelled/{seed}"] = Job([Step(line) for line in _labelled(seed)], weight=9)
    found["answers/generate"] = _job(
        f"generate asked.jsonl {CHAT} --out a.jsonl --repeats 2",
        f"plan asked.jsonl {CHAT} --metric harmonicity --prices prices.json",
        f"plan answers.jsonl --metric judge:repeats=3 {JUDGES} --json",
        f"score asked.jsonl {CHAT} --style closed-book --metric judge --judge {PY}judge "
        "--out runs/a --json",
        f"score small.jsonl --metric judge --judge {PY}judge --out runs/judged",
        "score small.jsonl --metric judge --judge replay:runs/judged --out runs/replayed "
        "--cache off",
    )
    found["answers/cite"] = _job(
        "papers cite citations.jsonl --by bm25 --out b.jsonl",
        f"papers cite citations.jsonl {LEXICAL} --out c.jsonl --only-uncited",
        "papers cite small.jsonl --by embedding --out e.jsonl",
        "papers distractors small.jsonl --json --seed 1 --pool --most 5",
        "rubric check tone.yaml",
        "rubric check truthfulness",
        Step(
            f"entailers pairs.jsonl --entailer lexical --entailer {PY}entails --json", shown="out"
        ),
    )
    found["answers/trustscore"] = _job(
        f"score {SMALL} --metric trustscore:claims=yes,checks=3 {CHAT} {FUNCTION} --out runs/one"
    )
    found["answers/select"] = _job(
        "papers select icl answers.jsonl --out icl.jsonl --metric "
        "fewl:form=agreement,weights=uniform --backend similarity=novel --run runs/icl --json",
        f"papers attack 'What is red?' {CHAT} {VECTORS} --steps 4 --out runs/attack",
        f"papers isotropy asked.jsonl {VECTORS} --json",
        "papers dataset asked.jsonl --corpus passages --entailer lexical --out d.jsonl",
        "completion bash",
        "demo --out runs/demo",
    )
    found["judges/audit"] = _job(
        f"audit labelled.jsonl --judge {PY}judge --limit 12 --out runs/audit --json --seed 1",
        f"audit small.jsonl --metric faithfulness {LEXICAL} --out runs/faithful --page a.html",
    )
    # Sixteen days of runs, of which the last two are worse; the day is in the folder's name.
    found["days/monitor"] = _job(
        *(
            f"score {'labelled' if day < 14 else 'earlier'}.jsonl --metric faithfulness {LEXICAL} "
            f"--limit {40 + day} --out runs/2026-03-{day + 1:02}"
            for day in range(16)
        ),
        "monitor runs/2026-03-01 runs/2026-03-02 runs/2026-03-03 --state m.json --baseline 2",
        f"monitor {' '.join(f'runs/2026-03-{day + 1:02}' for day in range(16))} --state n.json "
        "--baseline 14 --max faithfulness.failed=90% --json",
        "export runs/2026-03-01 --to exported --by model",
        "report runs/2026-03-01 runs/2026-03-15 --out pooled.html",
    )
    found["files/follow"] = _job(
        f"score answers.jsonl --follow --once --metric faithfulness {LEXICAL} --threshold 0.5 "
        "--out runs/followed",
        f"score answers.jsonl --metric faithfulness {LEXICAL} --sample 5 --seed 3 --out runs/five",
        f"score small.jsonl --metric faithfulness {LEXICAL} --out runs/grows",
        f"score answers.jsonl --metric faithfulness {LEXICAL} --append --out runs/grows",
        f"score labelled.jsonl --metric faithfulness {LEXICAL} --second {PY}entails --out runs/two",
        "gate runs/two --max failed=10% --max not_answered=5% --labels labelled.jsonl",
        "help intervals of few answers",
        "models list",
        "demo --files files",
    )
    endpoints = [
        Step(
            f"generate asked.jsonl --model {kind}:m@{HERE}{path} --out {kind}.jsonl",
            {f"{kind.upper()}_API_KEY": "k"},
        )
        for kind, path in (("openai", "/v1"), ("anthropic", ""), ("gemini", "/v1beta"))
    ]
    found["answers/endpoints"] = Job(
        [
            *endpoints,
            Step(
                f"score small.jsonl --metric judge:repeats=3 --judge openai:m@{HERE}/v1 --budget "
                "99999 "
                f"--prices prices.json --embedder openai:e@{HERE}/v1 --metric harmonicity --out "
                "runs/j"
            ),
            Step(f"score small.jsonl --entailer openai:m@{HERE}/v1 --out runs/entailed --json"),
        ],
        served=True,
        weight=5,
    )
    return found


SHARDED = (
    f"--metric judge:repeats=2 --metric grounding --metric fewl:form=agreement {JUDGES} {LEXICAL} "
    "--pool parts/answers.jsonl.whole.jsonl"
)


def _labelled(seed: int) -> list[str]:
    tail = f"--seed {seed} --json"
    return [
        f"{LABELLED} --seed {seed}",
        f"{EARLIER} {LEXICAL} --out runs/earlier --seed {seed}",
        "study runs/one --label labels.right --by source --resamples 200 --page s.html "
        f"--table s.csv {tail}",
        f"study runs/one --label labels.level --resamples 200 {tail}",
        "agree ratings.csv --run runs/one --json --page v.html",
        "agree wide.csv --field item=question --rater anna --rater bela --levels 1..4 --json",
        f"label runs/one --auroc judge --width 0.2 --plan q.jsonl --number 20 {tail}",
        f"label runs/one --compare good poor --plan p.jsonl --number 20 {tail}",
        f"calibrate runs/one --label labels.right --at-most 0.3 --score judge --page c.html {tail}",
        f"calibrate runs/one --label labels.right --score faithfulness.support --out i.json {tail}",
        f"score answers.jsonl --metric judge:repeats=3 --metric faithfulness --judge {PY}judge "
        f"{LEXICAL} --calibrator calibrator.json --out runs/calibrated {tail}",
        f"gate runs/one --min judge.mean=3 --max faithfulness.contradicted=5 {tail} "
        "--markdown g.md "
        "--junit g.xml",
        f"gate runs/one --no-worse-than runs/earlier --margin 5 {tail}",
        f"compare runs/earlier runs/one --metric judge {tail} --page compared.html",
        f"compare runs/earlier runs/one --metric faithfulness {tail}",
        f"compare ones.jsonl twos.jsonl --judge {PY}judge --run runs/pairs {tail}",
        f"rank runs/one --metric judge {tail}",
        f"rank answers.jsonl {tail} --out runs/ranked",
    ]


def _job(*steps: str | Step) -> Job:
    return Job([Step(one) if isinstance(one, str) else one for one in steps])


def write_files(folder: Path) -> None:
    """Write the files that the commands name into a folder."""
    answers = [_answer(i, model) for i in range(12) for model in ("one", "two")]
    _lines(folder / "answers.jsonl", answers)
    _lines(folder / SMALL, answers[:8])
    asked = ("id", "question", "documents", "answers")
    _lines(folder / "asked.jsonl", [{key: row[key] for key in asked} for row in answers[:12:2]])
    recorded = [{"prompt": row["question"], "reply": row["response"]} for row in answers[::2]]
    _lines(folder / "recorded.jsonl", recorded)
    _lines(folder / "ones.jsonl", answers[::2])
    _lines(folder / "twos.jsonl", answers[1::2])
    _lines(folder / "labelled.jsonl", [_labelled_answer(i, 0.7) for i in range(120)])
    _lines(folder / "earlier.jsonl", [_labelled_answer(i, 0.5) for i in range(120)])
    _lines(folder / "fieldless.jsonl", [{"id": "a", "response": "It is."}])
    _lines(folder / "twice.jsonl", [answers[0], answers[0]])
    (folder / "empty.jsonl").write_text("")
    good = [json.dumps(row) for row in answers[:2]]
    (folder / "broken.jsonl").write_text("\n".join([good[0], '{"id": "x", ', good[1]]) + "\n")
    (folder / "passages").mkdir()
    passages = [{"id": str(i), "text": _document(i)} for i in range(12)]
    _lines(folder / "passages/passages.jsonl", passages)
    os.utime(folder / "passages/passages.jsonl", (0, 0))  # the name of an index follows from it
    (folder / "prices.json").write_text('{"*": {"prompt": 1, "reply": 2}}')
    rated = [
        f"a{i},{rater},{1 + draw(i, rater) % 3 + (i % 2)}"
        for i in range(60)
        for rater in ("anna", "bela", "cleo")
    ]
    (folder / "ratings.csv").write_text("\n".join(["item,rater,rating", *rated]) + "\n")
    wide = [f"q{i},{1 + draw(i, 'a') % 4},{1 + draw(i, 'b') % 4},x" for i in range(30)]
    (folder / "wide.csv").write_text("\n".join(["question,anna,bela,other", *wide]) + "\n")
    pairs = [
        {"premise": _document(i), "hypothesis": _document(j), "label": "yes" if i == j else "no"}
        for i in range(8)
        for j in (i, i + 1)
    ]
    _lines(folder / "pairs.jsonl", pairs)
    (folder / "tone.yaml").write_text(TONE)
    (folder / "bad.yaml").write_text(TONE.replace("levels:", "level:"))


TONE = """\
name: tone
title: Tone of an answer
task: How friendly is the answer?
shows: [question, answer]
passes: 3
levels:
  - {score: 1, name: rude, means: It insults or mocks the reader.}
  - {score: 2, name: plain, means: It says what is asked.}
  - {score: 3, name: kind, means: It treats the reader as an equal.}
"""


def _document(i: int) -> str:
    return f"Thing {i} is red. It was made in {1900 + i} by Anna Number{i}, who lived in Rome."


def _answer(i: int, model: str) -> dict[str, Any]:
    number = draw(i, model)
    first = f"Thing {i} was made in {1900 + i + number % 2} [1]."
    second = ("It is red [1][2].", "It is blue [2].", "Nobody knows its colour.")[number % 3]
    refusal = "I am sorry, but I cannot answer this question from the documents."
    return {
        "id": f"{i}-{model}",
        "question": f"When was thing {i} made, and what colour is it?",
        "response": refusal if number % 11 == 3 else f"{first} {second}",
        "model": model,
        "answers": [[f"{1900 + i}"], ["red"]],
        "documents": [_document(i), f"Blue things are rarer than thing {i}."],
        "resamples": [f"It is {('red', 'blue', 'red and old')[draw(i, k) % 3]}." for k in range(4)],
        "about": {"topic": ("art", "craft", "trade")[i % 3]},
        "references": {"m1": f"It is red, {1900 + i}.", "m2": first, "m3": f"{1900 + i}; red."},
    }


def _labelled_answer(i: int, share: float) -> dict[str, Any]:
    right = draw(i, "right", share) % 100 < 100 * share
    level = 1 + (draw(i, "level") % 2) + 2 * right
    return {
        "id": f"a{i}",
        "question": f"When was thing {i // 2} made?",
        "response": f"It was made in {1900 + i // 2 if right else 1700 + i} by Anna. It is {i}.",
        "model": ("good", "poor")[i % 2],
        "answers": [[f"It was made in {1900 + i // 2}"]],
        "documents": [_document(i // 2)],
        "source": ("books", "web")[i % 4 == 0],
        "labels": {"right": int(right), "level": level},
    }


def _lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
