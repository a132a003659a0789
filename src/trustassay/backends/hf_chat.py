"""``hf:ID-or-path``: a chat model of the Hugging Face hub, or of a folder, run on this machine.

Decoder-only and encoder-decoder models. A chat is laid out by the tokenizer's chat template where
it has one, else as :func:`~trustassay.backends.chat_text.plain` says. A prompt that does not fit
the model is an error and is never cut.

A reply only depends on its request: the random generator is seeded by messages, ``seed``,
``repeat`` and the reply's number, and each row of a batch has its own. The only influence of
other rows is rounding: padding can change the last digits of the logits, and so, rarely, a choice
between tokens with almost the same probability.
"""

import hashlib
import inspect
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.backends import hf_loading
from trustassay.backends.chat_text import joined, plain, shortened
from trustassay.capabilities import ChatRequest, Message, Reply, TokenLogprob, Turns
from trustassay.errors import BackendError
from trustassay.sample import clean

MAX_TOKENS = 512
TOKENS_A_CHARACTER = 4
"""Most tokens that a character can take: the bytes of UTF-8."""


@dataclass(slots=True)
class Row:
    """One reply in the making.

    prompt: the tokens of the prompt. index: the reply's number among the request's ``n``.
    temperature: 0 for greedy. most: tokens that the reply may have. users: places of the tokens
    whose embeddings are moved. told: of each token its log-probability, and the likeliest tokens
    with theirs.
    """

    request: ChatRequest
    prompt: list[int]
    most: int
    temperature: float
    index: int = 0
    users: Sequence[int] = ()
    tokens: list[int] = field(default_factory=list)
    told: list[tuple[float, list[tuple[int, float]]]] = field(default_factory=list)
    finish: str = ""
    reply: Reply | None = None

    def randomness(self, *purpose: str) -> np.random.Generator:
        """Return the source of this reply's chance; it depends on the request alone."""
        request = self.request
        parts = [request.messages, request.seed, request.repeat, self.index, *purpose]
        digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest))


class Decoding:
    """Chooses the tokens of a batch's rows and writes them into the rows."""

    def __init__(
        self, torch: Any, tokenizer: Any, ends: Collection[int], rows: Sequence[Row], narrow: Any
    ) -> None:
        """Begin a batch that ends replies with the tokens ``ends``; ``narrow`` is what the model's
        own settings make of the logits (top-k, top-p) where a request leaves the temperature."""
        self._torch, self._tokenizer, self._rows = torch, tokenizer, rows
        self._ends = frozenset(ends)
        self._narrow = narrow
        self._chances = [row.randomness() if row.temperature else None for row in rows]
        self._told = max((row.request.logprobs or 0 for row in rows), default=0)
        self._telling = any(row.request.logprobs is not None for row in rows)

    def choose(self, _: Any, scores: Any) -> Any:
        """Return scores (b, v) that leave one token in each row; a logits processor."""
        torch = self._torch
        scores = scores.float()
        chosen = scores.argmax(dim=-1)
        if any(self._chances):
            chosen = torch.where(self._heats(scores) > 0, self._drawn(scores), chosen)
        self._note(chosen, scores)
        only = torch.full_like(scores, float("-inf"))
        return only.scatter_(1, chosen[:, None], 0.0)

    def done(self, ids: Any, _: Any, **__: Any) -> Any:
        """Return which rows (b,) are finished; a stopping criterion."""
        done = [bool(row.finish) for row in self._rows]
        return self._torch.tensor(done, device=ids.device, dtype=self._torch.bool)

    def _heats(self, scores: Any) -> Any:
        return self._torch.tensor([row.temperature for row in self._rows], device=scores.device)

    def _drawn(self, scores: Any) -> Any:
        """Draw from softmax(scores / temperature): the token where the running sum passes u."""
        torch = self._torch
        heats = self._heats(scores)
        scores = scores / torch.where(heats > 0, heats, 1.0)[:, None]
        own = [row.request.temperature is None for row in self._rows]
        if any(own):
            narrowed = self._narrow(None, scores.clone())
            scores = torch.where(torch.tensor(own, device=scores.device)[:, None], narrowed, scores)
        sums = torch.softmax(scores, dim=-1).cumsum(dim=-1)
        draws = [0.0 if chance is None else chance.random() for chance in self._chances]
        aims = torch.tensor(draws, device=scores.device, dtype=sums.dtype)[:, None] * sums[:, -1:]
        places = torch.searchsorted(sums, aims, right=True).squeeze(1)
        # Rounding can put the aim at the very end, behind which there is no token.
        return torch.where(places < scores.shape[-1], places, scores.argmax(dim=-1))

    def _note(self, chosen: Any, scores: Any) -> None:
        """Write the chosen tokens, and what was asked to be told of them, into the rows."""
        tokens = chosen.tolist()
        if self._telling:
            logprobs = scores.log_softmax(dim=-1)
            own = logprobs.gather(1, chosen[:, None]).squeeze(1).tolist()
            values, places = (part.tolist() for part in logprobs.topk(max(1, self._told), dim=-1))
        for i, (row, token) in enumerate(zip(self._rows, tokens, strict=True)):
            if row.finish:
                continue
            if token in self._ends:
                row.finish = "stop"
                continue
            row.tokens.append(token)
            if (many := row.request.logprobs) is not None:
                best = list(zip(places[i][:many], values[i][:many], strict=True))
                row.told.append((own[i], best))
            if self._stopped(row):
                row.finish = "stop"
            elif len(row.tokens) >= row.most:
                row.finish = "length"

    def _stopped(self, row: Row) -> bool:
        """Say whether a stop string stands among the last tokens."""
        if not row.request.stop:
            return False
        longest = max(map(len, row.request.stop))
        tail = self.text(row.tokens[-(TOKENS_A_CHARACTER * longest + 1) :])
        return any(stop in tail for stop in row.request.stop)

    def text(self, tokens: Sequence[int]) -> str:
        """Return what tokens spell, special ones left out."""
        spelt: str = self._tokenizer.decode(
            tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return spelt

    def finish(self) -> None:
        """Give each row its reply up to the first stop string, with its log-probabilities."""
        for row in self._rows:
            text, kept = self.text(row.tokens), len(row.tokens)
            places = [place for stop in row.request.stop if (place := text.find(stop)) >= 0]
            if places:
                text = text[: min(places)]
                while kept and len(self.text(row.tokens[: kept - 1])) >= len(text):
                    kept -= 1
            logprobs = tuple(self._logprob(row, i) for i in range(kept)) if row.told else ()
            row.reply = Reply(
                text,
                row.finish,
                len(row.prompt),
                len(row.tokens),
                logprobs=None if row.request.logprobs is None else logprobs,
                dropped=("schema",) if row.request.schema else (),
            )

    def _logprob(self, row: Row, i: int) -> TokenLogprob:
        before = row.tokens[i - 1 : i] if i else []
        logprob, best = row.told[i]
        others = tuple((self._piece(before, token), value) for token, value in best)
        return TokenLogprob(self._piece(before, row.tokens[i]), logprob, others)

    def _piece(self, before: Sequence[int], token: int) -> str:
        """Return what a token adds to the text before it; some tokenizers hide a leading space."""
        spelt = self._tokenizer.decode([*before, token], clean_up_tokenization_spaces=False)
        if not before:
            return str(spelt)
        start = self._tokenizer.decode(before, clean_up_tokenization_spaces=False)
        return str(spelt[len(start) :])


_WRITES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


class HuggingFaceChat(hf_loading.HubModel):
    """Generates text with a local model; built for ``hf:ID-or-path[?option=value&...]``."""

    perturbs_embeddings = True

    def __init__(
        self, model: str, *, template: str = "auto", max_tokens: int = MAX_TOKENS, **options: Any
    ) -> None:
        """Load a model; raises :class:`BackendError`, in one line, where that is not possible.

        ``template`` is ``auto`` or ``none``, the plain layout even if there is a template.
        ``max_tokens`` bounds replies whose request does not. Other options as of
        :class:`HubModel`; the size of a batch is that of prompts and the longest replies.
        """
        super().__init__(**options)
        self._max_tokens = max_tokens
        own = {"template": None if template == "auto" else template}
        most = None if max_tokens == MAX_TOKENS else max_tokens
        self.name = hf_loading.uri(model, dtype=self._dtype, **own, max_tokens=most)
        with hf_loading.one_line(self.name, Exception):
            if template not in ("auto", "none"):
                raise BackendError(f"template={template} is unknown; use auto or none")
            if self._batch_tokens < 1 or max_tokens < 1:
                raise BackendError("batch_tokens and max_tokens must be more than 0")
            self._open(model)
        self._template = template == "auto" and bool(getattr(self._tokenizer, "chat_template", ""))

    def _open(self, name: str) -> None:
        _, transformers = hf_loading.libraries()
        folder, config = hf_loading.config_of(name)
        architectures = config.architectures or ()
        if not any(kind.endswith(_WRITES) for kind in architectures):
            raise BackendError(
                f"it is not a model that generates text: {', '.join(architectures) or 'unknown'}"
            )
        self._encodes = bool(config.is_encoder_decoder)
        kind = "AutoModelForSeq2SeqLM" if self._encodes else "AutoModelForCausalLM"
        auto = getattr(transformers, kind)
        self._model, self._tokenizer = hf_loading.load(
            folder, auto, self._device, self._dtype, pad_with_end=True
        )
        if not self._encodes:
            self._tokenizer.padding_side = "left"
        # A tokenizer's own limit says nothing of relative positions.
        self._limit = (
            getattr(self._model.config, "max_position_embeddings", None)
            if self._encodes
            else hf_loading.longest_input(self._model, self._tokenizer)
        )
        settings = self._model.generation_config
        own = settings.eos_token_id
        self._ends = {own} if isinstance(own, int) else {*(own or ())}
        self._ends.add(self._tokenizer.eos_token_id)  # what a template's turns often end with
        self._own_temperature = (settings.temperature or 1.0) if settings.do_sample else 0.0
        self._narrow = transformers.LogitsProcessorList()
        if settings.top_k:
            self._narrow.append(transformers.TopKLogitsWarper(settings.top_k))
        if settings.top_p is not None and settings.top_p < 1:
            self._narrow.append(transformers.TopPLogitsWarper(settings.top_p))
        # What is chosen is chosen in Decoding; transformers would warn of what it does not use.
        settings.do_sample, settings.num_beams, settings.max_length = False, 1, None
        settings.temperature = settings.top_k = settings.top_p = None

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        """Answer each of the requests, in their order; may be called from several threads.

        Raises:
            BackendError: a prompt that the model cannot read whole, or the model fails.
        """
        with self._lock, hf_loading.one_line(self.name, Exception):
            rows = [list(self._rows(request)) for request in requests]
            flat = [row for own in rows for row in own]
            lengths = [len(row.prompt) + row.most for row in flat]
            for batch in hf_loading.batches(lengths, self._batch_tokens):
                self._write([flat[i] for i in batch])
        made = ([row.reply for row in own if row.reply] for own in rows)
        return [joined(request, own) for request, own in zip(requests, made, strict=True)]

    def token_loglikelihoods(self, prompt: Turns, options: Sequence[str]) -> list[list[float]]:
        """Return, for each option, the natural log-probabilities of its tokens.

        They follow the prompt, laid out as for a reply; the end of the text is not counted. A
        decoder-only model's prompt and option are tokenised as one text, as it learnt to read
        them; where a token would reach across the boundary the option is tokenised by itself. So a
        space before an option belongs to the option. An encoder-decoder model's option is
        tokenised by itself.

        Raises:
            BackendError: prompt and option are longer than the model reads, or the model fails.
        """
        messages = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
        with self._lock, hf_loading.one_line(self.name, Exception):
            text, special = self._laid_out(messages)
            start = self._prompt_tokens(text, special)
            pairs = [self._option(text, special, start, option) for option in options]
            if not self._encodes:
                pairs = [([*start, *before], tokens) for before, tokens in pairs]
            return self._after(start, pairs)

    def _rows(self, request: ChatRequest) -> Iterator[Row]:
        """Yield the replies that a request asks for; equal ones, of a greedy request, once."""
        text, special = self._laid_out(request.messages)
        prompt = self._prompt_tokens(text, special)
        most = self._room(prompt, request)
        heat = self._own_temperature if request.temperature is None else request.temperature
        users: list[int] = []
        if request.embedding_radius is not None:
            layout, _ = self._laid_out([*request.messages[:-1], Message("user", MARK)])
            users = user_tokens(self._tokenizer, text, special, layout)
        for index in range(request.n if heat else 1):
            yield Row(request, prompt, most, float(heat), index, users)

    def _room(self, prompt: Sequence[int], request: ChatRequest) -> int:
        """Return how many tokens a reply may have; raises if there is no room for them."""
        most = self._max_tokens if request.max_tokens is None else request.max_tokens
        if self._limit is None:
            return most
        taken = 0 if self._encodes else len(prompt)
        least = 1 if request.max_tokens is None else most
        if taken + least > self._limit or len(prompt) > self._limit:
            raise BackendError(
                f"a prompt of {len(prompt)} tokens and {least} for the reply do not fit the "
                f"{self._limit} that this model reads: {shortened(plain(request.messages))!r}"
            )
        return min(most, self._limit - taken)

    def _laid_out(self, messages: Sequence[Message]) -> tuple[str, bool]:
        """Return the text of a chat, and whether special tokens are still to be added to it."""
        if not self._template:
            return plain(messages), True
        from jinja2 import TemplateError

        goes_on = messages[-1].role == "assistant"
        try:
            text: str = self._tokenizer.apply_chat_template(
                [message._asdict() for message in messages],
                tokenize=False,
                add_generation_prompt=not goes_on,
                continue_final_message=goes_on,
            )
            return text, False
        except TemplateError as error:
            roles = [message.role for message in messages]
            if roles[:2] != ["system", "user"]:
                raise BackendError(f"its chat template rejects this chat: {error}") from error
        # Some templates know no system: its words come first in what the user says.
        system, user, *others = messages
        merged = Message("user", f"{system.content}\n\n{user.content}")
        return self._laid_out([merged, *others])

    def _prompt_tokens(self, text: str, special: bool) -> list[int]:
        """Return the tokens of a prompt; where the model is to go on, without the end token."""
        ids = self._tokens(text, special)
        if special and not self._encodes and ids:
            bare = self._tokens(text, False)
            if bare and ids[-1] != bare[-1]:
                ids = ids[:-1]
        if not ids:
            begin = self._tokenizer.bos_token_id
            ids = [self._tokenizer.eos_token_id if begin is None else begin]
        return ids

    def _tokens(self, text: str, special: bool) -> list[int]:
        ids: list[int] = self._tokenizer(clean(text), add_special_tokens=special, verbose=False)[
            "input_ids"
        ]
        return ids

    def _option(
        self, text: str, special: bool, start: list[int], option: str
    ) -> tuple[list[int], list[int]]:
        """Return the tokens between a prompt and an option, and the option's own."""
        bare = self._tokens(option, False)
        if self._encodes:
            whole = self._tokens(option, True)
            ahead = range(len(whole) - len(bare) + 1)
            begin = next((i for i in ahead if whole[i : i + len(bare)] == bare), 0)
            return [self._model.config.decoder_start_token_id, *whole[:begin]], bare
        whole = self._prompt_tokens(text + option, special) if option else start
        if whole[: len(start)] == start and (bare or not option):
            return [], whole[len(start) :]
        return [], bare

    def _write(self, rows: Sequence[Row]) -> None:
        """Write the reply of each row of a batch."""
        torch, transformers = hf_loading.libraries()
        decoding = Decoding(torch, self._tokenizer, self._ends, rows, self._narrow)
        with torch.inference_mode():
            self._model.generate(
                **self._inputs(rows),
                max_new_tokens=max(row.most for row in rows),
                logits_processor=transformers.LogitsProcessorList([decoding.choose]),
                stopping_criteria=transformers.StoppingCriteriaList([decoding.done]),
                pad_token_id=self._tokenizer.pad_token_id,
            )
        decoding.finish()

    def _inputs(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the inputs of a batch: tokens, or embeddings where those of a row are moved."""
        inputs = self._batch([row.prompt for row in rows])
        if not any(row.users for row in rows):
            return inputs
        vectors = self._model.get_input_embeddings()(inputs.pop("input_ids"))
        for row, own, mask in zip(rows, vectors, inputs["attention_mask"], strict=True):
            if row.users:
                places = mask.nonzero().squeeze(1)[row.users]
                radius, rng = row.request.embedding_radius or 0.0, row.randomness("embeddings")
                own[places] = moved(own[places], radius, rng)
        return {**inputs, "inputs_embeds": vectors}

    def _batch(self, prompts: Sequence[list[int]]) -> dict[str, Any]:
        inputs = [{"input_ids": ids, "attention_mask": [1] * len(ids)} for ids in prompts]
        return hf_loading.padded(inputs, self._tokenizer, self._model.device)

    def _after(
        self, start: list[int], pairs: Sequence[tuple[list[int], list[int]]]
    ) -> list[list[float]]:
        """Return the log-probabilities of the second tokens after the first, for each pair; what is
        read is the same for all options of one token, and is read once."""
        read = [(*before, *tokens[:-1]) for before, tokens in pairs]
        longest = max(map(len, read), default=0)
        if self._limit is not None and max(longest, len(start)) > self._limit:
            raise BackendError(
                f"a prompt of {len(start)} tokens and its longest option do not fit the "
                f"{self._limit} that this model reads"
            )
        least = min((len(before) for before, _ in pairs), default=0)
        result = [[0.0] * len(tokens) for _, tokens in pairs]
        distinct = list(dict.fromkeys(read))
        lengths = [len(ids) + (len(start) if self._encodes else 0) for ids in distinct]
        for batch in hf_loading.batches(lengths, self._batch_tokens):
            place = {distinct[i]: row for row, i in enumerate(batch)}
            wanted = [
                ((i, offset), place[read[i]], len(before) - least + offset, token)
                for i, (before, tokens) in enumerate(pairs)
                if read[i] in place
                for offset, token in enumerate(tokens)
            ]
            if wanted:
                owners, *where = zip(*wanted, strict=True)
                values = self._logprobs(start, list(place), least, where)
                for (i, offset), value in zip(owners, values, strict=True):
                    result[i][offset] = float(value)
        return result

    def _logprobs(
        self, start: list[int], read: Sequence[tuple[int, ...]], least: int, where: Sequence[Any]
    ) -> Any:
        """Return log-probabilities at (row, position, token), where ``least`` - 1 is position 0."""
        torch, _ = hf_loading.libraries()
        length = max(map(len, read))
        fill = self._tokenizer.pad_token_id
        # Padded on the right, where no token looks: positions stay as they are.
        ids = torch.tensor(
            [[*row, *[fill] * (length - len(row))] for row in read], device=self._model.device
        )
        keep = length - least + 1
        with torch.inference_mode():
            if self._encodes:
                source = self._batch([start] * len(read))
                logits = self._model(**source, decoder_input_ids=ids).logits
            else:
                known = "logits_to_keep" in inspect.signature(self._model.forward).parameters
                fewer = {"logits_to_keep": keep} if known else {}
                mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in read])
                mask = mask.to(ids.device)
                logits = self._model(input_ids=ids, attention_mask=mask, **fewer).logits
            logprobs = logits[:, -keep:].float().log_softmax(dim=-1)
            return logprobs[tuple(torch.tensor(axis) for axis in where)].cpu().numpy()


MARK = "\ue000\ue001\ue000"
"""Stands for what the user says, to see what a chat's layout puts around it."""


def user_tokens(tokenizer: Any, text: str, special: bool, layout: str) -> list[int]:
    """Return the places of the user's tokens in a prompt; :data:`MARK` is in its ``layout``.

    A token that also spells what is beside the user's text is one of them. Raises
    :class:`BackendError` if there is none, or a layout does not show where the text is.
    """
    text, (before, mark, after) = clean(text), clean(layout).partition(MARK)
    begin, end = len(before), len(text) - len(after)
    if not mark or text[:begin] != before or text[end:] != after:
        raise BackendError("its chat template does not show which tokens are the user's")
    how = {"add_special_tokens": special, "return_offsets_mapping": True, "verbose": False}
    spans = enumerate(tokenizer(text, **how)["offset_mapping"])
    # Some tokenizers give a token of white space a span of no width at its end.
    places = [i for i, (a, b) in spans if b > begin and (a < end or a == b == end)]
    if not places:
        raise BackendError("the user's text has no token whose embedding can be moved")
    return places


def unit_ball(rng: np.random.Generator, n: int, size: int) -> NDArray[np.float64]:
    """Return n vectors, shape (n, size), drawn uniformly from the ball of radius 1."""
    directions = rng.standard_normal((n, size))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(directions / lengths * rng.random((n, 1)) ** (1 / size))


def moved(vectors: Any, radius: float, rng: np.random.Generator) -> Any:
    """Return embeddings, a tensor (n, size), each moved by a vector of its own, drawn uniformly
    from the ball whose radius is ``radius`` times their mean length."""
    wide = vectors.float()
    ball = wide.new_tensor(unit_ball(rng, *vectors.shape))
    return (wide + radius * wide.norm(dim=-1).mean() * ball).to(vectors.dtype)
