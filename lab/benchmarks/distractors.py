"""Distractors of real answers: how many, how fast, and whether they give the answer away.

    python -m lab.benchmarks.distractors coverage [--sources embedding,pos] [--answers N]
    python -m lab.benchmarks.distractors readers [--sources embedding,pos] [--answers N]
        [--generator URI] [--reader URI ...]
    python -m lab.benchmarks.distractors ratio [--answers N] [--alone N]
    python -m lab.benchmarks.distractors fit [--sources embedding,pos] [--set report]
        [--count]
    python -m lab.benchmarks.distractors drawn [--sources embedding,pos] [--answers 40]
        [--generator URI]

The data are ``trustscore/qa_human_check.json`` of the shared folder (TRUSTASSAY_SHARED, else
../shared): 1,000 questions, three systems. A reader sees the answer and three of its distractors,
in an order without meaning, and picks by one trait alone; ties count as the chance they leave. A
chat model as reader sees the four texts without the question, in each of four orders, and says
which is the real answer. Calls of chat models are stored, so a stopped command goes on.

``fit`` prints the first choice of 60 answers, for a person who judges whether each distractor is a
plausible answer of the right kind; with ``--count`` it counts the verdicts that are stored in
``results/distractors_fit.json`` by id, without a word of the data.

A generator is a source, ``llm``, which comes first; ``--sources llm`` takes it alone. ``readers``
puts its table into ``results/distractors.json``, in place of an earlier one of the same sources,
generator, readers and number of answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from lab.results import FOLDER, read_result, write_result
from trustassay.backends import resolve
from trustassay.backends.embedded import load_encoder
from trustassay.backends.word_substitutes import word_table
from trustassay.calls.backends import Backends
from trustassay.calls.client import CallOptions, SampleModels, open_calls
from trustassay.core.capabilities import Models
from trustassay.core.sample import Sample
from trustassay.metrics.consistency.checks import draw_offers
from trustassay.metrics.consistency.distractors import find_distractors
from trustassay.metrics.consistency.slots import find_same_kind_answers
from trustassay.metrics.consistency.tokens import (
    Distractor,
    find_likely_types,
    normalise,
    split_words,
)
from trustassay.papers.distractors import MAX_POOL_ANSWERS, load_backends
from trustassay.statistics.resampling import generator

SYSTEMS = ("flan", "llama", "gpt")
UNCACHED = CallOptions(cache=None)
OPTIONS = 4
NAME = "distractors"
Floats = NDArray[np.float64]


class Answer(NamedTuple):
    """An answer, and what was found for it."""

    sample: Sample
    found: list[Distractor]


class Options(NamedTuple):
    """Four options to a question, the real answer first, and what was replaced in each."""

    question: str
    texts: list[str]
    parts: list[str]


def samples(n: int | None, seed: int = 0) -> list[Sample]:
    """Return all answers of the data set, or n drawn at random."""
    shared = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared"))
    path = shared / "data" / "trustscore" / "qa_human_check.json"
    if not path.exists():
        raise SystemExit(f"{path}: is not here; set TRUSTASSAY_SHARED")
    records = json.loads(path.read_text(encoding="utf-8"))
    every = [
        Sample(
            f"{i}-{system}",
            record["question"],
            record[system]["pred"],
            answers=(tuple(record["answers"]),),
        )
        for i, record in enumerate(records)
        for system in SYSTEMS
    ]
    if n is None or n >= len(every):
        return every
    places = sorted(generator(seed, "benchmark").permutation(len(every))[:n])
    return [every[int(place)] for place in places]


async def found_for(
    own: Sequence[Sample],
    sources: str,
    generator: str | None = None,
    *,
    pool: bool = False,
    together: bool = True,
) -> list[Answer]:
    """Return the distractors of answers: all under way at once, or one after the other."""
    backends, names = load_backends(sources, None, generator)
    others = samples(MAX_POOL_ANSWERS, 1) if pool else []

    async def one(sample: Sample, models: Models) -> Answer:
        golds = sample.answers[0]
        near = find_same_kind_answers(sample, others) if pool else ()
        response = sample.response or ""
        found = await find_distractors(
            sample.question, response, models, aliases=golds, pool=near, sources=names
        )
        return Answer(sample, found)

    if together:
        async with open_calls(backends, CallOptions() if generator else UNCACHED) as gatherers:
            models = cast(Models, SampleModels(gatherers))
            return list(await asyncio.gather(*(one(sample, models) for sample in own)))
    answers = []
    for sample in own:
        async with open_calls(backends, UNCACHED) as gatherers:
            answers.append(await one(sample, cast(Models, SampleModels(gatherers))))
    return answers


def warm(sources: str) -> None:
    """Load what is loaded once in a process, so that it is not counted."""
    asyncio.run(found_for(samples(3, 9), sources))


def coverage(options: argparse.Namespace) -> None:
    warm(options.sources)
    own = samples(options.answers)
    began = time.perf_counter()
    answers = asyncio.run(found_for(own, options.sources, pool=options.pool))
    seconds = time.perf_counter() - began
    counts = [len(one.found) for one in answers]
    equal = sum(
        normalise(one.text) in {normalise(a.sample.response or ""), *map(normalise, golds)}
        for a in answers
        for golds in a.sample.answers
        for one in a.found
    )
    origins = Counter((one.level, one.source) for a in answers for one in a.found[: OPTIONS - 1])
    print(f"{len(own):,} answers, sources {options.sources}{' and pool' if options.pool else ''}")
    print(f"at least 3: {np.mean(np.array(counts) >= 3):.4f}")
    print(f"at least 30: {np.mean(np.array(counts) >= 30):.4f}; mean {np.mean(counts):.1f}")
    print(f"equal to the answer or an alias: {equal}")
    print(f"{1000 * seconds / len(own):.1f} ms an answer")
    for (level, source), n in sorted(origins.items()):
        print(f"  level {level}, {source}: {n / sum(origins.values()):.3f} of the first three")
    for one in answers:
        if len(one.found) < 3:
            print("  few:", one.sample.id, len(one.found))


def drawn_options(answers: Sequence[Answer], seed: int = 0) -> list[Options]:
    """Return four options for each answer that has three distractors, drawn from all of its own."""
    made = []
    for sample, found in answers:
        if len(found) < OPTIONS - 1:
            continue
        rng = generator(seed, sample.id, "options")
        chosen = [found[int(i)] for i in rng.permutation(len(found))[: OPTIONS - 1]]
        texts = [sample.response or "", *(one.text for one in chosen)]
        parts = [chosen[0].replaced, *(one.replacement for one in chosen)]
        made.append(Options(sample.question, texts, parts))
    return made


def right(scores: Floats) -> float:
    """Return the chance that the first of some options is picked by the highest score."""
    best = np.flatnonzero(scores >= scores.max() - 1e-9)
    return float(0 in best) / len(best)


def readers() -> dict[str, Callable[[Options], Floats]]:
    """Return readers that need no knowledge: each scores four options."""
    tokenizer = load_encoder("embedder").tokenizer
    ranks = tokenizer.get_vocab()
    table = word_table()

    def lengths(one: Options) -> Floats:
        return np.array([len(text) for text in one.texts], dtype=float)

    def frequency(one: Options) -> Floats:
        rows = [[ranks.get(word, len(ranks)) for word in split_words(p)] or [0] for p in one.parts]
        return np.array([-np.mean(np.log1p(row)) for row in rows])

    def pieces(one: Options) -> Floats:
        return np.array([-len(tokenizer.encode(part).ids) for part in one.parts], dtype=float)

    def kinds(one: Options) -> Floats:
        likely = [
            kind
            for name in find_likely_types(one.question)
            for kind in (("given name", "surname") if name == "Person" else ("place",))
        ]
        found = [[table.kind(word) in likely for word in part.split()] for part in one.parts]
        return np.array([np.mean(row or [False]) for row in found])

    def numbers(one: Options) -> Floats:
        found = [re.search(r"[0-9]+", part.replace(",", "")) for part in one.parts]
        return np.array([float(match[0]) if match else 0.0 for match in found])

    def common(one: Options) -> Floats:
        sets = [set(split_words(text)) for text in one.texts]
        return np.array([sum(len(a & b) for b in sets if b is not a) for a in sets], dtype=float)

    return {
        "length: longest": lengths,
        "length: shortest": lambda one: -lengths(one),
        "length: nearest to the mean": lambda one: -np.abs(lengths(one) - lengths(one).mean()),
        "fluency: most frequent words": frequency,
        "fluency: rarest words": lambda one: -frequency(one),
        "fluency: fewest pieces": pieces,
        "fluency: most pieces": lambda one: -pieces(one),
        "number: largest": numbers,
        "number: smallest": lambda one: -numbers(one),
        "number: nearest to the median": lambda one: (
            -np.abs(numbers(one) - np.median(numbers(one)))
        ),
        "type: kind that the question asks for": kinds,
        "agreement: most words in common with the others": common,
        "agreement: fewest words in common": lambda one: -common(one),
    }


def embedded_readers(options: Sequence[Options]) -> dict[str, Floats]:
    """Return scores, shape (n, 4), by the embedded models."""
    embedder = cast(Any, resolve.embedder("embedded"))
    entailer = resolve.entailer("embedded")
    questions = embedder.vectors([one.question for one in options])[:, None, :]

    def vectors(texts: list[str]) -> Any:
        return embedder.vectors(texts).reshape(len(options), OPTIONS, -1)

    whole = vectors([text for one in options for text in one.texts])
    parts = vectors([part for one in options for part in one.parts])
    pairs = [(one.question, text) for one in options for text in one.texts]
    entailed = entailer.scores(pairs)[:, 0].reshape(len(options), OPTIONS)
    return {
        "embedder: answer nearest to the question": (questions * whole).sum(-1),
        "embedder: replaced words nearest to it": (questions * parts).sum(-1),
        "embedder: nearest to the other options": (whole @ whole.transpose(0, 2, 1)).sum(-1),
        "entailer: question entails the answer": entailed,
    }


BLIND = """\
One of these four texts is a real answer to a question that is not shown. The other three were made
from it to mislead: something in them was replaced. Which one is the real answer?

{options}

Reply with its letter alone.
"""


async def chosen_blindly(options: Sequence[Options], reader: str) -> Floats:
    """Return scores, shape (n, 4), by a chat model that does not see the question.

    The sum of the log-probabilities of an option over its four places, so that a model that likes
    a letter has no use of it; of a model that tells none, how often it names the option.
    """
    backends = Backends.of(chat={"model": resolve.chat(reader)})
    async with open_calls(backends, CallOptions()) as gatherers:
        models = cast(Models, SampleModels(gatherers))

        async def one(texts: Sequence[str], first: int) -> Floats:
            order = [(first + place) % OPTIONS for place in range(OPTIONS)]
            shown = [" ".join(texts[i].split()) for i in order]
            lines = [f"{letter}) {text}" for letter, text in zip("ABCD", shown, strict=True)]
            prompt = BLIND.format(options="\n".join(lines))
            choice = await models.choose(prompt, shown, max_tokens=8, may_be_empty=True)
            scores = np.zeros(OPTIONS)
            if choice.probabilities:
                scores[order] = np.log(np.maximum(choice.probabilities, 1e-9))
            elif choice.index is not None:
                scores[order[choice.index]] = 1
            return scores

        asked = [one(each.texts, first) for each in options for first in range(OPTIONS)]
        found = np.array(await asyncio.gather(*asked))
    return cast(Floats, found.reshape(len(options), OPTIONS, OPTIONS).sum(1))


def read(options: argparse.Namespace) -> None:
    own = samples(options.answers)
    found = found_for(own, options.sources, options.generator, pool=options.pool)
    answers = asyncio.run(found)
    drawn = drawn_options(answers)
    made_by = Counter(one.source for answer in answers for one in answer.found)
    print(f"{len(drawn):,} questions of {OPTIONS} options, sources {options.sources}")
    print("  " + ", ".join(f"{n:,} {source}" for source, n in made_by.most_common()))
    scores = {
        name: np.array([reader(one) for one in drawn]) for name, reader in readers().items()
    } | embedded_readers(drawn)
    for uri in options.reader:
        scores[f"chat: {short(uri)}"] = asyncio.run(chosen_blindly(drawn, uri))
    figures = {}
    for name, rows in scores.items():
        hits = np.array([right(row) for row in rows])
        half = 1.96 * hits.std() / np.sqrt(len(hits))
        figures[name] = [round(float(hits.mean()), 3), round(float(half), 3)]
        print(f"  {name}: {hits.mean():.3f} +- {half:.3f}")
    about = {
        "sources": options.sources + ",pool" * options.pool,
        "generator": options.generator and short(options.generator),
        "readers": [short(uri) for uri in options.reader],
        "answers": len(own),
    }
    there = (FOLDER / f"{NAME}.json").exists()
    others = (
        [one for one in read_result(NAME) if any(one[key] != about[key] for key in about)]
        if there
        else []
    )
    row = about | {"questions": len(drawn), "distractors": dict(made_by), "picked": figures}
    command = "python -m lab.benchmarks.distractors readers, with the options of each table"
    write_result(NAME, command, "trustscore/qa_human_check.json", [*others, row])


def short(uri: str) -> str:
    """Return a URI without the folder of a model's file and without options."""
    scheme, _, rest = uri.partition("?")[0].partition(":")
    return f"{scheme}:{Path(rest).name}"


class Seconds(NamedTuple):
    """Seconds for an answer: by the clock, and of this process."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{1000 * self.wall:.1f} ms each, {1000 * self.cpu:.1f} ms of CPU time"


def timed(own: Sequence[Sample], sources: str, *, together: bool) -> Seconds:
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(found_for(own, sources, together=together))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Seconds(wall / len(own), cpu / len(own))


def ratio(options: argparse.Namespace) -> None:
    warm(options.sources)
    own = samples(options.answers)
    few = samples(options.alone, 2)
    alone = timed(few, options.sources, together=False)
    together = timed(own, options.sources, together=True)
    print(f"one at a time, {len(few):,} answers: {alone}")
    print(f"together, {len(own):,} answers: {together}")
    print(f"ratio: {alone.wall / together.wall:.2f}, of CPU time {alone.cpu / together.cpu:.2f}")


def drawn(options: argparse.Namespace) -> None:
    own = samples(options.answers or 40, 5)
    answers = found_for(own, options.sources, options.generator, pool=options.pool)
    for sample, found in asyncio.run(answers):
        rng = generator(0, sample.id, "drawn")
        print(f"\n{sample.id} Q: {sample.question}\n  A: {sample.response}")
        for place in rng.permutation(len(found))[:1]:
            one = found[int(place)]
            print(f"  {one.level} {one.source}: {one.replaced} -> {one.replacement}")


FIT_SETS = {
    "first": (0, 30),
    "second": (90, 150),
    "third": (30, 90),
    "fourth": (150, 210),
    "report": (210, 270),
    "last": (270, 330),
}
"""Places in the drawn order; the first four sets were read while the sources were developed."""


def draw_fit_samples(name: str) -> list[Sample]:
    """Return one answer to each question of a set, of a system drawn at random."""
    every = samples(None)
    questions = len(every) // len(SYSTEMS)
    order = generator(53, "fit").permutation(questions)
    systems = generator(53, "fit", "systems").integers(0, len(SYSTEMS), questions)
    begin, end = FIT_SETS[name]
    return [
        every[len(SYSTEMS) * int(order[place]) + int(systems[place])] for place in range(begin, end)
    ]


def fit(options: argparse.Namespace) -> None:
    if options.count:
        for row in read_result("distractors_fit"):
            verdicts = [one["fits"] for one in row["verdicts"].values()]
            print(f"{row['set']}, {row['version']}: {sum(verdicts)} of {len(verdicts)} fit")
        return
    answers = found_for(draw_fit_samples(options.set), options.sources, options.generator)
    for sample, distractors in asyncio.run(answers):
        print(f"\n{sample.id} Q: {sample.question}\n  A: {sample.response}")
        # The choice that the metric offers first.
        for offer in draw_offers(sample.id, distractors, 1, 0).wanted:
            for one in offer.distractors:
                print(f"  {one.level} {one.source}: {one.replaced} -> {one.replacement}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = {"coverage": coverage, "readers": read, "ratio": ratio, "drawn": drawn, "fit": fit}
    parser.add_argument("command", choices=commands)
    parser.add_argument("--sources", default="embedding,pos")
    parser.add_argument("--generator", help="a chat model that writes wrong answers")
    parser.add_argument("--reader", action="append", default=[], help="a chat model that reads")
    parser.add_argument("--pool", action="store_true")
    parser.add_argument("--answers", type=int)
    parser.add_argument("--set", choices=FIT_SETS, default="report", help="of fit")
    parser.add_argument("--count", action="store_true", help="the stored verdicts of fit")
    parser.add_argument("--alone", type=int, default=300)
    options = parser.parse_args()
    commands[options.command](options)


if __name__ == "__main__":
    main()
