"""Trust-Eval from questions to figures, with the interface that its README shows."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.evaluation import EvaluationResult
from llama_index.evaluation.trust_eval import configs
from llama_index.evaluation.trust_eval.evaluators import TrustMetricEvaluator
from llama_index.evaluation.trust_eval.figures import keys_of
from llama_index.evaluation.trust_eval.material import CORPUS
from llama_index.evaluation.trust_eval.models import as_model, as_retriever, settings_llm
from llama_index.evaluation.trust_eval.nodes import documents_of
from llama_index.evaluation.trust_eval.offline import OfflineAnswerer

import trustassay
from trustassay import Answering, Document, Sample
from trustassay.backends.bm25 import bm25_retriever
from trustassay.core.progress import tell
from trustassay.errors import BackendError
from trustassay.input.reading import read_samples
from trustassay.input.records import InputFault
from trustassay.metrics import Grounding
from trustassay.papers.dataset import BuildOptions, build
from trustassay.runs.generate import GenerateOptions, generate

__all__ = ["TrustScoreEvaluator"]

OUTPUT = "output/custom_data.json"
RESULTS = "results/custom_data.json"


class TrustScoreEvaluator(TrustMetricEvaluator):
    """Makes grounded questions, has them answered, and evaluates the answers: Trust-Eval.

    As an evaluator of single answers (``evaluate`` with arguments) it is that of ``grounding``.

    Args:
        generator_config, eval_config: a YAML file or a mapping, with the keys of
            :class:`~.configs.GeneratorConfig` and :class:`~.configs.EvalConfig`. The files of the
            default names are read if they are there.
        llm: who answers: a LlamaIndex LLM, or a model as trustassay names it. Without it that of
            the configuration, or ``Settings.llm`` if somebody set it; else an
            :class:`~.offline.OfflineAnswerer`, and ``run`` prints a note.
        retriever: a LlamaIndex retriever or index over your documents, or a retriever of
            trustassay; without it a small corpus that comes with this package, and
            ``create_dataset`` prints a note.
        query_engine: a LlamaIndex query engine that finds the documents and answers, in place of
            both.
        options: ``entailer`` in place of that of the configuration, and those of the base class.

    Attributes:
        dataset: the samples that ``create_dataset`` made. responses: those that ``run`` made.
        answerer: the name of who answered. scored: the run behind the last figures
            (``scored.report("page.html")``).
    """

    _opens_later: ClassVar[bool] = True

    def __init__(
        self,
        generator_config: configs.Given = "generator_config.yaml",
        eval_config: configs.Given = "eval_config.yaml",
        *,
        llm: Any = None,
        retriever: Any = None,
        query_engine: BaseQueryEngine | None = None,
        **options: Any,
    ) -> None:
        # An engine has its own LLM and retriever: both together would be ambiguous.
        if query_engine is not None and (llm is not None or retriever is not None):
            raise ValueError("query_engine: finds and answers by itself; give no llm or retriever")
        self._generator = configs.generator_config(generator_config)
        self._evaluation = configs.eval_config(eval_config)
        if (entailer := _entailer_uri(self._evaluation.autoais_model)) is not None:
            # An argument wins over the configuration.
            options.setdefault("entailer", entailer)
        self._metric = Grounding(
            profile=self._evaluation.profile,
            correctness=self._evaluation.correctness,
            at_most_citations=self._evaluation.at_most_citations,
        )
        super().__init__(self._metric, **options)
        self._llm, self._engine = llm, query_engine
        self._retriever = as_retriever(retriever)
        self.dataset: list[Sample] = []
        self.responses: list[Sample] = []
        self.answerer = ""
        self.scored: trustassay.Run | None = None

    def create_dataset(self, questions: Sequence[str], answers: Sequence[Any]) -> None:
        """Find documents for each question, and label which of them support its gold answer.

        An answer is a text or a list of gold answers, each a text or a list of its aliases.

        Raises:
            ValueError: there are not as many answers as questions, or none.
            BackendError: no documents can be found.
            BadInputError: the input has faults.
        """
        # A text is a sequence too: its letters would become questions.
        if isinstance(questions, str) or isinstance(answers, str):
            raise ValueError("expected lists of questions and answers, got a text")
        if len(questions) != len(answers) or not questions:
            raise ValueError(
                f"expected as many answers as questions, got {len(questions)} questions and "
                f"{len(answers)} answers"
            )
        records = [
            {"question": question, "answers": _list_golds(answer)}
            for question, answer in zip(questions, answers, strict=True)
        ]
        if self._engine is not None:
            # The engine finds the documents when it answers.
            self.dataset = _parse_samples(records)
        else:
            if self._retriever is None:
                tell(f"documents of the corpus that comes with this package ({CORPUS.name})")
                # Kept, so that the index is built once.
                self._retriever = bm25_retriever(CORPUS)
            self.dataset = self._build_dataset(records)
        self.responses = []
        if self._generator.eval_file:
            _save(self._generator.eval_file, [_to_trust_eval(sample) for sample in self.dataset])

    def run(self, output_path: str | os.PathLike[str] | None = None) -> None:
        """Let the questions be answered, and save the responses in the layout of Trust-Eval.

        Raises:
            ValueError: there is no data set.
            BackendError: a question was not answered.
        """
        if not self.dataset and self._generator.eval_file:
            self.dataset = _parse_samples(_load_records(self._generator.eval_file))
        if not self.dataset:
            raise ValueError(
                "no data set: call create_dataset(questions, answers), or name one as eval_file "
                "in the configuration of the generator"
            )
        if self._engine is not None:
            self.answerer = f"query engine {type(self._engine).__name__}"
            self.responses = [
                self._answer_by_engine(sample, self._engine) for sample in self.dataset
            ]
        else:
            self.responses = self._answer_by_model()
        content = {
            "data": [_to_trust_eval(sample) for sample in self.responses],
            "config": {"answerer": self.answerer},
        }
        _save(output_path or self._generator.output_path or OUTPUT, content)

    def evaluate(  # type: ignore[override]
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        *,
        output_path: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult | dict[str, float | int | None]:
        """Evaluate one answer, as in the base class; without arguments, the answers of ``run``.

        Without arguments it returns the figures of Trust-Eval by name, and saves them as JSON with
        the names of the answerer and the judge. A figure that does not apply is ``None``.

        Raises:
            ValueError: without arguments, and there are no responses.
        """
        # LlamaIndex calls `evaluate` with arguments; Trust-Eval calls it without.
        if not (query is None and response is None and contexts is None and not kwargs):
            return super().evaluate(query, response, contexts, **kwargs)
        # Responses of an earlier session may be evaluated again.
        if not self.responses and self._evaluation.eval_file:
            self.responses = _parse_samples(_load_records(self._evaluation.eval_file))
            self.answerer = f"file {self._evaluation.eval_file}"
        if not self.responses:
            raise ValueError(
                "no responses: call run(), or name a file of them as eval_file in the "
                "configuration of the evaluation"
            )
        # The responses are scored as in any run, so `report` and the rest work too.
        self.scored = trustassay.score(
            self.responses, metrics=self._metric, **self._judge_options()
        )
        values = self.scored.summary[self._metric.name]
        figures = {key: values.get(key) for key in keys_of(self._evaluation.correctness)}
        with (self.scored.path / "run.json").open() as file:
            # The run says which entailer judged, also if it was a default.
            judge = json.load(file)["backends"]
        about = {"answerer": self.answerer, **judge, "profile": self._evaluation.profile}
        _save(output_path or self._evaluation.output_path or RESULTS, {**figures, "about": about})
        return figures

    def _build_dataset(self, records: list[dict[str, Any]]) -> list[Sample]:
        """Return the samples with documents and their labels."""
        count = self._generator.ndoc
        # As many candidates as documents: every retrieved one is kept and labelled.
        options = BuildOptions(candidates=count, documents=count)
        with TemporaryDirectory(prefix="trust-eval-") as folder:
            path = Path(folder) / "data.jsonl"
            entailer = self._judge_options().get("entailer", "embedded")
            result = build(records, path, self._retriever, entailer, options=options)
            # Figures over fewer questions would mislead.
            if result.failed or result.stopped:
                reason = result.stopped or next(iter(result.failed.values()))
                raise BackendError(f"{len(result.failed)} questions got no documents: {reason}")
            return _parse_samples(path)

    def _answer_by_model(self) -> list[Sample]:
        model = self._llm if self._llm is not None else self._generator.model
        if isinstance(model, str):
            model = _model_uri(model)
        # In this order: the argument, the configuration, the settings of LlamaIndex.
        model = as_model(model if model is not None else settings_llm())
        if model is None:
            # Works without a model and a network, so that the printed example runs.
            answerer = OfflineAnswerer()
            self.answerer = answerer.name
            tell(
                f"no llm is given and Settings.llm is not set: {answerer.name} answers, which "
                "quotes passages; its figures say nothing of a language model"
            )
            return [
                _with_response(
                    sample, answerer.answer(sample.question, sample.documents or ()), answerer.name
                )
                for sample in self.dataset
            ]
        settings = self._generator
        answering = Answering(
            # The prompt that asks for citations and allows a refusal, as in Trust-Eval.
            style="rag-refusal",
            temperature=settings.temperature,
            max_tokens=settings.max_new_tokens,
            seed=settings.seed,
        )
        with TemporaryDirectory(prefix="trust-eval-") as folder:
            path = Path(folder) / "answers.jsonl"
            options = GenerateOptions(answering=answering, again=True)
            result = generate(self.dataset, model, path, options)
            if result.failed:
                reason = next(iter(result.failed.values()))
                raise BackendError(f"{len(result.failed)} questions were not answered: {reason}")
            samples = _parse_samples(path)
        self.answerer = samples[0].model or ""
        return samples

    def _answer_by_engine(self, sample: Sample, engine: BaseQueryEngine) -> Sample:
        """Return the sample with the answer of an engine, and its source nodes as documents."""
        answer = engine.query(sample.question)
        documents = [
            Document(document["id"], document["text"], document.get("title", ""))
            for document in documents_of(answer.source_nodes)
        ]
        # Through the parser, so that answers of an engine are checked like those of a file.
        raw = sample.to_dict() | {"documents": [document.to_dict() for document in documents]}
        return _with_response(Sample.parse(raw), str(answer), self.answerer)

    def _judge_options(self) -> dict[str, Any]:
        return {name: value for name, value in self._options.items() if name == "entailer"}


def _list_golds(answer: Any) -> list[Any]:
    golds = list(answer) if isinstance(answer, list | tuple) else [answer]
    return [[gold] if isinstance(gold, str) else gold for gold in golds]


def _with_response(sample: Sample, response: str, name: str) -> Sample:
    return Sample.parse(sample.to_dict() | {"response": response, "model": name})


def _entailer_uri(name: str | None) -> str | None:
    # A name without a scheme is a model of Hugging Face, as in Trust-Eval.
    return name if name is None or ":" in name or name in ("embedded", "lexical") else f"hf:{name}"


def _model_uri(name: str) -> str:
    return name if ":" in name else f"hf:{name}"


def _parse_samples(source: Any) -> list[Sample]:
    """Return the samples of a file or of records.

    Raises:
        ValueError: a record has faults.
    """
    records = list(read_samples(source))
    # All faults in one message.
    if faults := [record for record in records if isinstance(record, InputFault)]:
        raise ValueError("\n".join(map(str, faults)))
    return [record.sample for record in records if not isinstance(record, InputFault)]


def _load_records(path: str) -> list[Any]:
    """Return the records of a file of Trust-Eval: a list, or an object with ``data``.

    Raises:
        ValueError: the file has another layout.
    """
    content = json.loads(Path(path).read_bytes())
    # The files that `run` writes have the records under `data`.
    if isinstance(content, dict) and "data" in content:
        content = content["data"]
    if not isinstance(content, list):
        raise ValueError(f"{path}: expected a list of items, or an object with `data`")
    return content


def _to_trust_eval(sample: Sample) -> dict[str, Any]:
    """Return a sample in the layout of Trust-Eval, except that answers keep their aliases."""
    documents = [
        {
            "id": document.id,
            "title": document.title,
            "text": document.text,
            **({} if document.supports is None else {"answers_found": list(document.supports)}),
        }
        for document in sample.documents or ()
    ]
    record: dict[str, Any] = {"question": sample.question}
    record["answers"] = [list(aliases) for aliases in sample.answers]
    record["docs"] = documents
    if sample.response is not None:
        record["output"] = sample.response
    return record


def _save(path: str | os.PathLike[str], content: Any) -> None:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
