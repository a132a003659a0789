"""Verdicts of ``faithfulness`` on the same passages in other shapes, as results of a tool.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.shapes        # ten minutes on two cores

The answers are right by their public labels and have several passages: 30 of HAGRID, from
AttributionBench, and 30 of ExpertQA; with them 20 wrong ones. Each is scored with its passages as
``documents`` (the plain list), and then as a chat in which a tool returns them in each shape.
Shapes with titles are also compared with the plain list with these titles, because an entailer
reads titles. Writes ``results/shapes.json``: of each shape the right answers that are flagged, the
wrong ones that pass, and the verdicts that differ. The data are found by TRUSTASSAY_SHARED, else in
../shared.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.results import write_result
from trustassay import score
from trustassay.statistics.resampling import generator

RIGHT, WRONG = 30, 10
"""Answers of each set."""
_MARK = re.compile(r"^\[\d+\]\s*")
Passages = Sequence[tuple[str, str]]
"""The title and the text of each passage."""


class Answer(NamedTuple):
    """An answer with its passages; ``is_right`` by its public label."""

    question: str
    response: str
    passages: Passages
    is_right: bool


def answers(shared: Path) -> list[Answer]:
    """Return the answers that are drawn of both sets."""
    result = []
    for name, every in (("HAGRID", list(_hagrid(shared))), ("ExpertQA", list(_expertqa(shared)))):
        for is_right, number in ((True, RIGHT), (False, WRONG)):
            rows = [one for one in every if one.is_right is is_right and len(one.passages) > 1]
            order = generator(0, "shapes", name, str(is_right)).permutation(len(rows))
            result += [rows[place] for place in order[:number]]
    return result


def _hagrid(shared: Path) -> Iterator[Answer]:
    for row in _rows(shared / "attributionbench" / "ood_dev.jsonl.gz"):
        if row["source"] == "HAGRID":
            texts = [_MARK.sub("", text) for text in row["references"]]
            titled = [(f"Page {number}", text) for number, text in enumerate(texts, 1)]
            yield Answer(row["question"], row["hypothesis"], titled, row["label"] == "supported")


def _expertqa(shared: Path) -> Iterator[Answer]:
    for part in ("dev", "train"):
        for row in _rows(shared / "expertqa" / f"samples_{part}.jsonl.gz"):
            texts = [one["text"] for one in row["documents"]]
            titled = [(f"Page {number}", text) for number, text in enumerate(texts, 1)]
            if row["label"] is not None:
                is_right = row["label"] == "supported"
                yield Answer(row["question"], row["response"], titled, is_right)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        raise SystemExit(f"{path}: is not here; set TRUSTASSAY_SHARED")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def _results(passages: Passages) -> list[dict[str, Any]]:
    """Return passages as a search engine returns them."""
    return [
        {
            "title": title,
            "score": 0.9 - place / 100,
            "snippet": text,
            "url": f"https://a.org/{place}",
        }
        for place, (title, text) in enumerate(passages)
    ]


def _hits(passages: Passages) -> list[dict[str, Any]]:
    return [{"_id": str(n), "_source": {"text": text}} for n, (_, text) in enumerate(passages)]


def _numbered(form: str, mark: str = "\n\n") -> Callable[[Passages], str]:
    """Return what writes passages as text, each in a form with its number, title and text."""

    def write(passages: Passages) -> str:
        rows = enumerate(passages, 1)
        return mark.join(form.format(n=n, title=title, text=text) for n, (title, text) in rows)

    return write


SHAPES: Mapping[str, Callable[[Passages], Any]] = {
    "list of texts": lambda passages: [text for _, text in passages],
    "text": lambda passages: [{"text": text} for _, text in passages],
    "page_content": lambda passages: [
        {"page_content": text, "metadata": {}} for _, text in passages
    ],
    "content with scores": lambda passages: [
        {"content": text, "score": 0.5} for _, text in passages
    ],
    "Elasticsearch": lambda passages: {"took": 3, "hits": {"hits": _hits(passages)}},
    "Pinecone": lambda passages: {
        "matches": [{"id": "a", "metadata": {"text": text}} for _, text in passages]
    },
    "Chroma": lambda passages: {
        "ids": [[str(n) for n in range(len(passages))]],
        "documents": [[text for _, text in passages]],
    },
    "JSON Lines": lambda passages: "\n".join(json.dumps({"text": text}) for _, text in passages),
    "blank lines": _numbered("{text}"),
    "[1] blocks": _numbered("[{n}] {text}"),
    "Document 1: blocks": _numbered("Document {n}: {text}", "\n"),
    "tags": _numbered('<document index="{n}">{text}</document>', "\n"),
}
WITH_TITLES: Mapping[str, Callable[[Passages], Any]] = {
    "results with title, score, snippet, url": lambda passages: {"results": _results(passages)},
    "Title: lines": _numbered("Title: {title}\n{text}"),
    "Source 1 (title): blocks": _numbered("Source {n} ({title}): {text}"),
}


def verdicts(rows: Sequence[Mapping[str, Any]], cache: str) -> list[str]:
    """Return the verdict on each row, ``failed`` where there is none."""
    found = score(rows, metrics="faithfulness", cache=cache, progress=False).assessments
    return [one.verdict or "failed" for one in found]


def _chat(answer: Answer, result: Any) -> dict[str, Any]:
    """Return a chat log in which a tool returned the passages."""
    content = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    return {
        "messages": [
            {"role": "user", "content": answer.question},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": content},
            {"role": "assistant", "content": answer.response},
        ]
    }


def _listed(answer: Answer, *, titled: bool) -> dict[str, Any]:
    documents = [
        {"title": title if titled else "", "text": text} for title, text in answer.passages
    ]
    return {"question": answer.question, "response": answer.response, "documents": documents}


def figures(drawn: Sequence[Answer]) -> dict[str, Any]:
    """Return the figures of all shapes."""
    right = [one.is_right for one in drawn]
    with tempfile.TemporaryDirectory() as folder:
        cache = str(Path(folder) / "calls.sqlite")
        plain = verdicts([_listed(one, titled=False) for one in drawn], cache)
        titled = verdicts([_listed(one, titled=True) for one in drawn], cache)

        def row(found: Sequence[str], plain: Sequence[str]) -> dict[str, int]:
            pairs = list(zip(found, right, strict=True))
            return {
                "right_flagged": sum(ok and one != "supported" for one, ok in pairs),
                "wrong_passed": sum(not ok and one == "supported" for one, ok in pairs),
                "differ": sum(one != other for one, other in zip(found, plain, strict=True)),
            }

        shapes = {"documents": row(plain, plain), "documents with titles": row(titled, titled)}
        for name, build in {**SHAPES, **WITH_TITLES}.items():
            found = verdicts([_chat(one, build(one.passages)) for one in drawn], cache)
            shapes[name] = row(found, titled if name in WITH_TITLES else plain)
            print(f"{name:42}", *(f"{k} {v}" for k, v in shapes[name].items()), flush=True)
    return {"right": sum(right), "wrong": len(right) - sum(right), "shapes": shapes}


def main() -> None:
    shared = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"
    write_result(
        "shapes",
        "python -m lab.benchmarks.shapes",
        "HAGRID (AttributionBench ood_dev) and ExpertQA (samples_dev, samples_train), by a seed",
        figures(answers(shared)),
    )


if __name__ == "__main__":
    main()
