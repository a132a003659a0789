"""Answers changed in one thing each: what must not matter, and an error, which must."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np

from trustassay.metrics.grounding.sentences import splitter
from trustassay.sample import Sample, question_key
from trustassay.statistics.resampling import generator

LISTED: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    (files(__package__) / "changes.toml").read_text(encoding="utf-8")
)
Changes = Mapping[str, Mapping[int, Sample]]
ERROR = "error"
"""The change that must matter."""
TRIED = 50
"""Other answers that are looked at for one that can stand in an answer's place."""
NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d{1,12})(?![\w,]|\.\d)")
NAME = re.compile(r"(?<=[\w,;] )[A-Z][^\W\d_][\w'-]+(?: [A-Z][\w'-]+)*")
VERB = re.compile(rf"\b(?:{LISTED[ERROR]['verbs'].replace(' ', '|')})\b(?! not\b|n['’]t)")


def changes_of(samples: Sequence[Sample], metric: str, seed: int) -> Changes:
    """Return by its name each change that a metric must not mind, and the error: the changed
    samples, by their places. An error's kind stands behind its id.

    What is changed, and in which answers, follows from the samples and the seed alone.
    """
    names = sorted({name for one in samples for name in NAME.findall(one.response or "")})
    result = dict[str, dict[int, Sample]]()
    for name, listed in LISTED.items():
        field = next((one for one in ("response", "question") if one in listed), None)
        if metric in listed.get("not_for", ()) or not (field or name in (*_RULES, ERROR)):
            continue
        for place, sample in enumerate(samples):
            rng, kind = generator(seed, "audit", name, sample.id), name
            if name == ERROR:
                kind, changed = _error(place, samples, names, rng)
            elif field:
                given: dict[str, Any] = {field: _filled(sample, rng.choice(listed[field]))}
                changed = replace(sample, **given)
            else:
                changed = _RULES[name](sample)
            if changed != sample:
                result.setdefault(name, {})[place] = replace(changed, id=f"{sample.id}~{kind}")
    return result


def _filled(sample: Sample, text: str) -> str:
    given = {"question": sample.question, "response": (sample.response or "").strip()}
    return re.sub(r"\{(question|response)\}", lambda one: given[one[1]], str(text))


def _sentences(sample: Sample, form: Callable[[str], str], between: str) -> Sample:
    found = [one for one in map(str.strip, splitter("sentencex")(sample.response or "")) if one]
    return replace(sample, response=between.join(map(form, found)))


def _citations(sample: Sample) -> Sample:
    if re.search(r"\[\d", sample.response or ""):
        return sample
    return _sentences(sample, lambda one: re.sub(r"([.!?]*)$", r" [1]\1", one, count=1), " ")


_RULES: Mapping[str, Callable[[Sample], Sample]] = {
    "bullets": lambda sample: _sentences(sample, "- {}".format, "\n"),
    "citations": _citations,
    "passages": lambda one: replace(one, documents=one.documents and one.documents[::-1]),
}


def _error(
    place: int, samples: Sequence[Sample], names: Sequence[str], rng: np.random.Generator
) -> tuple[str, Sample]:
    """Return the kind of an error and the answer with it: a small one, drawn from those that the
    text allows, else the answer to another question; the same answer if there is none."""
    sample = samples[place]
    answer, key = sample.response or "", question_key(sample.question)
    others = [name for name in names if name not in answer]
    kinds = {"number": NUMBER, "negation": VERB, **({"name": NAME} if others else {})}
    for kind in rng.permutation(list(kinds)).tolist():
        if kind == "negation" and " not " in answer:
            return kind, replace(sample, response=answer.replace(" not ", " ", 1))
        if found := list(kinds[kind].finditer(answer)):
            match = found[int(rng.integers(len(found)))]
            other = f"{match[0]} not" if kind == "negation" else ""
            if kind == "number":
                value = int(match[0].replace(",", ""))
                value += int(rng.integers(1, max(9, value // 20) + 1))
                other = f"{value:,}" if "," in match[0] else str(value)
            other = other or others[int(rng.integers(len(others)))]
            text = f"{answer[: match.start()]}{other}{answer[match.end() :]}"
            return kind, replace(sample, response=text)
    for one in (samples[(place + step) % len(samples)] for step in range(1, TRIED)):
        if question_key(one.question) != key and one.response != answer:
            return "another answer", replace(sample, response=one.response)
    return "none", sample
