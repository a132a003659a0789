"""``hf:ID-or-path``: a chat model of the Hugging Face hub, or of a folder, run on this machine.

Both decoder-only and encoder-decoder models. A chat is laid out by the tokenizer's chat template if
there is one, else by :func:`~trustassay.backends.chat_text.chat_to_text`. A prompt that does not
fit the model is an error and is never cut.

A reply only depends on its request: the random generator is seeded by messages, ``seed``,
``repeat`` and the reply's number, and each row of a batch has its own. The only influence of other
rows is rounding: padding can change the last digits of the logits, and so, rarely, a choice between
tokens with almost the same probability.
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
from trustassay.backends.chat_text import chat_to_text, join_replies, shorten, to_messages
from trustassay.core.capabilities import ChatRequest, Message, Reply, TokenLogprob, Turns
from trustassay.core.sample import clean
from trustassay.errors import BackendError

MAX_TOKENS = 512
MAX_TOKENS_PER_CHARACTER = 4
"""Most tokens that one character can take: its bytes in UTF-8."""


@dataclass(slots=True)
class GeneratedReply:
    """One reply that is being generated, as a row of a batch."""

    request: ChatRequest
    """The request that asks for the reply."""
    prompt: list[int]
    """Tokens of the prompt."""
    length_limit: int
    """Maximum number of tokens of the reply."""
    temperature: float
    """0 for greedy."""
    index: int = 0
    """Number of the reply among the request's ``n``."""
    users: Sequence[int] = ()
    """Positions of the tokens whose embeddings are perturbed."""
    tokens: list[int] = field(default_factory=list)
    """Tokens of the reply so far."""
    token_logprobs: list[tuple[float, list[tuple[int, float]]]] = field(default_factory=list)
    """For each token its log-probability, and the likeliest tokens with theirs."""
    finish: str = ""
    """Why the reply ended; empty while it goes on."""
    reply: Reply | None = None
    """The finished reply."""

    def randomness(self, *purpose: str) -> np.random.Generator:
        """Return the random generator of this reply, which depends on nothing but the request."""
        request = self.request
        parts = [request.messages, request.seed, request.repeat, self.index, *purpose]
        digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest))


class Decoding:
    """Chooses the tokens of a batch's rows and writes them into the rows."""

    def __init__(
        self,
        torch: Any,
        tokenizer: Any,
        ends: Collection[int],
        rows: Sequence[GeneratedReply],
        narrow: Any,
    ) -> None:
        """Begin a batch.

        Args:
            torch: the library.
            tokenizer: the model's tokenizer.
            ends: tokens that end a reply.
            rows: the rows of the batch.
            narrow: applies the model's own settings (top-k, top-p) to the logits of requests that
                leave the temperature to the model.
        """
        self._torch, self._tokenizer, self._build_rows = torch, tokenizer, rows
        self._ends = frozenset(ends)
        self._narrow_logits = narrow
        self._generators = [row.randomness() if row.temperature else None for row in rows]
        self._max_alternatives = max((row.request.logprobs or 0 for row in rows), default=0)
        self._needs_logprobs = any(row.request.logprobs is not None for row in rows)

    def choose(self, _: Any, scores: Any) -> Any:
        """Return scores (b, v) that allow one token in each row; a logits processor."""
        torch = self._torch
        scores = scores.float()
        chosen = scores.argmax(dim=-1)
        # Rows with a temperature draw, the others take the likeliest token.
        if any(self._generators):
            chosen = torch.where(self._temperatures(scores) > 0, self._draw(scores), chosen)
        # The log-probabilities are those of the model, without a temperature.
        self._record_tokens(chosen, scores)
        only = torch.full_like(scores, float("-inf"))
        return only.scatter_(1, chosen[:, None], 0.0)

    def is_finished(self, ids: Any, _: Any, **__: Any) -> Any:
        """Return which rows (b,) are finished; a stopping criterion."""
        finished = [bool(row.finish) for row in self._build_rows]
        return self._torch.tensor(finished, device=ids.device, dtype=self._torch.bool)

    def _temperatures(self, scores: Any) -> Any:
        """Return the temperatures of the rows."""
        return self._torch.tensor(
            [row.temperature for row in self._build_rows], device=scores.device
        )

    def _draw(self, scores: Any) -> Any:
        """Draw from softmax(scores / temperature): the token where the running sum passes u."""
        torch = self._torch
        heats = self._temperatures(scores)
        scores = scores / torch.where(heats > 0, heats, 1.0)[:, None]
        # The model's top-k and top-p belong to its own temperature, not to one of the request.
        uses_model_settings = [row.request.temperature is None for row in self._build_rows]
        if any(uses_model_settings):
            narrowed = self._narrow_logits(None, scores.clone())
            scores = torch.where(
                torch.tensor(uses_model_settings, device=scores.device)[:, None], narrowed, scores
            )
        sums = torch.softmax(scores, dim=-1).cumsum(dim=-1)
        draws = [0.0 if chance is None else chance.random() for chance in self._generators]
        # Scaled by the last sum, which rounding keeps from being exactly 1.
        aims = torch.tensor(draws, device=scores.device, dtype=sums.dtype)[:, None] * sums[:, -1:]
        positions = torch.searchsorted(sums, aims, right=True).squeeze(1)
        # Rounding can put the aim at the very end, behind which there is no token.
        return torch.where(positions < scores.shape[-1], positions, scores.argmax(dim=-1))

    def _record_tokens(self, chosen: Any, scores: Any) -> None:
        """Write the chosen tokens, and the log-probabilities that are asked for, into the rows."""
        tokens = chosen.tolist()
        if self._needs_logprobs:
            logprobs = scores.log_softmax(dim=-1)
            chosen_logprobs = logprobs.gather(1, chosen[:, None]).squeeze(1).tolist()
            values, token_ids = (
                part.tolist() for part in logprobs.topk(max(1, self._max_alternatives), dim=-1)
            )
        for i, (row, token) in enumerate(zip(self._build_rows, tokens, strict=True)):
            if row.finish:
                continue
            if token in self._ends:
                row.finish = "stop"
                continue
            # The end token itself is not part of the reply.
            row.tokens.append(token)
            if (alternatives := row.request.logprobs) is not None:
                best = list(zip(token_ids[i][:alternatives], values[i][:alternatives], strict=True))
                row.token_logprobs.append((chosen_logprobs[i], best))
            if self._has_stop_string(row):
                row.finish = "stop"
            elif len(row.tokens) >= row.length_limit:
                row.finish = "length"

    def _has_stop_string(self, row: GeneratedReply) -> bool:
        """Whether a stop string is among the last tokens."""
        if not row.request.stop:
            return False
        longest = max(map(len, row.request.stop))
        # So many tokens are enough for the longest stop string; one more, as it may begin inside
        # one.
        tail = self.text(row.tokens[-(MAX_TOKENS_PER_CHARACTER * longest + 1) :])
        return any(stop in tail for stop in row.request.stop)

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special tokens."""
        spelt: str = self._tokenizer.decode(
            tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return spelt

    def finish(self) -> None:
        """Give each row its reply up to the first stop string, with its log-probabilities."""
        for row in self._build_rows:
            text, token_count = self.text(row.tokens), len(row.tokens)
            stop_positions = [
                position for stop in row.request.stop if (position := text.find(stop)) >= 0
            ]
            if stop_positions:
                text = text[: min(stop_positions)]
                # Log-probabilities only of the tokens that are needed to spell the text that is
                # left.
                while token_count and len(self.text(row.tokens[: token_count - 1])) >= len(text):
                    token_count -= 1
            logprobs = (
                tuple(self._build_token_logprob(row, i) for i in range(token_count))
                if row.token_logprobs
                else ()
            )
            row.reply = Reply(
                text,
                row.finish,
                len(row.prompt),
                len(row.tokens),
                logprobs=None if row.request.logprobs is None else logprobs,
                dropped=("schema",) if row.request.schema else (),
            )

    def _build_token_logprob(self, row: GeneratedReply, i: int) -> TokenLogprob:
        """Return a token of a row with its log-probability and its alternatives."""
        before = row.tokens[i - 1 : i] if i else []
        logprob, best = row.token_logprobs[i]
        alternatives = tuple((self._spell_token(before, token), value) for token, value in best)
        return TokenLogprob(self._spell_token(before, row.tokens[i]), logprob, alternatives)

    def _spell_token(self, before: Sequence[int], token: int) -> str:
        """Return what a token adds to the text before it.

        Some tokenizers hide a leading space if a token is decoded by itself.
        """
        spelt = self._tokenizer.decode([*before, token], clean_up_tokenization_spaces=False)
        if not before:
            return str(spelt)
        start = self._tokenizer.decode(before, clean_up_tokenization_spaces=False)
        return str(spelt[len(start) :])


_GENERATIVE_SUFFIXES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


class HuggingFaceChat(hf_loading.HubModel):
    """Generates text with a local model; built for ``hf:ID-or-path[?option=value&...]``."""

    perturbs_embeddings = True

    def __init__(
        self, model: str, *, template: str = "auto", max_tokens: int = MAX_TOKENS, **options: Any
    ) -> None:
        """Load a model; raises :class:`BackendError`, with a message of one line, if that fails.

        Args:
            model: ID on the hub, or folder.
            template: ``auto``, or ``none`` for the plain layout even if there is a template.
            max_tokens: maximum length of replies whose request sets none.
            options: those of :class:`HubModel`; the size of a batch includes the longest replies.
        """
        super().__init__(**options)
        self._max_tokens = max_tokens
        name_options = {"template": None if template == "auto" else template}
        length_limit = None if max_tokens == MAX_TOKENS else max_tokens
        self.name = hf_loading.build_uri(
            model, dtype=self._dtype, **name_options, max_tokens=length_limit
        )
        with hf_loading.errors_in_one_line(self.name, Exception):
            if template not in ("auto", "none"):
                raise BackendError(f"template={template} is unknown; use auto or none")
            if self._batch_tokens < 1 or max_tokens < 1:
                raise BackendError("batch_tokens and max_tokens must be more than 0")
            self._load(model)
        self._template = template == "auto" and bool(getattr(self._tokenizer, "chat_template", ""))

    def _load(self, name: str) -> None:
        """Load the model, and take over its generation settings."""
        _, transformers = hf_loading.import_libraries()
        folder, config = hf_loading.load_config(name)
        architectures = config.architectures or ()
        if not any(kind.endswith(_GENERATIVE_SUFFIXES) for kind in architectures):
            raise BackendError(
                "expected a model that generates text, got the architecture "
                f"{', '.join(architectures) or 'unknown'}"
            )
        # 1. Load the model.
        self._is_encoder_decoder = bool(config.is_encoder_decoder)
        kind = "AutoModelForSeq2SeqLM" if self._is_encoder_decoder else "AutoModelForCausalLM"
        auto = getattr(transformers, kind)
        self._model, self._tokenizer = hf_loading.load(
            folder, auto, self._device, self._dtype, pad_with_end=True
        )
        # Replies continue at the right end, so padding must be on the left.
        if not self._is_encoder_decoder:
            self._tokenizer.padding_side = "left"
        # A tokenizer's own limit says nothing of relative positions.
        self._limit = (
            getattr(self._model.config, "max_position_embeddings", None)
            if self._is_encoder_decoder
            else hf_loading.find_max_input_tokens(self._model, self._tokenizer)
        )
        # 2. Take over the model's own settings for generation.
        settings = self._model.generation_config
        end_tokens = settings.eos_token_id
        self._ends = {end_tokens} if isinstance(end_tokens, int) else {*(end_tokens or ())}
        self._ends.add(self._tokenizer.eos_token_id)  # what a template's turns often end with
        self._model_temperature = (settings.temperature or 1.0) if settings.do_sample else 0.0
        self._narrow_logits = transformers.LogitsProcessorList()
        if settings.top_k:
            self._narrow_logits.append(transformers.TopKLogitsWarper(settings.top_k))
        if settings.top_p is not None and settings.top_p < 1:
            self._narrow_logits.append(transformers.TopPLogitsWarper(settings.top_p))
        # What is chosen is chosen in Decoding; transformers would warn of what it does not use.
        settings.do_sample, settings.num_beams, settings.max_length = False, 1, None
        settings.temperature = settings.top_k = settings.top_p = None

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        """Answer the requests, in their order; may be called from several threads.

        Raises:
            BackendError: a prompt is longer than the model reads, or the model fails.
        """
        with self._lock, hf_loading.errors_in_one_line(self.name, Exception):
            rows = [list(self._build_rows(request)) for request in requests]
            # Replies of all requests are batched together, whichever request they belong to.
            flat = [row for rows_of_request in rows for row in rows_of_request]
            lengths = [len(row.prompt) + row.length_limit for row in flat]
            for batch in hf_loading.split_in_batches(lengths, self._batch_tokens):
                self._generate([flat[i] for i in batch])
        replies_by_request = (
            [row.reply for row in rows_of_request if row.reply] for rows_of_request in rows
        )
        return [
            join_replies(request, rows_of_request)
            for request, rows_of_request in zip(requests, replies_by_request, strict=True)
        ]

    def token_loglikelihoods(self, prompt: Turns, options: Sequence[str]) -> list[list[float]]:
        """Return, for each option, the natural log-probabilities of its tokens.

        They follow the prompt, laid out as for a reply; the end of the text is not counted. A
        decoder-only model's prompt and option are tokenised as one text, as the model learnt to
        read them. If a token would cross the boundary between them, the option is tokenised
        separately. So a space before an option belongs to the option. An encoder-decoder model's
        option is always tokenised separately.

        Raises:
            BackendError: prompt and option are longer than the model reads, or the model fails.
        """
        messages = to_messages(prompt)
        with self._lock, hf_loading.errors_in_one_line(self.name, Exception):
            text, special = self._lay_out(messages)
            start = self._tokenise_prompt(text, special)
            pairs = [self._tokenise_option(text, special, start, option) for option in options]
            if not self._is_encoder_decoder:
                pairs = [([*start, *before], tokens) for before, tokens in pairs]
            return self._score_continuations(start, pairs)

    def _build_rows(self, request: ChatRequest) -> Iterator[GeneratedReply]:
        """Yield a row for each reply to a request; only one if the request is greedy."""
        text, special = self._lay_out(request.messages)
        prompt = self._tokenise_prompt(text, special)
        length_limit = self._max_reply_tokens(prompt, request)
        heat = self._model_temperature if request.temperature is None else request.temperature
        users: list[int] = []
        if request.embedding_radius is not None:
            layout, _ = self._lay_out([*request.messages[:-1], Message("user", USER_TEXT_MARK)])
            # Only the last message is perturbed.
            users = find_user_tokens(self._tokenizer, text, special, layout)
        # Greedy replies are equal, so one is enough.
        for index in range(request.n if heat else 1):
            yield GeneratedReply(request, prompt, length_limit, float(heat), index, users)

    def _max_reply_tokens(self, prompt: Sequence[int], request: ChatRequest) -> int:
        """Return the maximum number of tokens of a reply; raise if there is no room for them."""
        length_limit = self._max_tokens if request.max_tokens is None else request.max_tokens
        if self._limit is None:
            return length_limit
        prompt_length = 0 if self._is_encoder_decoder else len(prompt)
        # A length that the request asks for must fit; the default one may be shortened.
        least = 1 if request.max_tokens is None else length_limit
        if prompt_length + least > self._limit or len(prompt) > self._limit:
            raise BackendError(
                f"a prompt of {len(prompt)} tokens and {least} for the reply exceed the model's "
                f"limit of {self._limit} tokens: {shorten(chat_to_text(request.messages))!r}"
            )
        return min(length_limit, self._limit - prompt_length)

    def _lay_out(self, messages: Sequence[Message]) -> tuple[str, bool]:
        """Return the text of a chat, and whether special tokens must still be added to it."""
        if not self._template:
            return chat_to_text(messages), True
        from jinja2 import TemplateError

        # A last message of the assistant is the beginning of the reply.
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
        system, user, *other_messages = messages
        merged = Message("user", f"{system.content}\n\n{user.content}")
        return self._lay_out([merged, *other_messages])

    def _tokenise_prompt(self, text: str, special: bool) -> list[int]:
        """Return the tokens of a prompt, without an end token, after which no model continues."""
        ids = self._tokenise(text, special)
        if special and not self._is_encoder_decoder and ids:
            bare = self._tokenise(text, False)
            # The tokenizer has added an end token, after which no model goes on.
            if bare and ids[-1] != bare[-1]:
                ids = ids[:-1]
        if not ids:
            # A model needs at least one token to start from.
            begin = self._tokenizer.bos_token_id
            ids = [self._tokenizer.eos_token_id if begin is None else begin]
        return ids

    def _tokenise(self, text: str, special: bool) -> list[int]:
        """Return the tokens of a text."""
        ids: list[int] = self._tokenizer(clean(text), add_special_tokens=special, verbose=False)[
            "input_ids"
        ]
        return ids

    def _tokenise_option(
        self, text: str, special: bool, start: list[int], option: str
    ) -> tuple[list[int], list[int]]:
        """Return the tokens between a prompt and an option, and the option's own."""
        bare = self._tokenise(option, False)
        if self._is_encoder_decoder:
            all_tokens = self._tokenise(option, True)
            # The option's own tokens may be preceded by special ones.
            ahead = range(len(all_tokens) - len(bare) + 1)
            begin = next((i for i in ahead if all_tokens[i : i + len(bare)] == bare), 0)
            return [self._model.config.decoder_start_token_id, *all_tokens[:begin]], bare
        all_tokens = self._tokenise_prompt(text + option, special) if option else start
        # No token crosses the boundary.
        if all_tokens[: len(start)] == start and (bare or not option):
            return [], all_tokens[len(start) :]
        return [], bare

    def _generate(self, rows: Sequence[GeneratedReply]) -> None:
        """Generate the replies of a batch."""
        torch, transformers = hf_loading.import_libraries()
        decoding = Decoding(torch, self._tokenizer, self._ends, rows, self._narrow_logits)
        with torch.inference_mode():
            self._model.generate(
                **self._build_inputs(rows),
                max_new_tokens=max(row.length_limit for row in rows),
                logits_processor=transformers.LogitsProcessorList([decoding.choose]),
                stopping_criteria=transformers.StoppingCriteriaList([decoding.is_finished]),
                pad_token_id=self._tokenizer.pad_token_id,
            )
        decoding.finish()

    def _build_inputs(self, rows: Sequence[GeneratedReply]) -> dict[str, Any]:
        """Return the inputs of a batch: tokens, or embeddings if those of a row are perturbed."""
        inputs = self._pad_prompts([row.prompt for row in rows])
        if not any(row.users for row in rows):
            return inputs
        vectors = self._model.get_input_embeddings()(inputs.pop("input_ids"))
        for row, row_vectors, mask in zip(rows, vectors, inputs["attention_mask"], strict=True):
            if row.users:
                positions = mask.nonzero().squeeze(1)[row.users]
                radius, rng = row.request.embedding_radius or 0.0, row.randomness("embeddings")
                row_vectors[positions] = perturb_embeddings(row_vectors[positions], radius, rng)
        return {**inputs, "inputs_embeds": vectors}

    def _pad_prompts(self, prompts: Sequence[list[int]]) -> dict[str, Any]:
        """Return prompts as padded tensors."""
        inputs = [{"input_ids": ids, "attention_mask": [1] * len(ids)} for ids in prompts]
        return hf_loading.pad_inputs(inputs, self._tokenizer, self._model.device)

    def _score_continuations(
        self, start: list[int], pairs: Sequence[tuple[list[int], list[int]]]
    ) -> list[list[float]]:
        """Return for each pair the log-probabilities of its second tokens after its first ones.

        All options that consist of one token have the same input, which is then read once.
        """
        # The last token is predicted, but need not be read.
        read = [(*before, *tokens[:-1]) for before, tokens in pairs]
        longest = max(map(len, read), default=0)
        if self._limit is not None and max(longest, len(start)) > self._limit:
            raise BackendError(
                f"a prompt of {len(start)} tokens and its longest option exceed the model's limit "
                f"of {self._limit} tokens"
            )
        # Logits are only needed from the end of the shortest beginning on.
        least = min((len(before) for before, _ in pairs), default=0)
        result = [[0.0] * len(tokens) for _, tokens in pairs]
        distinct = list(dict.fromkeys(read))
        lengths = [len(ids) + (len(start) if self._is_encoder_decoder else 0) for ids in distinct]
        for batch in hf_loading.split_in_batches(lengths, self._batch_tokens):
            row_of_input = {distinct[i]: row for row, i in enumerate(batch)}
            # (index of the pair, of the token), row of the batch, position, token
            wanted = [
                ((i, offset), row_of_input[read[i]], len(before) - least + offset, token)
                for i, (before, tokens) in enumerate(pairs)
                if read[i] in row_of_input
                for offset, token in enumerate(tokens)
            ]
            if wanted:
                owners, *where = zip(*wanted, strict=True)
                values = self._compute_logprobs(start, list(row_of_input), least, where)
                for (i, offset), value in zip(owners, values, strict=True):
                    result[i][offset] = float(value)
        return result

    def _compute_logprobs(
        self, start: list[int], read: Sequence[tuple[int, ...]], least: int, where: Sequence[Any]
    ) -> Any:
        """Return log-probabilities at (row, position, token), where ``least`` - 1 is position 0."""
        torch, _ = hf_loading.import_libraries()
        length = max(map(len, read))
        fill = self._tokenizer.pad_token_id
        # Padded on the right, where no token looks: positions stay as they are.
        ids = torch.tensor(
            [[*row, *[fill] * (length - len(row))] for row in read], device=self._model.device
        )
        keep = length - least + 1
        with torch.inference_mode():
            if self._is_encoder_decoder:
                source = self._pad_prompts([start] * len(read))
                logits = self._model(**source, decoder_input_ids=ids).logits
            else:
                # Not all models can leave out the logits of the prompt, which take the most memory.
                takes_logits_to_keep = (
                    "logits_to_keep" in inspect.signature(self._model.forward).parameters
                )
                fewer = {"logits_to_keep": keep} if takes_logits_to_keep else {}
                mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in read])
                mask = mask.to(ids.device)
                logits = self._model(input_ids=ids, attention_mask=mask, **fewer).logits
            logprobs = logits[:, -keep:].float().log_softmax(dim=-1)
            return logprobs[tuple(torch.tensor(axis) for axis in where)].cpu().numpy()


USER_TEXT_MARK = "\ue000\ue001\ue000"
"""Stands for the user's text, to find out what a chat template puts around it."""


def find_user_tokens(tokenizer: Any, text: str, special: bool, layout: str) -> list[int]:
    """Return the positions of the user's tokens in a prompt.

    A token that also spells something beside the user's text is one of them.

    Args:
        tokenizer: the model's tokenizer.
        text: the prompt.
        special: whether special tokens are added to it.
        layout: the same prompt with :data:`USER_TEXT_MARK` in place of the user's text.

    Raises:
        BackendError: there is no such token, or the layout does not show where the text is.
    """
    # The layout with a mark and the real text must only differ at the mark.
    text, (before, mark, after) = clean(text), clean(layout).partition(USER_TEXT_MARK)
    begin, end = len(before), len(text) - len(after)
    if not mark or text[:begin] != before or text[end:] != after:
        raise BackendError("its chat template does not show which tokens are the user's")
    how = {"add_special_tokens": special, "return_offsets_mapping": True, "verbose": False}
    spans = enumerate(tokenizer(text, **how)["offset_mapping"])
    # Some tokenizers give a token of white space a span of no width at its end.
    positions = [i for i, (a, b) in spans if b > begin and (a < end or a == b == end)]
    if not positions:
        raise BackendError("the user's text has no token whose embedding can be moved")
    return positions


def draw_from_unit_ball(rng: np.random.Generator, n: int, size: int) -> NDArray[np.float64]:
    """Return n vectors, shape (n, size), drawn uniformly from the ball of radius 1."""
    directions = rng.standard_normal((n, size))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    # The radius is u ** (1 / size), since the volume grows with the power of the radius.
    return np.asarray(directions / lengths * rng.random((n, 1)) ** (1 / size))


def perturb_embeddings(vectors: Any, radius: float, rng: np.random.Generator) -> Any:
    """Return embeddings, a tensor (n, size), each moved by a random vector of its own.

    The vectors are drawn uniformly from a ball, whose radius is ``radius`` times the mean length of
    the embeddings.
    """
    # In single precision also for half-precision models: the radius may be small.
    wide = vectors.float()
    ball = wide.new_tensor(draw_from_unit_ball(rng, *vectors.shape))
    return (wide + radius * wide.norm(dim=-1).mean() * ball).to(vectors.dtype)
