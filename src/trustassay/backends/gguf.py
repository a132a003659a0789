"""``gguf:PATH``: a model in a GGUF file, run in this process by llama.cpp.

    gguf:PATH[?threads=N&parallel=N&context=N&template=none&max_tokens=N&file=IDENTITY]

A chat is laid out by the file's own chat template. What a prompt shares with the one before it in
its sequence is read once: requests are put in the order of their texts, and those that begin alike
and want a short reply go to one sequence. Nothing is sent anywhere, and no port is opened.

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

from trustassay.backends.chat_text import joined, plain, shortened
from trustassay.backends.openai import held_to, reply_of
from trustassay.backends.recommended import languages_of
from trustassay.capabilities import BatchLimits, ChatRequest, Message, Reply, Turns
from trustassay.errors import BackendError, CallError, install
from trustassay.sample import clean

CONTEXT = 4096
"""Tokens of a prompt and its reply, where neither the URI nor the model says less."""
MAX_TOKENS = 512
SHORT_REPLY = 16
"""Tokens; with so short a reply nearly all of the time goes into reading the prompt."""
READS_FASTER = 3
"""How many tokens are read while one is written, at least."""
CHARACTERS_PER_TOKEN = 4
IDENTIFIED = 1 << 20
"""Bytes at the head and at the tail of a file that its identity is made of, with its size."""
OVERHEAD = 256 << 20
"""Bytes that llama.cpp takes beside the sequences, and 1.25 times the weights, some of which it
arranges anew; measured: 0.7 GB in all for 0.5 GB of weights, 2.1 GB for 1.1 GB."""
SPINS = 2000
"""Turns of a thread that waits for the others. Measured, 1.5B, four sequences, two cores: 12.0
tokens a second, 11.7 without a bound; two processes at once 5.4 and 5.1."""
LONGEST_ARRAY = 4096
"""Numbers of an array that is kept; longer ones are the vocabulary's."""
_FORMS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
"""The letters of the ``struct`` module by GGUF's numbers of types."""
_TEXT, _ARRAY = 8, 9
TOO_LONG = "exceed_context_size_error"


class Job(NamedTuple):
    """One reply to be made: the text of its chat, and the request as llama.cpp takes it.

    least: tokens that there must be room for.
    """

    text: str
    body: dict[str, Any]
    least: int

    def follows(self, other: "Job") -> bool:
        """Whether it is best done after another one in its sequence.

        They share half of their texts, and to read that takes longer than to write the reply.
        """
        half = min(len(self.text), len(other.text)) // 2
        if self.text[:half] != other.text[:half]:
            return False
        read = half / CHARACTERS_PER_TOKEN
        return bool(self.body["max_tokens"] <= max(SHORT_REPLY, read / READS_FASTER))


@dataclass(frozen=True)
class GgufFile:
    """What a GGUF file says of itself before it is loaded.

    identity: size and a digest of its first and last megabyte. values: its metadata, without long
    lists.
    """

    path: Path
    size: int
    identity: str
    values: Mapping[str, Any]

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
                digest = hashlib.blake2b(file.read(IDENTIFIED), digest_size=8)
                file.seek(max(0, size - IDENTIFIED))
                digest.update(file.read())
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    values = _Head(data).values()
        except OSError as error:
            raise BackendError(f"it cannot be read: {error.strerror or error}") from None
        return cls(path, size, f"{size}-{digest.hexdigest()}", values)

    def of_model(self, name: str) -> Any:
        """Return a value of the model's architecture, as ``context_length``; ``None`` if absent."""
        return self.values.get(f"{self.values.get('general.architecture')}.{name}")

    @property
    def has_template(self) -> bool:
        """Whether it says how a chat is laid out."""
        return bool(self.values.get("tokenizer.chat_template"))

    def memory(self, tokens: int) -> int:
        """Return about how many bytes it takes to load, with sequences of so many tokens in all."""
        layers, heads = self.of_model("block_count") or 0, self.of_model("attention.head_count")
        kept = self.of_model("attention.head_count_kv") or heads or 0
        # Where layers differ there is a number for each.
        total = sum(kept) if isinstance(kept, list) else layers * kept
        many = max(heads) if isinstance(heads, list) else heads
        width = (self.of_model("embedding_length") or 0) // (many or 1)
        width = self.of_model("attention.key_length") or width
        return int(self.size * 1.25 + tokens * total * width * 2 * 2 + OVERHEAD)


class _Head:
    """The metadata at the head of a GGUF file; raises :class:`BackendError` if it is damaged."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at = data, 4

    def values(self) -> dict[str, Any]:
        """Return the metadata, without long lists; also checks where the last tensor begins."""
        try:
            version, tensors, pairs = self._numbers("IQQ")
            if version not in (2, 3):
                raise BackendError(f"it is a GGUF file of version {version}; 2 and 3 can be read")
            result = {self._text(): self._value(self._numbers("I")[0]) for _ in range(pairs)}
            last = 0
            for _ in range(tensors):
                self._text()
                (dimensions,) = self._numbers("I")
                last = max(last, self._numbers(f"{dimensions}QIQ")[-1])
        except (struct.error, OverflowError, UnicodeDecodeError, KeyError, MemoryError):
            raise BackendError("it is cut or damaged: its head cannot be read") from None
        if self._at + last >= len(self._data):
            message = f"it is cut: {len(self._data):,} bytes, and tensors begin behind its end"
            raise BackendError(message)
        return result

    def _numbers(self, form: str) -> tuple[Any, ...]:
        result = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return result

    def _text(self) -> str:
        (length,) = self._numbers("Q")
        return self._skip(length).decode("utf-8", "replace")

    def _skip(self, length: int) -> bytes:
        if length > len(self._data) - self._at:
            raise OverflowError
        self._at += length
        return self._data[self._at - length : self._at]

    def _value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self._text()
        if kind != _ARRAY:
            return self._numbers(_FORMS[kind])[0]
        inner, length = self._numbers("IQ")
        if inner in (_TEXT, _ARRAY):
            for _ in range(length):
                self._value(inner)
            return None
        if length > LONGEST_ARRAY:
            self._skip(length * struct.calcsize(_FORMS[inner]))
            return None
        return list(self._numbers(f"{length}{_FORMS[inner]}"))


def free_memory() -> int | None:
    """Return how many bytes new programs may take without swapping; ``None`` if it is not known."""
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        free = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(free.split()[1]) * 1024
    return None


class GgufChat:
    """Generates text, and gives the likelihood of texts, with a model in a GGUF file."""

    tells_first_token = True
    """The probabilities of a reply's first token are at hand: entailment is read from them."""
    shared = True
    """Its name tells the file by its content, so that other runs may take its replies."""

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
        """Load a model; raises :class:`BackendError`, in one line, where that is not possible.

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
            if template not in ("auto", "none"):
                raise BackendError(f"template={template} is unknown; use auto or none")
            result = GgufFile.read(path)
            if file not in (None, result.identity):
                raise BackendError(
                    f"it is another file ({result.identity}) than was named ({file})"
                )
            if template == "auto" and not result.has_template:
                raise BackendError(
                    "it has no chat template, as base models have none; a chat can be laid out as "
                    f"plain text: gguf:{path}?template=none"
                )
            trained = result.of_model("context_length") or CONTEXT
            self.context = min(CONTEXT, trained) if context is None else context
            if self.context > trained:
                message = f"context={self.context}: the model was trained for {trained} tokens"
                raise BackendError(message)
            self.memory = result.memory(self.context * parallel)
            free = free_memory()
            if free is not None and self.memory > free:
                raise BackendError(
                    f"it takes about {self.memory / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB "
                    "are free; try a smaller file, or a smaller ?context= or ?parallel="
                )
            self._template, self._parallel, self._max_tokens = template, parallel, max_tokens
            given = [f"file={result.identity}"]
            given += [f"template={template}"] * (template != "auto")
            given += [f"max_tokens={max_tokens}"] * (max_tokens != MAX_TOKENS)
            self.name = f"gguf:{path}?{'&'.join(given)}"
            self.limits = BatchLimits(items=4 * parallel, tokens=None, order="text")
            self.judges_in = languages_of(result.size)
            """Languages in which it judges well enough, if that was measured."""
            self.tokens_read = 0
            """Tokens of prompts that were computed; those that were read before do not count."""
            self._server = _server(result.path, self.context, parallel, threads)
        except BackendError as error:
            raise BackendError(f"gguf:{path}: {error}") from None
        self._threads, self._lock = ThreadPoolExecutor(parallel, "gguf"), threading.Lock()

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply | BackendError]:
        """Answer each of the requests, in their order; a failed one has its error in its place.

        Raises:
            BackendError: the only request fails: prompt and reply are longer than the context, or
                the model fails.
        """
        # Replies to a greedy request are equal, so it is asked once.
        counts = [request.n if request.temperature != 0 else 1 for request in requests]
        jobs = [
            self._job(request, number)
            for request, count in zip(requests, counts, strict=True)
            for number in range(count)
        ]
        made = iter(self._made(jobs))
        result = [
            _joined(request, [next(made) for _ in range(count)])
            for request, count in zip(requests, counts, strict=True)
        ]
        if len(result) == 1 and isinstance(result[0], BackendError):
            raise result[0]
        return result

    def token_loglikelihoods(self, prompt: Turns, options: Sequence[str]) -> list[list[float]]:
        """Return, for each option, the natural log-probabilities of its tokens after the prompt.

        An option is spelt by the likeliest tokens that spell it: a grammar allows no other text.
        The end of the text is not counted.

        Raises:
            BackendError: prompt and option are longer than the context, or the model fails.
            CallError: its tokens do not spell an option, or split a character, for which llama.cpp
                tells one of the numbers alone (``refused``).
        """
        messages = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
        jobs = []
        for option in options:
            request = ChatRequest(messages, max_tokens=len(option.encode()) + 1, logprobs=0)
            job = self._job(request)
            quoted = json.dumps(option, ensure_ascii=False)
            literal = quoted.replace("\\b", "\\x08").replace("\\f", "\\x0C")  # of its grammars
            grammar = {"grammar": f"root ::= {literal}"}
            jobs.append(job._replace(body=job.body | grammar, least=0))
        rows: list[list[float]] = []
        for option, reply in zip(options, self._made(jobs), strict=True):
            if isinstance(reply, BackendError):
                raise reply
            result = [token.logprob for token in reply.logprobs or ()]
            ended = reply.finish == "stop"
            if reply.text != option or len(result) + ended != reply.reply_tokens:
                message = f"its tokens do not spell {shortened(option)!r}, or split a character"
                raise CallError(f"{self.name}: {message}", "refused")
            rows.append(result)
        return rows

    def _job(self, request: ChatRequest, number: int = 0) -> Job:
        """Return what makes one of the replies that a request asks for."""
        messages = [Message(role, clean(content)) for role, content in request.messages]
        parts = [request.messages, request.seed, request.repeat, number]
        digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=4).digest()
        body: dict[str, Any] = {
            "max_tokens": self._max_tokens if request.max_tokens is None else request.max_tokens,
            "seed": int.from_bytes(digest),
            "stop": list(request.stop),
        }
        if request.temperature is not None:  # nothing but that: no top-k, top-p or penalties
            body |= {"temperature": request.temperature, "samplers": ["temperature"]}
        if request.logprobs is not None:
            body |= {"logprobs": True, "top_logprobs": max(1, request.logprobs)}
        if request.schema:
            body["response_format"] = held_to(request.schema)
        text, least = plain(messages), request.max_tokens or 1
        if self._template == "none":
            return Job(text, body | {"prompt": text}, least)
        return Job(text, body | {"messages": [turn._asdict() for turn in messages]}, least)

    def _made(self, jobs: Sequence[Job]) -> list[Reply | BackendError]:
        """Return the reply to each job, or why there is none."""
        result: dict[int, Reply | BackendError] = {}
        runs = iter(list(_runs(jobs)))

        def work(sequence: int) -> None:
            for run in runs:  # each of the threads takes the next
                result.update((place, self._asked(jobs[place], sequence)) for place in run)

        list(self._threads.map(work, range(self._parallel)))
        return [result[place] for place in range(len(jobs))]

    def _asked(self, job: Job, sequence: int) -> Reply | BackendError:
        """Return the reply to a job, written in one of the sequences, or why there is none."""
        ask = self._server.handle_completions
        if "messages" in job.body:
            ask = self._server.handle_chat_completions
        said = ask(job.body | {"id_slot": sequence})
        error = said.get("error")
        turns = job.body.get("messages", ())
        if error:
            has_system = [turn["role"] for turn in turns[:2]] == ["system", "user"]
            if error.get("type") == TOO_LONG or not has_system:
                return self._failed(job, error)
            # Some templates know no system: its words come first in what the user says.
            message = f"{turns[0]['content']}\n\n{turns[1]['content']}"
            merged = [{"role": "user", "content": message}, *turns[2:]]
            return self._asked(job._replace(body=job.body | {"messages": merged}), sequence)
        with self._lock:
            self.tokens_read += said.get("timings", {}).get("prompt_n", 0)
        for choice in said["choices"]:
            choice.setdefault("message", {"content": choice.get("text", "")})
        reply = reply_of(said)
        if turns and turns[-1]["role"] == "assistant":  # the reply repeats what it continues
            reply = replace(reply, text=reply.text.removeprefix(turns[-1]["content"]))
        if reply.logprobs and reply.logprobs[-1].token == "":  # the end of the text
            reply = replace(reply, logprobs=reply.logprobs[:-1])
        if reply.finish == "length" and (reply.reply_tokens or 0) < job.least:
            return self._failed(job, {"type": TOO_LONG, "n_prompt_tokens": reply.prompt_tokens})
        return reply

    def _failed(self, job: Job, error: Mapping[str, Any]) -> BackendError:
        if error.get("type") != TOO_LONG:
            return BackendError(f"{self.name}: {' '.join(str(error.get('message')).split())[:300]}")
        return BackendError(
            f"{self.name}: a prompt of {error.get('n_prompt_tokens')} tokens and {job.least} for "
            f"the reply do not fit the context of {self.context}; give more by ?context=N: "
            f"{shortened(job.text)!r}"
        )


def _server(path: Path, context: int, parallel: int, threads: int | None) -> Any:
    """Load a model; raises :class:`BackendError`."""
    try:
        with _brief_waiting():
            import xllamacpp
    except ImportError:
        raise BackendError(f"xllamacpp is missing: {install('gguf')}") from None
    given = xllamacpp.CommonParams()
    given.model.path = str(path)
    given.n_ctx, given.n_parallel = context * parallel, parallel
    count = threads or len(os.sched_getaffinity(0))
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = count
    given.cache_ram_mib = 0  # else the texts of ended sequences are kept, up to 8 GB
    given.fit_params = given.warmup = given.ui = given.endpoint_slots = False
    given.verbosity = -1
    # It listens, though nothing is asked that way: at a socket in a folder that is gone at once,
    # whose path may have some 100 bytes in all.
    short = "/tmp" if len(tempfile.gettempdir()) > 70 else None
    with tempfile.TemporaryDirectory(prefix="gguf-", dir=short) as folder:
        given.hostnames = [f"{folder}/s.sock"]
        try:
            server = xllamacpp.Server(given)
            # One that ends before its loop began waits for it for ever: ask once.
            server.handle_completions({"prompt": "a", "n_predict": 1})
            return server
        except RuntimeError:
            raise BackendError(
                "llama.cpp cannot load it: it is cut or damaged, or of a kind that xllamacpp "
                f"{xllamacpp.__version__} does not know"
            ) from None


@contextmanager
def _brief_waiting() -> Iterator[None]:
    """Bound how long threads wait for each other at work before they sleep.

    Without a bound two processes, or one on a machine that does other work, hold each other up.
    libgomp reads the environment once, when it is loaded; a setting of the user's stays.
    """
    if {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = str(SPINS)
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _runs(jobs: Sequence[Job]) -> Iterator[list[int]]:
    """Yield the places of jobs that are done one after another in one sequence.

    What they share is read once. All others are done each by itself, as many at a time as there are
    sequences.
    """
    run: list[int] = []
    for place in sorted(range(len(jobs)), key=lambda place: jobs[place].text):
        if run and not jobs[place].follows(jobs[run[-1]]):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _joined(request: ChatRequest, made: Sequence[Reply | BackendError]) -> Reply | BackendError:
    """Return the reply to a request from the replies that were made for it."""
    replies = [one for one in made if isinstance(one, Reply)]
    if failed := [one for one in made if isinstance(one, BackendError)]:
        return failed[0]
    reply = joined(request, replies)
    if reply.logprobs and request.logprobs == 0:  # llama.cpp tells one alternative at the least
        bare = tuple(token._replace(alternatives=()) for token in reply.logprobs)
        reply = replace(reply, logprobs=bare)
    return reply
