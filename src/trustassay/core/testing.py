"""What the author of a metric needs for tests: the contract of metrics, and scripted backends.

    from trustassay.core.testing import MetricContract, ScriptedSimilarity

    class TestEcho(MetricContract):
        metric = Echo()
        samples = [{"id": "a", "question": "which town", "response": "Paris"}]
        backends = {"similarity": ScriptedSimilarity()}

pytest collects one test for each rule. Nothing here needs pytest, a network or a download.
"""

import json
import math
import multiprocessing
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.api import Run, plan, score
from trustassay.core.capabilities import ChatRequest, Passage, Probabilities, Reply, Vectors
from trustassay.core.metric import Assessment, Mean, Metric, Quantile, Total
from trustassay.core.sample import Sample
from trustassay.errors import BackendError, CallError, UsageError

Script = str | Mapping[str, str | Exception] | Callable[[ChatRequest], str | Reply]
Triple = tuple[float, float, float]
EMBEDDING_SIZE = 64


# Backends ---------------------------------------------------------------------------------------


class ScriptedChat:
    """A chat model that replies by a script; ``requests`` are those that it received, in order.

    Args:
        script: the reply to everything; or replies by a text that the last message contains, where
            the first match counts and ``""`` matches all others; or a function of the request. An
            exception among the replies is raised.
        name: of the model, a part of each stored call.
    """

    # The replies of a test must not enter the file that the user's runs share.
    shared = False

    def __init__(self, script: Script, name: str = "scripted") -> None:
        self.name, self.script = name, script
        self.requests: list[ChatRequest] = []

    async def reply(self, request: ChatRequest) -> Reply:
        """Return the reply of the script; raises ``KeyError`` if it has none."""
        self.requests.append(request)
        result = self._find_reply(request)
        if isinstance(result, Exception):
            raise result
        return result if isinstance(result, Reply) else Reply(result, "stop", 10, 1)

    def _find_reply(self, request: ChatRequest) -> str | Reply | Exception:
        if isinstance(self.script, str):
            return self.script
        if callable(self.script):
            return self.script(request)
        text = request.messages[-1].content
        for key, result in self.script.items():
            if key in text:
                return result
        raise KeyError(f"the script has no reply to {text[:200]!r}")


class ScriptedEntailer:
    """An entailer by a function of premise and hypothesis; ``pairs`` are those that it received.

    Without a function a premise entails a hypothesis all words of which it has, and is neutral
    otherwise.
    """

    name = "scripted-entailer"

    def __init__(self, judge: Callable[[str, str], Triple] | None = None) -> None:
        self.judge = judge or self._by_words
        self.pairs: list[tuple[str, str]] = []

    @staticmethod
    def _by_words(premise: str, hypothesis: str) -> Triple:
        return (
            (1.0, 0.0, 0.0)
            if _split_words(hypothesis) <= _split_words(premise)
            else (0.0, 1.0, 0.0)
        )

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return the probabilities, shape (n, 3)."""
        self.pairs += pairs
        return np.array([self.judge(*pair) for pair in pairs])


class ScriptedEmbedder:
    """An embedder that counts words: texts with the same words have the same vector."""

    name = "scripted-embedder"

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, 64)."""
        result = np.zeros((len(texts), EMBEDDING_SIZE), dtype=np.float32)
        for row, text in zip(result, texts, strict=True):
            for word in text.split() or [""]:
                # A hash that is equal in every process, unlike Python's own.
                row[sum(word.encode("utf-8", "surrogatepass")) % EMBEDDING_SIZE] += 1
        return np.asarray(result / np.linalg.norm(result, axis=1, keepdims=True))


class ScriptedSimilarity:
    """A similarity by a table of (text, reference); for other pairs the share of common words."""

    name = "scripted-similarity"

    def __init__(self, table: Mapping[tuple[str, str], float] | None = None) -> None:
        self.table = table or {}

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """Return the similarities, shape (n,)."""
        return np.array([self.table.get(pair, self._share_common_words(*pair)) for pair in pairs])

    @staticmethod
    def _share_common_words(text: str, reference: str) -> float:
        ours, theirs = _split_words(text), _split_words(reference)
        return len(ours & theirs) / len(ours | theirs) if ours | theirs else 1.0


class ScriptedRetriever:
    """A retriever that finds the same passages for every query."""

    name = "scripted-retriever"

    def __init__(self, *passages: str) -> None:
        self.passages = passages

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return the first k passages for each query."""
        result = [Passage(f"p{i}", text) for i, text in enumerate(self.passages[:k], 1)]
        return [result for _ in queries]


def _split_words(text: str) -> set[str]:
    return {word.strip(".,;:!?\"'()[]") for word in text.casefold().split()} - {""}


# `_Failing` gives each kind of backend the method that the engine looks for.
_METHODS = {
    "entailer": "scores",
    "similarity": "scores",
    "embedder": "vectors",
    "token_embedder": "token_vectors",
    "retriever": "search",
    "linker": "link",
    "distractors": "substitutes",
}
"""The method of a backend, by keyword; of all other keywords it is ``reply``, of a chat model."""


class _Failing:
    """A backend of the same kind and name as another one, all calls of which fail."""

    def __init__(self, keyword: str, name: str) -> None:
        self.name = name
        # The engine recognises a capability by its method, so the object may only have this one.
        method = _METHODS.get(keyword, "reply")
        setattr(self, method, self._refuse if method == "reply" else self._fail)

    async def _refuse(self, request: ChatRequest) -> Reply:  # noqa: ARG002
        raise CallError("every call fails here", "refused")

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise BackendError("every call fails here")


def _make_failing(keyword: str, backend: Any) -> Any:
    """Return failing backends in the form in which these were given: one, a list or a mapping."""
    if isinstance(backend, Mapping):
        return {name: _Failing(keyword, name) for name in backend}
    if isinstance(backend, list | tuple):
        return [_make_failing(keyword, item) for item in backend]
    return _Failing(keyword, getattr(backend, "name", str(backend)))


# The contract -----------------------------------------------------------------------------------


class MetricContract:
    """The rules that every metric keeps, one test each; a subclass names the metric."""

    metric: Metric
    """The metric, with the options under test."""
    samples: Sequence[Mapping[str, Any]]
    """Records with ids that it can score; a call should be made for at least one of them."""
    backends: Mapping[str, Any] = {}
    """Keywords of :func:`trustassay.score`, best scripted ones."""
    plan_is_exact: bool = True
    """``False`` for a metric whose number of calls depends on the replies, so that a plan is an
    estimate."""

    def run(self, samples: Sequence[Mapping[str, Any]] | None = None, **options: Any) -> Run:
        """Score the samples, or others, without a cache; ``options`` as of ``score``."""
        records = self.samples if samples is None else samples
        all_options = {"cache": None, **self.backends, **options}
        return score([dict(record) for record in records], metrics=self.metric, **all_options)

    def test_options_survive_json(self) -> None:
        """``settings()`` is JSON, and the metric built from it has the same settings."""
        settings = self.metric.settings()
        decoded = json.loads(json.dumps(settings, allow_nan=False))
        assert decoded == settings, (
            f"options change when written as JSON: {_find_differences(settings, decoded)}"
        )
        # A function is written by its name and cannot be read back.
        functions = {name for name in decoded if callable(getattr(self.metric, name))}
        plain = {name: value for name, value in decoded.items() if name not in functions}
        rebuilt = {k: v for k, v in type(self.metric)(**plain).settings().items() if k in plain}
        assert rebuilt == plain, (
            f"options change when read again: {_find_differences(plain, rebuilt)}"
        )

    def test_a_worker_process_gets_the_same_metric(self) -> None:
        """The metric can be pickled, also after it was used, and is the same in a new process."""
        self.run()
        # spawn: a forked process would have the modules of this one loaded already.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            settings = pool.submit(methodcaller("settings"), self.metric).result()
        assert settings == self.metric.settings()

    def test_results_keep_the_contract(self) -> None:
        """No sample fails; numbers, verdicts, parts, figures and evidence are as declared."""
        run = self.run()
        for assessment in run.assessments:
            assert assessment.error is None, f"{assessment.id}: {assessment.error}"
            self._check_assessment(assessment)
        declared, result = self.metric.figures, run.summaries[self.metric.name]
        assert result.error is None, result.error
        for key, figure in declared.items():
            if figure.statistic is not None:
                assert key in result.values, f"the summary has no figure {key}"
                assert result.values[key] is not None or result.not_applicable.get(key), key
            if isinstance(figure.statistic, Mean | Quantile | Total):
                part = figure.statistic.of
                # `study` needs to know which end of a part is better.
                is_declared = part == "score" or self.metric.direction_of(part) is not None
                assert is_declared, f"part_directions lacks {part!r}, from which {key} is computed"

    def _check_assessment(self, assessment: Assessment) -> None:
        """Check one result as it was stored, and that it can be shown."""
        metric, encoded = self.metric, json.dumps(assessment.to_dict(), allow_nan=False)
        assert Assessment.from_dict(json.loads(encoded)) == assessment, (
            f"{assessment.id}: the assessment changes when written as JSON and read again"
        )
        assert assessment.score is not None or assessment.reason, (
            f"{assessment.id}: has neither a score nor a reason"
        )
        if assessment.verdict is not None and metric.verdicts:
            assert assessment.verdict in metric.verdicts, (
                f"{assessment.id}: {assessment.verdict!r} is not in verdicts"
            )
        for part in assessment.parts:
            is_declared = metric.direction_of(part) is not None
            assert is_declared, f"{assessment.id}: part_directions lacks {part!r}"
        problem = metric.problem(assessment)
        assert problem is None or metric.line, "problem() returns a problem, but line is empty"
        sample = next(Sample.parse(raw) for raw in self.samples if raw["id"] == assessment.id)
        metric.view(sample, assessment)

    def test_resumed_results_are_equal(self) -> None:
        """A run that has lost results continues from its folder, and ends with the same bytes."""
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home) / "run"
            self.run(out=folder, report=False)
            results = folder / "assessments.jsonl"
            all_bytes, figures = results.read_bytes(), _read_figures(folder)
            lines = all_bytes.splitlines(keepends=True)
            # As a killed run leaves it: the first half of the results, complete.
            results.write_bytes(b"".join(lines[: len(lines) // 2]))
            self.run(out=folder, report=False)
            assert results.read_bytes() == all_bytes, "the resumed run gives other results"
            assert _read_figures(folder) == figures, "the resumed run gives other figures"

    def test_the_order_of_samples_changes_nothing(self) -> None:
        """Each sample has the same result, whichever are scored before it or beside it."""
        forward = {assessment.id: assessment for assessment in self.run().assessments}
        # Reversed and one by one: other neighbours, and other batches.
        backward = self.run(list(reversed(self.samples)), samples_at_once=1)
        for assessment in backward.assessments:
            is_same = _is_close(assessment.to_dict(), forward[assessment.id].to_dict())
            assert is_same, f"{assessment.id}: its result depends on the order of the samples"

    def test_the_plan_counts_the_calls(self) -> None:
        """``plan`` gives as many calls of each capability as a run makes."""
        options = {"cache": None, **self.backends}
        result = plan([dict(record) for record in self.samples], metrics=self.metric, **options)
        planned, calls_made = Counter[str](), Counter[str]()
        for part in result.parts:
            planned[part.capability] += part.calls
        # The name of a chat model's calls is "chat NAME".
        for name, requests in self.run().outcome.counts.items():
            # A repeated request is answered from the run itself and is no call.
            calls_made[name.partition(" ")[0]] += requests.requested - requests.repeated
        # A unary plus drops zero counts.
        if self.plan_is_exact:
            assert +planned == +calls_made, f"planned: {dict(+planned)}, made: {dict(+calls_made)}"
        unplanned = {name for name in +calls_made if not planned[name]}
        assert not unplanned or any(result.unsure.values()), f"not in the plan: {unplanned}"

    def test_a_failed_call_is_a_failed_sample(self) -> None:
        """Where every call fails, no sample for which calls are made gets a score or a verdict."""
        ids_with_calls = {
            assessment.id for assessment in self.run().assessments if assessment.calls
        }
        # Options that are no backends, as `limit`, stay as they are.
        kinds = {*_METHODS, "model", "judge", "generator", "references"}
        broken = {
            name: _make_failing(name, backend) if name in kinds else backend
            for name, backend in self.backends.items()
        }
        run = self.run(**broken)
        for assessment in run.assessments:
            if assessment.id in ids_with_calls:
                assert assessment.score is None, (
                    f"{assessment.id}: has the score {assessment.score} although its calls failed"
                )
                assert assessment.error, (
                    f"{assessment.id}: its calls failed, but it is not reported as failed"
                )
        assert run.summaries[self.metric.name].failed >= len(ids_with_calls)

    def test_empty_text_is_no_accident(self) -> None:
        """A blank response is refused, fails with a reason, or has a finite score."""
        for text in ("", " \n"):
            blank = [{**record, "response": text} for record in self.samples]
            try:
                run = self.run(blank)
            except UsageError:
                continue  # problems() refuses it before anything is asked
            for assessment in run.assessments:
                # The engine words an unexpected exception this way; a metric's own AssessmentError
                # reads otherwise.
                is_accident = (assessment.error or "").startswith(f"{self.metric.name} failed: ")
                assert not is_accident, f"{assessment.id}, {text!r}: {assessment.error}"
                assert assessment.score is None or math.isfinite(assessment.score)


def _is_close(first: Any, second: Any) -> bool:
    """Whether two results are equal up to the last digits of their numbers."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_is_close(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_is_close, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)
    return bool(first == second)


def _find_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Collection[str]:
    """Return the names of the settings that differ."""
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


def _read_figures(folder: Path) -> Any:
    """Return the figures that a run stored."""
    return json.loads((folder / "summary.json").read_bytes())["metrics"]
