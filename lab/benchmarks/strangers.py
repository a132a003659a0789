"""What a stranger sees first: ten logs in usual forms, each scored by one command without options.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.strangers         # three minutes on two cores
    python -m lab.benchmarks.strangers --out before.json             # not into lab/results

The logs hold answers with passages and public labels of people: HAGRID (AttributionBench) and
ExpertQA, for tables Quintd-1; where the form allows it, the same 50 answers. An eleventh log is in
German (Mu-SHROOM with its pages), which the included entailer does not read. Each is written into a
folder of its own and scored by ``trustassay score FILE`` in another process. Beside it stands what
came of it: the exit status, how many questions the line of outcomes counts and how many lines are
above it, how many questions, responses and passages were read as they were written, right answers
that are flagged, wrong ones that are not, and whether an all-clear was printed although not every
question was judged. A first screen is right where the status is as expected, all rows are counted,
all texts are right, and no all-clear is false. The data are found by TRUSTASSAY_SHARED, else in
../shared.
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.results import write_result
from trustassay.statistics.resampling import generator

COMMAND = "python -m lab.benchmarks.strangers"
DATA = "HAGRID (AttributionBench), ExpertQA, Quintd-1 and Mu-SHROOM (German), by a seed"
HAGRID_RIGHT, HAGRID_WRONG, EXPERTQA_RIGHT, EXPERTQA_WRONG = 26, 10, 6, 8
REFUSED_SHARE = 0.4
REFUSALS = (
    "I'm sorry, but the documents do not say anything about this.",
    "I don't know.",
    "I cannot answer this question from the context that I was given.",
    "There is no information about that in the passages.",
    "Unfortunately, I could not find an answer in the provided sources.",
)
_MARK = re.compile(r"\s*\[\d+(?:\s*[,-]\s*\d+)*\]")
OUTCOMES = re.compile(r"([\d,]+) questions?\b")
"""The count in the line of outcomes, which has three shares in per cent."""
ALL_CLEAR = re.compile(r"\b(no answer|none|nothing)\b[^.\n]{0,40}\bneeds? a look", re.IGNORECASE)
MAX_PAGE_CHARACTERS = 1500
"""Characters of a German page that are its passage."""
MAX_SCREEN_CHARACTERS = 2000
Json = dict[str, Any]


class Answer(NamedTuple):
    """An answer with its passages; ``is_right`` by its public label, ``None`` where it has none."""

    question: str
    response: str
    passages: tuple[str, ...]
    is_right: bool | None = None


class Material(NamedTuple):
    """What logs are written from."""

    usual: Sequence[Answer]
    """The answers of most logs."""
    shared: Path
    """The folder of the data sets."""


class Log(NamedTuple):
    """A log that was written."""

    path: Path
    answers: Sequence[Answer]


# ---- the answers ----


def read_rows(path: Path) -> Iterator[Json]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def read_hagrid(shared: Path, *, marks: bool = False) -> list[Answer]:
    """Return answers of HAGRID with two passages or more.

    Args:
        shared: the folder of the data sets.
        marks: whether answers keep their marks, with the numbers of their passages here.
    """
    result = []
    for row in read_rows(shared / "attributionbench" / "ood_dev.jsonl.gz"):
        if row["source"] != "HAGRID" or len(row["references"]) < 2:
            continue
        # "[3] The tower ..." is cited as [3], and is the first one here.
        numbers = [_MARK.match(text) for text in row["references"]]
        places = {match[0].strip(" []"): n for n, match in enumerate(numbers, 1) if match}
        response = (
            renumber(row["hypothesis"], places) if marks else _MARK.sub("", row["hypothesis"])
        )
        texts = tuple(_MARK.sub("", text, count=1).strip() for text in row["references"])
        result.append(Answer(row["question"], response.strip(), texts, row["label"] == "supported"))
    return result


def renumber(response: str, places: Mapping[str, int]) -> str:
    """Return a response in which marks such as [3, 4] have the places of their passages."""

    def place_of(number: re.Match[str]) -> str:
        return str(places.get(number[0], number[0]))

    return _MARK.sub(lambda mark: re.sub(r"\d+", place_of, mark[0]), response)


def read_expertqa(shared: Path) -> list[Answer]:
    """Return whole answers of ExpertQA with two passages or more, without their marks."""
    return [
        Answer(
            row["question"],
            _MARK.sub("", row["response"]).strip(),
            tuple(document["text"] for document in row["documents"]),
            row["label"] == "supported",
        )
        for part in ("dev", "train")
        for row in read_rows(shared / "expertqa" / f"samples_{part}.jsonl.gz")
        if row["label"] is not None and len(row["documents"]) > 1
    ]


def read_quintd(shared: Path) -> list[Answer]:
    """Return descriptions of things, each with what is known of it as a Markdown table.

    Right are those in which people marked nothing.
    """
    result = []
    for row in read_rows(shared / "quintd" / "dev.jsonl.gz"):
        if row["domain"] != "wikidata":
            continue
        title, _, facts = row["input"].partition("\n---\n")
        cells = [line.removeprefix("- ").partition(": ") for line in facts.splitlines()]
        lines = [f"| {name} | {value} |" for name, _, value in cells]
        table = "\n".join([f"## {title}", "", "| property | value |", "|---|---|", *lines])
        is_right = not row["spans_human"]
        result.append(
            Answer(f"What is {title.strip()}?", row["output"].strip(), (table,), is_right)
        )
    return result


def read_german(shared: Path) -> list[Answer]:
    """Return German answers of Mu-SHROOM with the beginning of the page that is linked."""
    pages: dict[str, str] = {}
    with tarfile.open(shared / "mu-shroom" / "pages_de.tar.gz") as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                title, text = read_page(file.read().decode("utf-8", "replace"))
                pages[title] = text
    result = []
    for row in read_rows(shared / "mu-shroom" / "val_de.jsonl.gz"):
        title = row["wikipedia_url"].rpartition("/")[2].replace("_", " ")
        response = row["model_output_text"].split("<|")[0].strip()
        if pages.get(title) and response:
            result.append(Answer(row["model_input"], response, (pages[title],)))
    return result


def read_page(page: str) -> tuple[str, str]:
    """Return the title of a page of Wikipedia and the beginning of its paragraphs as text."""
    title = re.search(r"<title>(.*?) – Wikipedia</title>", page)
    paragraphs = re.findall(r"<p>(.*?)</p>", page, re.DOTALL)
    texts = [html.unescape(re.sub(r"<[^>]+>", "", text)) for text in paragraphs]
    text = " ".join(" ".join(texts).split())[:MAX_PAGE_CHARACTERS]
    return html.unescape(title[1]) if title else "", _MARK.sub("", text)


def draw(name: str, answers: Sequence[Answer], right: int, wrong: int) -> list[Answer]:
    """Return so many right and wrong answers, no question twice."""
    result: list[Answer] = []
    order = generator(0, "strangers", name).permutation(len(answers))
    left = {True: right, False: wrong}
    questions = set()
    for answer in (answers[place] for place in order):
        is_right = bool(answer.is_right)
        if left[is_right] and answer.question not in questions:
            left[is_right] -= 1
            questions.add(answer.question)
            result.append(answer)
    return result


def draw_usual(shared: Path) -> list[Answer]:
    """Return the 50 answers of most logs, each with two passages."""
    hagrid = [one for one in read_hagrid(shared) if len(one.passages) == 2]
    expertqa = [one for one in read_expertqa(shared) if len(one.passages) == 2]
    return [
        *draw("HAGRID", hagrid, HAGRID_RIGHT, HAGRID_WRONG),
        *draw("ExpertQA", expertqa, EXPERTQA_RIGHT, EXPERTQA_WRONG),
    ]


# ---- the logs ----


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def write_csv(folder: Path, material: Material) -> Log:
    """As a data frame with lists is saved, with columns of the application beside them."""
    import pandas

    thumbs = ("", "👍", "👎")
    rows = [
        {
            "session": f"s{number // 3}",
            "question": one.question,
            "answer": one.response,
            "contexts": list(one.passages),
            "latency_ms": 700 + 13 * number,
            "thumbs": thumbs[number % 3],
        }
        for number, one in enumerate(material.usual)
    ]
    path = folder / "log.csv"
    pandas.DataFrame(rows).to_csv(path)
    return Log(path, material.usual)


def write_pandas(folder: Path, material: Material) -> Log:
    """``DataFrame.to_json`` by its defaults."""
    import pandas

    rows = [
        {
            "question": one.question,
            "answer": one.response,
            "contexts": list(one.passages),
            "label": one.is_right,
        }
        for one in material.usual
    ]
    path = folder / "log.json"
    pandas.DataFrame(rows).to_json(path)
    return Log(path, material.usual)


def write_excel(folder: Path, material: Material) -> Log:
    """A sheet with German headers, ratings in words, and a line above the header."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Stichprobe vom 3. Mai"])
    sheet.append(["Frage", "Antwort", "Quelle 1", "Quelle 2", "Bewertung"])
    for one in material.usual:
        rating = "richtig" if one.is_right else "falsch"
        sheet.append([one.question, one.response, *one.passages, rating])
    book.save(folder / "Protokoll.xlsx")
    return Log(folder / "Protokoll.xlsx", material.usual)


def write_langsmith(folder: Path, material: Material) -> Log:
    """Runs as ``list_runs`` returns them: of each trace a chain, a retriever and a model."""
    rows: list[Json] = []
    for number, one in enumerate(material.usual):
        ids = [f"0199{number:04d}-0000-7000-8000-00000000000{part}" for part in range(3)]
        documents = [{"page_content": text, "metadata": {}} for text in one.passages]
        generation = {"text": one.response, "type": "ChatGeneration"}
        question = {"type": "human", "content": one.question}
        for part, (name, kind, inputs, outputs) in enumerate(
            (
                ("rag", "chain", {"question": one.question}, {"output": one.response}),
                ("find", "retriever", {"query": one.question}, {"documents": documents}),
                ("model", "llm", {"messages": [[question]]}, {"generations": [[generation]]}),
            )
        ):
            rows.append(
                {
                    "id": ids[part],
                    "trace_id": ids[0],
                    "parent_run_id": ids[0] if part else None,
                    "name": name,
                    "run_type": kind,
                    "inputs": inputs,
                    "outputs": outputs,
                    "error": None,
                    "start_time": f"2026-11-20T10:{number:02d}:0{part}.000000+00:00",
                    "end_time": f"2026-11-20T10:{number:02d}:09.000000+00:00",
                }
            )
    return Log(write_lines(folder / "runs.jsonl", rows), material.usual)


def write_plain_chats(folder: Path, material: Material) -> Log:
    """Chats in which a tool returned the passages as JSON, and that end with the answer."""
    return write_chats(folder, material, thanks=False)


def write_chats(folder: Path, material: Material, *, thanks: bool = True) -> Log:
    """Chats in which a tool returned the passages as JSON; some end with thanks."""
    rows = []
    for number, one in enumerate(material.usual):
        arguments = json.dumps({"query": one.question})
        call = {"name": "search", "arguments": arguments}
        results = [
            {
                "title": f"Page {place}",
                "score": 0.9 - place / 100,
                "snippet": text,
                "url": f"https://example.org/{number}/{place}",
            }
            for place, text in enumerate(one.passages, 1)
        ]
        messages: list[Json] = [
            {"role": "system", "content": "You are a helpful assistant. Use the search."},
            {"role": "user", "content": one.question},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
            },
            {
                "role": "tool",
                "tool_call_id": f"call_{number}",
                "content": json.dumps({"results": results}, ensure_ascii=False),
            },
            {"role": "assistant", "content": one.response},
        ]
        if thanks and number % 4 == 3:
            messages.append({"role": "user", "content": "Thanks!"})
        rows.append({"messages": messages})
    return Log(write_lines(folder / "chats.jsonl", rows), material.usual)


def write_refusals(folder: Path, material: Material) -> Log:
    """Ragas rows, of which 40 % are refusals."""
    refused = round(REFUSED_SHARE * len(material.usual))
    places = set(
        generator(0, "strangers", "refusals").permutation(len(material.usual))[:refused].tolist()
    )
    answers = [
        one._replace(response=REFUSALS[place % len(REFUSALS)], is_right=None)
        if place in places
        else one
        for place, one in enumerate(material.usual)
    ]
    return Log(write_ragas(folder, answers), answers)


def write_ragas(folder: Path, answers: Sequence[Answer]) -> Path:
    rows = [
        {
            "user_input": one.question,
            "response": one.response,
            "retrieved_contexts": list(one.passages),
        }
        for one in answers
    ]
    return write_lines(folder / "dataset.jsonl", rows)


def write_lengths(folder: Path, material: Material) -> Log:
    """Short and long answers and passages, two blank answers, two answers without passages."""
    several = [one for one in read_expertqa(material.shared) if len(one.passages) > 2]
    answers = [*material.usual[:20], *draw("lengths", several, 8, 16)]
    every = tuple(text for one in several for text in one.passages)
    answers[1] = answers[1]._replace(passages=(*answers[1].passages, *every[:60]))
    answers[30] = answers[30]._replace(passages=("\n".join(every[:40]), *answers[30].passages))
    for place in (5, 25):
        answers[place] = answers[place]._replace(response="", is_right=None)
    for place in (8, 28):
        answers[place] = answers[place]._replace(passages=(), is_right=None)
    return Log(write_ragas(folder, answers), answers)


def write_tables(folder: Path, material: Material) -> Log:
    """Answers from Markdown tables."""
    answers = draw("Quintd", read_quintd(material.shared), 28, 14)
    rows = [
        {"query": one.question, "answer": one.response, "context": one.passages[0]}
        for one in answers
    ]
    return Log(write_lines(folder / "tables.jsonl", rows), answers)


def write_numbered(folder: Path, material: Material) -> Log:
    """One column with numbered passages, and answers that cite the numbers."""
    import pandas

    answers = draw("numbered", read_hagrid(material.shared, marks=True), 30, 20)
    rows = [
        {
            "Question": one.question,
            "Answer": one.response,
            "Context": "\n".join(f"[{n}] {text}" for n, text in enumerate(one.passages, 1)),
        }
        for one in answers
    ]
    path = folder / "export.csv"
    pandas.DataFrame(rows).to_csv(path, index=False)
    return Log(path, answers)


def write_traces(folder: Path, material: Material) -> Log:
    """OTLP with GenAI attributes: the caller's span is elsewhere, and a guardrail comes last."""
    spans = [span for number, one in enumerate(material.usual) for span in build_trace(number, one)]
    scope = {"scope": {"name": "app"}, "spans": spans}
    path = folder / "traces.json"
    path.write_text(json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [scope]}]}))
    return Log(path, material.usual)


def build_trace(number: int, one: Answer) -> Iterator[Json]:
    """Yield the spans of an answer: a request, an agent, and four calls below it."""
    start = 1_790_000_000_000_000_000 + number * 10**11

    def text_message(role: str, text: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

    def chat(model: str, request: str, reply: str) -> dict[str, str]:
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.input.messages": text_message("user", request),
            "gen_ai.output.messages": text_message("assistant", reply),
        }

    passages = json.dumps([{"text": text} for text in one.passages])
    search = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.id": f"call_{number}",
        "gen_ai.tool.call.arguments": json.dumps({"query": one.question}),
        "gen_ai.tool.call.result": passages,
    }
    rewritten = " ".join(one.question.rstrip("?").split()[-4:])
    parts: list[tuple[str, int, dict[str, str]]] = [
        ("POST /ask", -1, {"http.request.method": "POST"}),
        ("invoke_agent guide", 0, {"gen_ai.operation.name": "invoke_agent"}),
        ("rewrite_query", 1, chat("small", f"Write a search query: {one.question}", rewritten)),
        ("execute_tool search", 1, search),
        ("chat large", 1, chat("large", one.question, one.response)),
        ("guardrail", 1, chat("guard", f"Is this answer safe? {one.response}", "SAFE")),
    ]
    for place, (name, parent, attributes) in enumerate(parts):
        last = len(parts) if place < 2 else place + 1
        yield {
            "traceId": f"{number + 1:032x}",
            "spanId": f"{number * 16 + place + 1:016x}",
            "parentSpanId": "00f067aa0ba902b7"
            if parent < 0
            else f"{number * 16 + parent + 1:016x}",
            **({"flags": 769} if parent < 0 else {}),
            "name": name,
            "kind": 2 if parent < 0 else 1,
            "startTimeUnixNano": str(start + place * 10**9),
            "endTimeUnixNano": str(start + last * 10**9 + 10 - place),
            "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
            "status": {},
        }


def write_german(folder: Path, material: Material) -> Log:
    """A table in German, as a spreadsheet of a German office writes CSV."""
    import pandas

    answers = draw("German", read_german(material.shared), 0, 40)
    rows = [
        {"Frage": one.question, "Antwort": one.response, "Quelle": one.passages[0]}
        for one in answers
    ]
    path = folder / "Protokoll.csv"
    pandas.DataFrame(rows).to_csv(path, index=False, sep=";")
    return Log(path, answers)


LOGS: Mapping[str, Callable[[Path, Material], Log]] = {
    "CSV": write_csv,
    "pandas JSON": write_pandas,
    "Excel, German headers": write_excel,
    "LangSmith runs": write_langsmith,
    "chat with tools": write_chats,
    "40 % refusals": write_refusals,
    "mixed lengths": write_lengths,
    "Markdown tables": write_tables,
    "numbered contexts": write_numbered,
    "nested traces": write_traces,
}
PLAIN_CHATS = "chat with tools, the answer last"
MORE_LOGS: Mapping[str, Callable[[Path, Material], Log]] = {
    PLAIN_CHATS: write_plain_chats,
    "German answers": write_german,
}
"""Logs beside the ten."""


# ---- what came of them ----


def one_line(*texts: str | None) -> str:
    return " ".join(" ".join(text or "" for text in texts).split())


def simplify(*texts: str) -> str:
    """Return texts without white space and marks of headings, so that a title may be apart."""
    return "".join(" ".join(texts).replace("#", "").split())


def read_lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def score_log(log: Log) -> Json:
    """Score a log as a stranger does, and return what came of it."""
    started = time.perf_counter()
    process = subprocess.run(
        [sys.executable, "-m", "trustassay", "score", log.path.name],
        cwd=log.path.parent,
        env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    seconds = time.perf_counter() - started
    screen = process.stdout + process.stderr
    result: Json = {
        "rows": len(log.answers),
        "status": process.returncode,
        **find_outcome_line(screen),
        **judge_run(log),
        "seconds": round(seconds, 1),
        "screen": screen.replace(str(log.path.parent), "")[:MAX_SCREEN_CHARACTERS],
    }
    claims_all_is_well = bool(ALL_CLEAR.search(screen))
    result["false_all_clear"] = (claims_all_is_well and result["judged"] < result["rows"]) or (
        result["status"] == 0 and result["judged"] == 0
    )
    # Only the German log, which has no labels, may end with 1 and nothing judged.
    expected = 0 if result["judged"] or result["right"] or result["wrong"] else 1
    result["right_screen"] = (
        result["status"] == expected
        and result["questions_counted"] == result["rows"]
        and result["texts_right"] == result["passages_right"] == result["rows"]
        and not result["false_all_clear"]
    )
    return result


def find_outcome_line(screen: str) -> Json:
    """Return how many questions the line of outcomes counts, and how many lines are above it."""
    for place, line in enumerate(screen.splitlines()):
        count = OUTCOMES.search(line)
        if count and line.count("%") >= 3:
            return {"questions_counted": int(count[1].replace(",", "")), "lines_above": place}
    return {"questions_counted": 0, "lines_above": None}


def judge_run(log: Log) -> Json:
    """Compare what a run read and judged with what was written; zeros where there is no run."""
    from arro3.io import read_parquet

    folders = list((log.path.parent / "trustassay-runs").glob("*/samples.jsonl"))
    counts: Counter[str] = Counter()
    if folders:
        [samples] = folders
        rows = read_parquet(str(samples.parent / "assessments.parquet")).read_all()
        outcomes: dict[str, str] = {}
        # With two metrics the first that judged an answer counts.
        for name, outcome in zip(
            *(rows[key].to_pylist() for key in ("id", "outcome")), strict=True
        ):
            if outcomes.get(name) in (None, "not answered"):
                outcomes[name] = str(outcome)
        written = {(one_line(one.question), one_line(one.response)): one for one in log.answers}
        for row in read_lines(samples):
            answer = written.get((one_line(row["question"]), one_line(row.get("response"))))
            outcome = outcomes.get(row["id"], "")
            counts["judged"] += outcome in ("passed", "failed")
            if answer is None:
                continue
            counts["texts"] += 1
            texts = [document["text"] for document in row.get("documents") or ()]
            titled = [
                f"{document.get('title') or ''} {document['text']}"
                for document in row.get("documents") or ()
            ]
            # A heading or a name of a page may be the title of its passage.
            written_texts = simplify(*answer.passages)
            counts["passages"] += written_texts in (simplify(*texts), simplify(*titled))
            counts[f"{answer.is_right} {outcome}"] += 1
    return {
        "texts_right": counts["texts"],
        "passages_right": counts["passages"],
        "judged": counts["judged"],
        "right": sum(one.is_right is True for one in log.answers),
        "right_flagged": counts["True failed"],
        "right_not_judged": counts["True not answered"],
        "wrong": sum(one.is_right is False for one in log.answers),
        "wrong_missed": counts["False passed"],
        "wrong_not_judged": counts["False not answered"],
    }


def measure(shared: Path) -> Json:
    """Write and score all logs, and return the figures."""
    material = Material(draw_usual(shared), shared)
    logs: dict[str, Json] = {}
    for name, write in {**LOGS, **MORE_LOGS}.items():
        with tempfile.TemporaryDirectory() as folder:
            logs[name] = score_log(write(Path(folder), material))
        figures = {key: value for key, value in logs[name].items() if key != "screen"}
        print(f"{name:22}", *(f"{key} {value}" for key, value in figures.items()), flush=True)
    return {
        "right_screens": sum(logs[name]["right_screen"] for name in LOGS),
        "of": len(LOGS),
        "false_all_clears": sum(log["false_all_clear"] for log in logs.values()),
        "right_flagged_as_table": logs["CSV"]["right_flagged"],
        "right_flagged_as_chat": logs[PLAIN_CHATS]["right_flagged"],
        "logs": logs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, help="a file for the figures in place of lab/results")
    options = parser.parse_args()
    shared = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")).resolve() / "data"
    if not shared.is_dir():
        raise SystemExit(f"{shared}: is not here; set TRUSTASSAY_SHARED")
    figures = measure(shared)
    if options.out:
        text = json.dumps(figures, ensure_ascii=False, indent=1) + "\n"
        options.out.write_text(text, encoding="utf-8")
    else:
        # The screens quote the data, which are not ours.
        logs = {
            name: {key: value for key, value in log.items() if key != "screen"}
            for name, log in figures["logs"].items()
        }
        print(write_result("strangers", COMMAND, DATA, {**figures, "logs": logs}))


if __name__ == "__main__":
    main()
