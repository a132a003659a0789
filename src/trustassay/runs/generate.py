"""``generate``: answers a file of questions, and writes a file that ``score`` reads."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from trustassay.backends import resolve
from trustassay.calls.backends import MODEL_ROLE, BackendKey, Backends
from trustassay.calls.client import (
    SampleModels,
    build_cache_path,
    check_budget,
    check_keys,
    open_calls,
)
from trustassay.calls.endpoints import calls_at_once, describe_limited_endpoints
from trustassay.calls.retry import Endpoint
from trustassay.core.event_loop import run_anywhere
from trustassay.core.files import name_in_errors, open_locked
from trustassay.core.progress import Progress, tell
from trustassay.core.sample import TOKENS_FIELD, Sample, clean
from trustassay.errors import MODEL_NOT_GIVEN, UsageError
from trustassay.runs.answering import Answering
from trustassay.runs.answering_models import ModelCensus, settle_models
from trustassay.runs.choose_metric import has_unanswered
from trustassay.runs.fill import (
    CUT_FIELD,
    SAMPLES_PER_CALL,
    ResponseStage,
    Stage,
    fill_in_order,
    remove_response,
)
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import InputOptions, Source, build_check, open_samples
from trustassay.runs.needs import load_backends, name_models


class UnfinishedError(UsageError):
    """Another process is still working on the output, or left unfinished work with other
    settings."""


@dataclass(frozen=True)
class GenerateOptions(InputOptions):
    """How questions are answered; as :class:`~trustassay.runs.intake.InputOptions`, and:

    repeats: answers to each question. again: also where a question has an answer already. The last
    question of a chat is answered, even if the one before it has an answer.
    """

    unanswered: bool = field(default=True, kw_only=True)
    answering: Answering = field(default_factory=Answering)
    repeats: int = 1
    again: bool = False


@dataclass(slots=True)
class GenerateResult:
    """The counts of one call of :func:`generate`."""

    written: int = 0
    """Answers in the file."""
    cut: int = 0
    """Of these, new answers that the token limit cut short."""
    empty: int = 0
    """Questions whose replies were empty; they are among ``failed``."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Answers that were not asked for, as their model was not given, by its name."""
    without_tokens: int = 0
    """New answers without the log-probabilities that were requested."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why questions have no answer, by id."""
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    """The endpoints that were called, with their statistics."""


def generate(
    source: Source,
    model: resolve.ChatChoice | Sequence[resolve.ChatChoice] | Mapping[str, resolve.ChatChoice],
    out: str | os.PathLike[str],
    options: GenerateOptions | None = None,
) -> GenerateResult:
    """Answer questions, and write them with their answers to ``out``, completely or not at all.

    Replies are cached, so the same call after an interruption only asks the remaining questions. A
    question without an answer is left out of the file; if no question was answered, the file is not
    touched.

    Raises:
        BadInputError, InputError: the input has faults; no question was asked.
        BackendError, UnknownNameError: no such model.
        UnfinishedError: another process is writing ``out``.
    """
    return run_anywhere(
        lambda: _generate_answers(source, model, Path(out), options or GenerateOptions())
    )


async def _generate_answers(
    source: Source, model: Any, out: Path, options: GenerateOptions
) -> GenerateResult:
    if out.is_dir():
        raise IsADirectoryError(f"{out}: is a folder; expected a file to write")
    # 1. The models, and everything that can be checked before a question is asked.
    backends = await _load_models(source, model, options)
    # 2. A single model without a name replaces the answers of all models by answers of its own.
    has_names = "" not in backends.names_of_role(MODEL_ROLE)
    census = ModelCensus(fills=has_names or not options.again, replaces=has_names and options.again)
    # 3. One stage for each repeated answer to a question.
    stages = [ResponseStage(options.answering, repeat) for repeat in range(options.repeats)]
    outcome = GenerateResult()
    # 4. Read the input, lock the output, then answer; the stack undoes this in reverse order.
    async with AsyncExitStack() as stack:
        check = build_check([], stages[:1], has_model=True)
        opened = open_samples(source, options, check, census)
        folder, intake = await stack.enter_async_context(opened)
        inventory = intake.inventory
        backends = settle_models(backends, intake.census, is_drawn=options.limit is not None)
        chat_models = [*backends.by_key.values()]
        question_count = inventory.samples if options.again else inventory.unanswered
        if question_count:
            # Without open questions no key is needed: then the input is only copied.
            check_keys(chat_models, [build_cache_path(options.calls.cache)])
        # A hidden file beside the output, so that renaming it is atomic.
        part = out.with_name(f".{out.name}.part")
        out.parent.mkdir(parents=True, exist_ok=True)
        stack.enter_context(name_in_errors(out))
        file = stack.enter_context(open_output(part))
        # Registered after the lock, so the file is removed before the lock is released.
        stack.callback(part.unlink, missing_ok=True)
        # A killed process may have left lines; its replies are in the cache.
        file.truncate(0)
        client = await stack.enter_async_context(open_calls(backends, options.calls))
        # Read ahead of the answers, so that slow questions do not leave the endpoint idle.
        ahead = SAMPLES_PER_CALL * (options.calls.calls_at_once or calls_at_once(chat_models))
        progress = stack.enter_context(
            Progress("answering", question_count * options.repeats, visible=options.progress)
        )
        models = SampleModels(client)
        questions = _read_questions(
            folder, stages, replaces_answers=options.again, keeps_model=has_names
        )
        async for result in fill_in_order(questions, models, ahead, progress.step):
            name = result.sample.id
            if options.repeats > 1:
                # Repeated answers to one question need ids of their own.
                name = f"{name}#{result.repeat + 1}"
            if failure := result.failures.get("response"):
                if failure.fault == MODEL_NOT_GIVEN:
                    outcome.left_out[result.sample.model or ""] += 1
                    continue
                outcome.failed[name] = failure.error
                outcome.empty += failure.fault == "empty"
                continue
            outcome.written += 1
            metadata = result.sample.metadata
            outcome.cut += CUT_FIELD in metadata and bool(result.calls)
            wanted = options.answering.logprobs is not None and bool(result.calls)
            outcome.without_tokens += wanted and TOKENS_FIELD not in metadata
            content = result.sample.to_dict() | {"id": name}
            # Other fields of the record may have half a character in them.
            line = clean(json.dumps(content, ensure_ascii=False, default=str))
            file.write((line + "\n").encode())
        file.flush()
        outcome.endpoints = client.endpoints.all()
        # Keep an earlier file if no question was answered.
        if outcome.written or not (outcome.failed or outcome.left_out):
            part.replace(out)
    return outcome


async def _load_models(source: Source, model: Any, options: GenerateOptions) -> Backends:
    """Load the models that answer, and check budget and keys."""
    # The cache of calls is only needed if a question will be asked.
    will_ask = options.again or has_unanswered(
        source, options.fields, options.sheet, options.longest_line
    )
    stores = [build_cache_path(options.calls.cache)] if will_ask else None
    choice_by_place = {
        BackendKey("chat", MODEL_ROLE, name): choice
        for name, choice in name_models(model, MODEL_ROLE).items()
    }
    result = Backends(await load_backends(choice_by_place, stores=stores))
    check_budget(result, options.calls.prices, options.calls.budget)
    if options.progress:
        for message in describe_limited_endpoints(
            "--calls-at-once", options.calls.calls_at_once, [*result.by_key.values()]
        ):
            tell(message)
    return result


def _read_questions(
    folder: RunFolder,
    stages: Sequence[ResponseStage],
    *,
    replaces_answers: bool,
    keeps_model: bool,
) -> Iterator[tuple[Sample, Sequence[Stage], int]]:
    """Yield each question once for each answer to write; once only if it has an answer already."""
    for sample in folder.samples():
        question = remove_response(sample) if replaces_answers else sample
        # The same model answers again.
        question = replace(question, model=sample.model) if keeps_model else question
        for stage in stages if not question.answered else stages[:1]:
            yield question, [stage], stage.repeat


def open_output(path: Path) -> IO[bytes]:
    """Open or create a file and lock it; raises UnfinishedError if another process locked it."""
    try:
        # It becomes an output that the user named.
        return open_locked(path, wait=False, private=False)
    except BlockingIOError:
        raise UnfinishedError(f"{path}: another process is writing it") from None
