"""CPU seconds by the length of an answer, for texts of kinds that are hard to cut into claims.

Two times: of cutting the answer into claims alone, and of a whole :func:`trustassay.score` with the
lexical entailer, whose reading takes almost no time. Seconds per 10,000 characters that grow with
the length are a sign of quadratic work. Each text is measured in a process of its own, with a limit
of CPU seconds, so that one text that never ends does not stop the others.
"""

from __future__ import annotations

import importlib
import itertools
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import trustassay
from lab.benchmarks.claims.storage import ResultRow
from trustassay.metrics.faithfulness import Faithfulness

SIZES = (1_000, 10_000, 100_000)
"""Characters of the answers; 100,000 is the longest that is assessed by default."""
ROOM = 10
"""``longest_answer``, as a multiple of the length, for an answer that is too long by default. The
limit of statements grows with it: one for each 100 characters, where bullets have one for each 20.
"""
CPU_LIMIT = 180
"""CPU seconds after which a text is given up."""
MEMORY_LIMIT = 12 << 30
"""Bytes of address space of the process of a text."""
ENOUGH = 0.5
"""CPU seconds after which no further text is measured; the clock has steps of 4 milliseconds."""
MAX_REPEATS = 40
UNIT = 10_000
"""Characters that times are given for."""
QUESTION = "What is known of the mills on the river?"
DOCUMENTS = [
    "Mill 7 stands on the river. It was built in 1807 and burned down in May 1911.",
    "Most mills on the river grind wheat. The smith of the village repairs their wheels.",
]


def _make_plain_sentences(first: int) -> Iterator[str]:
    for number in itertools.count(first):
        yield f"Mill {number} stands on the river and was built in {1500 + number % 500}. "


def _make_bullets(first: int) -> Iterator[str]:
    for number in itertools.count(first):
        yield f"- Mill {number} is open.\n"


def _make_nested_list(first: int) -> Iterator[str]:
    for number in itertools.count(first):
        yield f"{'  ' * (number % 8)}- Mill {number} has {number % 9 + 1} wheels:\n"


def _make_table(first: int) -> Iterator[str]:
    yield "| mill | built | wheels |\n| --- | --- | --- |\n"
    for number in itertools.count(first):
        yield f"| Mill {number} | {1500 + number % 500} | {number % 9 + 1} |\n"


def _make_mixed_directions(first: int) -> Iterator[str]:
    for number in itertools.count(first):
        yield f"The mill is called טחנה {number} in Hebrew and مطحنة {number} in Arabic. "


def _make_code_block(first: int) -> Iterator[str]:
    yield "```python\n"
    for number in itertools.count(first):
        yield f"mill_{number} = build(wheels={number % 9 + 1})\n"


def _make_single_word(first: int) -> Iterator[str]:
    yield from itertools.repeat(f"mill{first}")


def _make_citations(first: int) -> Iterator[str]:
    for number in itertools.count(first):
        yield f"Mill {number} burned [1][2] [1, 2]. "


def _make_closed_thinking(first: int) -> Iterator[str]:
    for number in itertools.count(first):
        yield f"<think>Is mill {number} open?</think> Mill {number} is open. "


def _make_open_thinking(first: int) -> Iterator[str]:
    yield f"Mill {first} is open. "
    yield from itertools.repeat("<think> ")


def _make_headings(first: int) -> Iterator[str]:
    for number in itertools.count(first):
        yield f"{'#' * (number % 4 + 1)} Mill {number}\n"


TEXT_KINDS: Mapping[str, Callable[[int], Iterator[str]]] = {
    "plain sentences": _make_plain_sentences,
    "bullets": _make_bullets,
    "nested list": _make_nested_list,
    "table": _make_table,
    "right-to-left mixed": _make_mixed_directions,
    "code block only": _make_code_block,
    "one word": _make_single_word,
    "citations": _make_citations,
    "think tags": _make_closed_thinking,
    "open think tags": _make_open_thinking,
    "headings": _make_headings,
}


def make_text(kind: str, size: int, first: int = 1) -> str:
    """Return a text of a kind with ``size`` characters; its last piece may be cut.

    first: the number of its first piece; another one makes another text.
    """
    pieces: list[str] = []
    length = 0
    for piece in TEXT_KINDS[kind](first):
        pieces.append(piece)
        length += len(piece)
        if length >= size:
            break
    return "".join(pieces)[:size]


def find_claim_builder() -> Callable[[str], Sequence[object]] | None:
    """Return what cuts an answer into the claims that are judged; ``None`` where it is not known.

    It is the one thing here that no public function offers, and it has moved: modules are imported
    by name, since a type checker sees one version only.
    """
    options: Any = Faithfulness()
    with suppress(ModuleNotFoundError):
        module = importlib.import_module("trustassay.judging.claims")
        return lambda text: module.build_claims(QUESTION, text, options.split)
    with suppress(ModuleNotFoundError):
        earlier = importlib.import_module("trustassay.metrics.faithfulness.claims")
        return lambda text: earlier.sentences(QUESTION, text, options.split, options.refuses)
    return None


def measure_cpu(work: Callable[[str], Any], kind: str, size: int) -> tuple[float, Any]:
    """Return the mean CPU seconds of work on texts of a kind, and the result of the first one.

    Every text is another one: what is kept of a text in memory would make the second time shorter.
    """
    seconds: list[float] = []
    results: list[Any] = []
    while sum(seconds) < ENOUGH and len(seconds) < MAX_REPEATS:
        text = make_text(kind, size, first=1 + 1000 * len(seconds))
        began = time.process_time()
        result = work(text)
        seconds.append(time.process_time() - began)
        results = results or [result]
    return statistics.mean(seconds), results[0]


def score_text(text: str, **options: Any) -> trustassay.Assessment:
    """Score one answer with the lexical entailer."""
    sample = {"id": "long", "question": QUESTION, "response": text, "documents": DOCUMENTS}
    run = trustassay.score(
        [sample], metrics="faithfulness", entailer="lexical", progress=False, **options
    )
    (assessment,) = run.assessments
    return assessment


def _measure_text(kind: str, size: int, sender: Connection) -> None:
    """Send the times of a text, one by one, so that the first is known if the second never ends."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    # What is loaded once, such as word lists, belongs to no text.
    score_text(make_text("plain sentences", 200))
    build = find_claim_builder()
    if build is not None:
        build("Mill 7 is open.")
        seconds, claims = measure_cpu(build, kind, size)
        sender.send({"claims_s": seconds, "claims": len(claims)})
    options: dict[str, Any] = {}
    refusal = score_text(make_text(kind, size)).error
    if refusal is not None:
        sender.send({"by_default": refusal})
        options["longest_answer"] = ROOM * size
    seconds, assessment = measure_cpu(lambda text: score_text(text, **options), kind, size)
    sender.send({"score_s": seconds, "verdict": assessment.verdict, "error": assessment.error})


def measure_text(kind: str, size: int) -> ResultRow:
    """Return the row of a text, measured in a process of its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure_text, args=(kind, size, sender))
    process.start()
    sender.close()  # so that the end of the process is the end of what is received
    row: ResultRow = {"measure": "speed", "set": kind, "id": f"{size}", "characters": size}
    while True:
        try:
            row |= receiver.recv()
        except EOFError:
            break
    process.join()
    if process.exitcode != 0:
        row["stopped"] = f"exit {process.exitcode}; limits: {CPU_LIMIT} CPU seconds, 12 GiB"
    return row
