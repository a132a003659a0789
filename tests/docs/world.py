"""A folder with the files that the pages name, and scripted models in place of endpoints."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT, blocks, inside, run_command

QUESTIONS = {
    "Who invented the saxophone?": "Adolphe Sax",
    "Who invented the piano?": "Bartolomeo Cristofori",
    "Who invented the theremin?": "Leon Theremin",
}
SCRIPTED = '''"""Models that answer by a rule, one for each name that is asked for."""

import re

NAMES = ("Adolphe Sax", "Bartolomeo Cristofori", "Leon Theremin")


def _reply(request):
    said = request.messages[-1].content
    levels = re.search(r"^(\\w+): one of (.*)", said, re.MULTILINE)
    if levels:
        return f"{levels[1]}: {levels[2].split(', ')[-1]}\\nReason: it is right."
    if "NEITHER" in said.upper() and "CONTRADICT" in said.upper():
        return "supports"
    if "Non-Wrong Answer" in said:
        layout = "{0}. Wrong Answer: It was no {0}.\\n{0}. Non-Wrong Answer: It was {0}."
        return "\\n".join(layout.format(n) for n in range(1, 26))
    if re.search(r"^A[.)] ", said, re.MULTILINE):
        return "A"
    if "Answer 1" in said:
        return "1"
    if "list" in said.lower():
        return "\\n".join(f"{n}. {name} invented it." for n, name in enumerate(NAMES * 9, 1))
    known = (name for name in NAMES if name.split()[0] in said)
    return f"{next(known, 'Somebody')} invented it [1]."


def entails(premise, hypothesis):
    words = hypothesis.lower().strip(".").split()
    return sum(word in premise.lower() for word in words) / max(len(words), 1)


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)

    def model(request):
        return _reply(request)

    model.__name__ = name
    return model
'''
_ENDPOINT = re.compile(r"(?:openai|anthropic|gemini):(?!//).*")


def scripted(line: str) -> str:
    """Return a command with a scripted model in place of each endpoint; nothing is opened."""
    words = shlex.split(line)
    for place, word in enumerate(words):
        model = "python:page_models:" + re.sub(r"\W", "_", word.rpartition("=")[2])
        if words[place - 1] in ("--entailer", "--second") or word.startswith("entailer="):
            model = "python:page_models:entails"
        elif words[place - 1] == "--embedder":
            model = "embedded"
        words[place] = _ENDPOINT.sub(model, word, count=1)
    return shlex.join(word for word in words if word != "--open")


def _chat(one: Mapping[str, Any]) -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": one["question"]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": _bare(one)},
        {"role": "assistant", "content": _bare(one)},
    ]
    return {"messages": messages}


def build(folder: Path) -> None:
    """Write the files, and the runs that pages continue from."""
    samples = [_sample(question, name) for question, name in QUESTIONS.items()]
    others = [
        {**one, "id": f"{one['id']}-2", "model": "two", "response": "I think so."}
        for one in samples
    ]
    samples[-1]["response"], others[-1]["response"] = (
        others[-1]["response"],
        samples[-1]["response"],
    )
    samples[1]["references"] = others[1]["references"] = {
        **samples[1]["references"],
        "m1": "I think so.",
    }
    _lines(folder / "answers.jsonl", [*samples, *others])
    _lines(folder / "tuned.jsonl", samples)
    _lines(folder / "vanilla.jsonl", others)
    _lines(folder / "new.jsonl", samples)
    _lines(folder / "old.jsonl", others)
    _lines(folder / "questions.jsonl", [_only(one, "question", "answers") for one in samples])
    asked = [_only(one, "question", "documents", "answers") for one in samples]
    _lines(folder / "asked.jsonl", asked)
    _lines(folder / "log.jsonl", [{**one, "response": _bare(one)} for one in samples])
    _lines(folder / "chats.jsonl", [_chat(one) for one in samples])
    recorded = [{"question": one["question"], "response": _bare(one)} for one in samples]
    _lines(folder / "recorded.jsonl", [{**one, "resamples": ["It."] * 3} for one in recorded])
    rows = [f'{one["question"]},{_bare(one)},"[""{_bare(one)}""]"' for one in samples]
    _text(folder / "log.csv", ["question,answer,contexts", *rows])
    for place in ("passages", "texts"):
        (folder / place).mkdir()
        passages = [{"id": str(n), "text": _bare(one)} for n, one in enumerate(samples)]
        _lines(folder / place / "passages.jsonl", passages)
    _text(folder / "prices.json", [json.dumps({"*": {"prompt": 1, "reply": 1}})])
    rated = [f"q{n},{rater},{1 + n % 4}" for n in range(8) for rater in ("anna", "bela")]
    _text(folder / "ratings.csv", ["item,rater,rating", *rated])
    words = ("poor", "fair", "good")
    said = [
        {"item": one["id"], "rater": rater, "rating": words[n]}
        for n, one in enumerate(samples)
        for rater in ("anna", "bela")
    ]
    _lines(folder / "ratings.jsonl", said)
    wide = [f"q{n},{1 + n % 3},{1 + n % 2},{1 + n % 3}" for n in range(8)]
    _text(folder / "wide.csv", ["question,anna,bela,judge", *wide])
    pairs = [(_bare(one), _bare(other), one is other) for one in samples for other in samples]
    names = ("premise", "hypothesis", "label")
    _lines(folder / "pairs.jsonl", [dict(zip(names, pair, strict=True)) for pair in pairs])
    page = (ROOT / "docs/methods/judge.md").read_text(encoding="utf-8")
    rubric = next(block.body for block in blocks(page) if block.language == "yaml")
    _text(folder / "tone.yaml", [rubric])
    _text(folder / "page_models.py", [SCRIPTED])
    (folder / "src").symlink_to(ROOT / "src")
    shutil.copytree(ROOT / "docs/examples", folder / "docs/examples")
    with inside(folder):
        run_command("trustassay score answers.jsonl --entailer lexical --out runs/one")
        run_command("trustassay score answers.jsonl --metric fewl:form=agreement --out runs/fewl")
        run_command("trustassay score answers.jsonl --metric harmonicity --out runs/tuesday")
        judged = "--metric judge:repeats=3 --judge python:page_models:judge --out runs/judged"
        run_command(f"trustassay score answers.jsonl {judged}")
        for name in ("march", "april", "a", "b"):
            shutil.copytree("runs/one", f"runs/{name}")
        shutil.copytree("runs/fewl", "runs/models")


def _sample(question: str, name: str) -> dict[str, Any]:
    thing = question.rsplit(maxsplit=1)[-1].strip("?")
    text = f"{name} invented the {thing}."
    return {
        "id": thing,
        "question": question,
        "response": f"{text[:-1]} [1].",
        "model": "one",
        "answers": [[name]],
        "documents": [text, "Brass is an alloy of copper and zinc."],
        "resamples": [text] * 3,
        "about": {"topic": "music"},
        "references": {"m1": text, "m2": f"It was {name}.", "m3": f"{name} did."},
    }


def _only(sample: Mapping[str, Any], *fields: str) -> Mapping[str, Any]:
    return {field: sample[field] for field in fields}


def _bare(sample: Mapping[str, Any]) -> str:
    return str(sample["documents"][0])


def _lines(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    _text(path, [json.dumps(record) for record in records])


def _text(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
