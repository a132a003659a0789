"""``gguf:PATH``: a model in a GGUF file, run in this process by llama.cpp.

    gguf:PATH[?threads=N&parallel=N&context=N&template=none&max_tokens=N&file=IDENTITY]

A chat is laid out by the file's own chat template. The part that a prompt has in common with the
one before it in its sequence is read once: requests are sorted by their texts, and those that begin
alike and want a short reply go to one sequence. Nothing is sent anywhere, and no port is opened.

A reply only depends on its request: the random generator is seeded by messages, ``seed``,
``repeat`` and the reply's number. The only influence of other requests is rounding, as in
:mod:`trustassay.backends.hf_chat`.
"""

import hashlib
import json
import mmap
import os
import struct
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.backends.chat_text import chat_to_text, join_replies, shorten, to_messages
from trustassay.backends.openai import parse_reply, restrict_to_schema
from trustassay.backends.recommended import find_languages
from trustassay.core.capabilities import BatchLimits, ChatRequest, Message, Reply, Turns
from trustassay.core.sample import clean
from trustassay.errors import BackendError, CallError, install_command
from trustassay.text.numbers import gigabytes_text

DEFAULT_CONTEXT_TOKENS = 4096
"""Tokens of a prompt and its reply, unless the URI says otherwise or the model takes fewer."""
MAX_TOKENS = 512
SHORT_REPLY_TOKENS = 16
"""Tokens of a reply that is so short that nearly all of the time goes into reading the prompt."""
READ_SPEED_FACTOR = 3
"""How many tokens are read in the time in which one is written, at least."""
CHARACTERS_PER_TOKEN = 4
IDENTITY_BYTES = 1 << 20
"""Bytes at the head and at the tail of a file that its identity is computed from, with its size."""
WEIGHT_MEMORY_FACTOR = 1.25
"""Memory of the weights relative to the file, since llama.cpp rearranges some of them.

Measured: 0.7 GB in all for 0.5 GB of weights, 2.1 GB for 1.1 GB.
"""
OVERHEAD_BYTES = 256 << 20
"""Bytes that llama.cpp needs in addition to the sequences and the weights."""
MAX_SPINS = 2000
"""Turns for which a thread waits actively for the others, before it sleeps.

Measured with a model of 1.5B, four sequences and two cores: 12.0 tokens a second, 11.7 without a
bound; in two processes at once 5.4 and 5.1.
"""
MAX_ARRAY_LENGTH = 4096
"""Numbers of a metadata array that is kept; longer arrays belong to the vocabulary."""
_STRUCT_LETTERS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
"""Format letters of the ``struct`` module by GGUF's numbers of types."""
_TEXT_TYPE, _ARRAY_TYPE = 8, 9
TOO_LONG_ERROR = "exceed_context_size_error"


class GgufJob(NamedTuple):
    """One reply to be made."""

    text: str
    """Text of the chat, by which jobs are sorted."""
    body: dict[str, Any]
    """Request as llama.cpp takes it."""
    least: int
    """Tokens of the reply for which there must be room."""

    def follows(self, other: "GgufJob") -> bool:
        """Whether this job should come right after another one in its sequence.

        So if half of their texts is the same, and reading that half takes longer than writing the
        reply.
        """
        # Jobs are sorted by text, so a neighbour has the longest common beginning.
        half = min(len(self.text), len(other.text)) // 2
        if self.text[:half] != other.text[:half]:
            return False
        read = half / CHARACTERS_PER_TOKEN
        return bool(self.body["max_tokens"] <= max(SHORT_REPLY_TOKENS, read / READ_SPEED_FACTOR))


@dataclass(frozen=True)
class GgufFile:
    """What a GGUF file says about itself, read without loading the model."""

    path: Path
    """Path of the file."""
    size: int
    """Bytes of the file."""
    identity: str
    """Size and a digest of the first and the last megabyte."""
    values: Mapping[str, Any]
    """Metadata, without long lists."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "GgufFile":
        """Read the head of a file.

        Raises:
            BackendError: there is no such file, it is no GGUF file, or it is cut or damaged.
        """
        path = Path(path).expanduser()
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                if file.read(4) != b"GGUF":
                    raise BackendError("it is not a GGUF file: it does not begin with GGUF")
                file.seek(0)
                digest = hashlib.blake2b(file.read(IDENTITY_BYTES), digest_size=8)
                # A digest of a whole file of gigabytes would take long.
                file.seek(max(0, size - IDENTITY_BYTES))
                digest.update(file.read())
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    values = _GgufHeader(data).values()
        except OSError as error:
            raise BackendError(f"it cannot be read: {error.strerror or error}") from None
        return cls(path, size, f"{size}-{digest.hexdigest()}", values)

    def of_model(self, name: str) -> Any:
        """Return a value of the model's architecture, as ``context_length``; ``None`` if absent."""
        return self.values.get(f"{self.values.get('general.architecture')}.{name}")

    @property
    def has_template(self) -> bool:
        """Whether the file has a chat template."""
        return bool(self.values.get("tokenizer.chat_template"))

    def memory(self, tokens: int) -> int:
        """Return about how many bytes the model needs, given the ``tokens`` of all sequences."""
        layers, heads = self.of_model("block_count") or 0, self.of_model("attention.head_count")
        # Keys and values of a sequence are stored for each of these heads, in two bytes a number.
        key_value_heads = self.of_model("attention.head_count_kv") or heads or 0
        # Where layers differ there is a number for each.
        total = (
            sum(key_value_heads) if isinstance(key_value_heads, list) else layers * key_value_heads
        )
        head_count = max(heads) if isinstance(heads, list) else heads
        width = (self.of_model("embedding_length") or 0) // (head_count or 1)
        width = self.of_model("attention.key_length") or width
        return estimate_weight_memory(self.size) + tokens * total * width * 2 * 2


def estimate_weight_memory(size: int) -> int:
    """Return about how many bytes of memory a file of ``size`` bytes needs without its contexts."""
    return int(size * WEIGHT_MEMORY_FACTOR) + OVERHEAD_BYTES


class _GgufHeader:
    """Reads the metadata at the head of a GGUF file.

    Raises:
        BackendError: the head is damaged, or the file is cut.
    """

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at = data, 4

    def values(self) -> dict[str, Any]:
        """Return the metadata without long lists; check that the last tensor is in the file."""
        try:
            version, tensors, pairs = self._read_numbers("IQQ")
            if version not in (2, 3):
                raise BackendError(f"expected a GGUF file of version 2 or 3, got {version}")
            result = {
                self._read_text(): self._read_value(self._read_numbers("I")[0])
                for _ in range(pairs)
            }
            # Tensors: name, dimensions, type and offset, of which the largest shows whether the
            # file is cut.
            last = 0
            for _ in range(tensors):
                self._read_text()
                (dimensions,) = self._read_numbers("I")
                last = max(last, self._read_numbers(f"{dimensions}QIQ")[-1])
        except (struct.error, OverflowError, UnicodeDecodeError, KeyError, MemoryError):
            raise BackendError("it is truncated or damaged: its header cannot be read") from None
        if self._at + last >= len(self._data):
            message = f"it is truncated: its tensors go beyond its {len(self._data):,} bytes"
            raise BackendError(message)
        return result

    def _read_numbers(self, form: str) -> tuple[Any, ...]:
        """Read numbers in a format of the ``struct`` module."""
        result = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return result

    def _read_text(self) -> str:
        """Read a text, which follows its length."""
        (length,) = self._read_numbers("Q")
        return self._read_bytes(length).decode("utf-8", "replace")

    def _read_bytes(self, length: int) -> bytes:
        """Read bytes."""
        # A damaged length points beyond the end of the file.
        if length > len(self._data) - self._at:
            raise OverflowError
        self._at += length
        return self._data[self._at - length : self._at]

    def _read_value(self, kind: int) -> Any:
        """Read a value of a type; ``None`` for lists of texts and long lists."""
        if kind == _TEXT_TYPE:
            return self._read_text()
        if kind != _ARRAY_TYPE:
            return self._read_numbers(_STRUCT_LETTERS[kind])[0]
        inner, length = self._read_numbers("IQ")
        # Texts of the vocabulary have to be read to be skipped, as each has its own length.
        if inner in (_TEXT_TYPE, _ARRAY_TYPE):
            for _ in range(length):
                self._read_value(inner)
            return None
        if length > MAX_ARRAY_LENGTH:
            self._read_bytes(length * struct.calcsize(_STRUCT_LETTERS[inner]))
            return None
        return list(self._read_numbers(f"{length}{_STRUCT_LETTERS[inner]}"))


def read_free_memory() -> int | None:
    """Return the bytes that new programs may use without swapping; ``None`` if unknown."""
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        free = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(free.split()[1]) * 1024
    return None


class GgufChat:
    """Generates text, and gives the likelihood of texts, with a model in a GGUF file."""

    tells_first_token = True
    """The probabilities of a reply's first token are available, and entailment is read from them.
    """
    shared = True
    """Other runs may use its replies: its name has the identity of the file."""

    def __init__(
        self,
        path: str,
        *,
        threads: int | None = None,
        parallel: int = 4,
        context: int | None = None,
        template: str = "auto",
        max_tokens: int = MAX_TOKENS,
        file: str | None = None,
    ) -> None:
        """Load a model; raises :class:`BackendError`, with a message of one line, if that fails.

        Args:
            path: of the file; of several parts, the first.
            threads: that compute; by default one a processor.
            parallel: sequences that are written at a time.
            context: tokens that a prompt and its reply may have together; by default 4096, or what
                the model was trained for if that is less.
            template: ``none`` lays a chat out plainly, for a base model without a chat template.
            max_tokens: of replies whose request does not say it.
            file: the identity that the file must have.
        """
        try:
            # 1. Read the head of the file, and check what can be checked without loading.
            if template not in ("auto", "none"):
                raise BackendError(f"template={template} is unknown; use auto or none")
            result = GgufFile.read(path)
            if file not in (None, result.identity):
                raise BackendError(f"expected the file {file}, got {result.identity}")
            if template == "auto" and not result.has_template:
                raise BackendError(
                    "it has no chat template, so it may be a base model; to send chats as plain "
                    f"text: gguf:{path}?template=none"
                )
            # 2. Choose the length of the context.
            trained = result.of_model("context_length") or DEFAULT_CONTEXT_TOKENS
            self.context = min(DEFAULT_CONTEXT_TOKENS, trained) if context is None else context
            if self.context > trained:
                raise BackendError(
                    f"context={self.context}: expected at most {trained}, the context that the "
                    "model was trained with"
                )
            # 3. Compare the memory with what is free: the system might otherwise kill the process.
            self.memory = result.memory(self.context * parallel)
            free = read_free_memory()
            if free is not None and self.memory > free:
                raise BackendError(
                    f"it needs about {gigabytes_text(self.memory)} of memory, but only "
                    f"{gigabytes_text(free)} are free; try a smaller file, or a smaller "
                    "?context= or ?parallel="
                )
            # 4. Build the name from everything that affects replies, so that stored ones are valid.
            self._template, self._parallel, self._max_tokens = template, parallel, max_tokens
            name_options = [f"file={result.identity}"]
            name_options += [f"template={template}"] * (template != "auto")
            name_options += [f"max_tokens={max_tokens}"] * (max_tokens != MAX_TOKENS)
            self.name = f"gguf:{path}?{'&'.join(name_options)}"
            self.limits = BatchLimits(items=4 * parallel, tokens=None, order="text")
            self.judges_in = find_languages(result.size)
            """Languages in which it judges well enough, if that was measured."""
            self.tokens_read = 0
            """Tokens of prompts that were computed; those that were read before do not count."""
            # 5. Load the model, which may take seconds.
            self._server = _load_server(result.path, self.context, parallel, threads)
        except BackendError as error:
            raise BackendError(f"gguf:{path}: {error}") from None
        self._threads, self._lock = ThreadPoolExecutor(parallel, "gguf"), threading.Lock()

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply | BackendError]:
        """Answer the requests, in their order; a failed one has its error in its place.

        Raises:
            BackendError: the only request fails: prompt and reply are longer than the context, or
                the model fails.
        """
        # Replies to a greedy request are equal, so it is asked once.
        counts = [request.n if request.temperature != 0 else 1 for request in requests]
        jobs = [
            self._build_job(request, number)
            for request, count in zip(requests, counts, strict=True)
            for number in range(count)
        ]
        finished_replies = iter(self._write_replies(jobs))
        result = [
            _join_replies(request, [next(finished_replies) for _ in range(count)])
            for request, count in zip(requests, counts, strict=True)
        ]
        # The batcher tries the requests of a failed batch one by one, and expects an exception
        # then.
        if len(result) == 1 and isinstance(result[0], BackendError):
            raise result[0]
        return result

    def token_loglikelihoods(self, prompt: Turns, options: Sequence[str]) -> list[list[float]]:
        """Return, for each option, the natural log-probabilities of its tokens after the prompt.

        An option is spelt by the likeliest tokens that spell it, since a grammar allows no other
        text. The end of the text is not counted.

        Raises:
            BackendError: prompt and option are longer than the context, or the model fails.
            CallError: the tokens do not spell an option, or they split a character, for which
                llama.cpp gives only one of the numbers (``refused``).
        """
        messages = to_messages(prompt)
        jobs = []
        for option in options:
            request = ChatRequest(messages, max_tokens=len(option.encode()) + 1, logprobs=0)
            job = self._build_job(request)
            quoted = json.dumps(option, ensure_ascii=False)
            literal = quoted.replace("\\b", "\\x08").replace("\\f", "\\x0C")  # of its grammars
            grammar = {"grammar": f"root ::= {literal}"}
            jobs.append(job._replace(body=job.body | grammar, least=0))
        rows: list[list[float]] = []
        for option, reply in zip(options, self._write_replies(jobs), strict=True):
            if isinstance(reply, BackendError):
                raise reply
            result = [token.logprob for token in reply.logprobs or ()]
            ended = reply.finish == "stop"
            if reply.text != option or len(result) + ended != reply.reply_tokens:
                message = f"its tokens cannot spell {shorten(option)!r} exactly"
                raise CallError(f"{self.name}: {message}", "refused")
            rows.append(result)
        return rows

    def _build_job(self, request: ChatRequest, number: int = 0) -> GgufJob:
        """Return the job for one of the replies that a request asks for."""
        messages = [Message(role, clean(content)) for role, content in request.messages]
        parts = [request.messages, request.seed, request.repeat, number]
        digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=4).digest()
        body: dict[str, Any] = {
            "max_tokens": self._max_tokens if request.max_tokens is None else request.max_tokens,
            "seed": int.from_bytes(digest),
            "stop": list(request.stop),
        }
        # The file may recommend other samplers; a request's temperature is to mean the same
        # everywhere.
        if request.temperature is not None:  # nothing but that: no top-k, top-p or penalties
            body |= {"temperature": request.temperature, "samplers": ["temperature"]}
        if request.logprobs is not None:
            body |= {"logprobs": True, "top_logprobs": max(1, request.logprobs)}
        if request.schema:
            body["response_format"] = restrict_to_schema(request.schema)
        text, least = chat_to_text(messages), request.max_tokens or 1
        if self._template == "none":
            return GgufJob(text, body | {"prompt": text}, least)
        return GgufJob(text, body | {"messages": [turn._asdict() for turn in messages]}, least)

    def _write_replies(self, jobs: Sequence[GgufJob]) -> list[Reply | BackendError]:
        """Return the reply to each job, or its error."""
        result: dict[int, Reply | BackendError] = {}
        # A list first: the workers share one iterator, and a running generator cannot be shared.
        runs = iter(list(_group_in_runs(jobs)))

        def work(sequence: int) -> None:
            for run in runs:  # each of the threads takes the next
                result.update((index, self._write_reply(jobs[index], sequence)) for index in run)

        list(self._threads.map(work, range(self._parallel)))
        return [result[index] for index in range(len(jobs))]

    def _write_reply(self, job: GgufJob, sequence: int) -> Reply | BackendError:
        """Return the reply to a job, written in one of the sequences, or its error."""
        complete = self._server.handle_completions
        if "messages" in job.body:
            complete = self._server.handle_chat_completions
        # The slot has the prompt of the job before in its cache.
        response = complete(job.body | {"id_slot": sequence})
        error = response.get("error")
        turns = job.body.get("messages", ())
        if error:
            has_system = [turn["role"] for turn in turns[:2]] == ["system", "user"]
            if error.get("type") == TOO_LONG_ERROR or not has_system:
                return self._error_of_job(job, error)
            # Some templates know no system: its words come first in what the user says.
            message = f"{turns[0]['content']}\n\n{turns[1]['content']}"
            merged = [{"role": "user", "content": message}, *turns[2:]]
            return self._write_reply(job._replace(body=job.body | {"messages": merged}), sequence)
        with self._lock:
            self.tokens_read += response.get("timings", {}).get("prompt_n", 0)
        for choice in response["choices"]:
            choice.setdefault("message", {"content": choice.get("text", "")})
        reply = parse_reply(response)
        if turns and turns[-1]["role"] == "assistant":  # the reply repeats what it continues
            reply = replace(reply, text=reply.text.removeprefix(turns[-1]["content"]))
        if reply.logprobs and reply.logprobs[-1].token == "":  # the end of the text
            reply = replace(reply, logprobs=reply.logprobs[:-1])
        # The context was full before the reply had the length that it may have.
        if reply.finish == "length" and (reply.reply_tokens or 0) < job.least:
            return self._error_of_job(
                job, {"type": TOO_LONG_ERROR, "n_prompt_tokens": reply.prompt_tokens}
            )
        return reply

    def _error_of_job(self, job: GgufJob, error: Mapping[str, Any]) -> BackendError:
        """Return the error that llama.cpp reported for a job."""
        if error.get("type") != TOO_LONG_ERROR:
            return BackendError(f"{self.name}: {' '.join(str(error.get('message')).split())[:300]}")
        return BackendError(
            f"{self.name}: a prompt of {error.get('n_prompt_tokens')} tokens and {job.least} for "
            f"the reply do not fit the context of {self.context} tokens; raise it with "
            f"?context=N: {shorten(job.text)!r}"
        )


def _load_server(path: Path, context: int, parallel: int, threads: int | None) -> Any:
    """Load a model in llama.cpp; raises :class:`BackendError`."""
    try:
        with _limit_spinning():
            import xllamacpp
    except ImportError:
        raise BackendError(f"xllamacpp is missing: {install_command('gguf')}") from None
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = context * parallel, parallel
    count = threads or len(os.sched_getaffinity(0))
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = count
    params.cache_ram_mib = 0  # else the texts of ended sequences are kept, up to 8 GB
    # Nothing that would change the settings, take time or open an interface.
    params.fit_params = params.warmup = params.ui = params.endpoint_slots = False
    params.verbosity = -1
    # It listens, though nothing is asked that way: at a socket in a folder that is gone at once,
    # whose path may have some 100 bytes in all.
    short = "/tmp" if len(tempfile.gettempdir()) > 70 else None
    with tempfile.TemporaryDirectory(prefix="gguf-", dir=short) as folder:
        params.hostnames = [f"{folder}/s.sock"]
        try:
            server = xllamacpp.Server(params)
            # One that ends before its loop began waits for it for ever: ask once.
            server.handle_completions({"prompt": "a", "n_predict": 1})
            return server
        except RuntimeError:
            raise BackendError(
                "llama.cpp cannot load it: it is truncated or damaged, or xllamacpp "
                f"{xllamacpp.__version__} does not support this kind of model"
            ) from None


@contextmanager
def _limit_spinning() -> Iterator[None]:
    """Bound the time for which threads wait actively for each other before they sleep.

    Without a bound, two processes slow each other down, and so does other work on the machine.
    libgomp reads the environment once, when it is loaded. A setting of the user's is kept.
    """
    if {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = str(MAX_SPINS)
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _group_in_runs(jobs: Sequence[GgufJob]) -> Iterator[list[int]]:
    """Yield the indices of jobs that are done one after another in one sequence.

    Their common beginning is read once. All other jobs are done separately, as many at a time as
    there are sequences.
    """
    run: list[int] = []
    # Sorted, jobs with a common beginning are neighbours.
    for index in sorted(range(len(jobs)), key=lambda index: jobs[index].text):
        if run and not jobs[index].follows(jobs[run[-1]]):
            yield run
            run = []
        run.append(index)
    if run:
        yield run


def _join_replies(
    request: ChatRequest, outcomes: Sequence[Reply | BackendError]
) -> Reply | BackendError:
    """Return the reply to a request from the replies that were made for it, or the first error."""
    replies = [outcome for outcome in outcomes if isinstance(outcome, Reply)]
    if errors := [outcome for outcome in outcomes if isinstance(outcome, BackendError)]:
        return errors[0]
    reply = join_replies(request, replies)
    if reply.logprobs and request.logprobs == 0:  # llama.cpp tells one alternative at the least
        bare = tuple(token._replace(alternatives=()) for token in reply.logprobs)
        reply = replace(reply, logprobs=bare)
    return reply
