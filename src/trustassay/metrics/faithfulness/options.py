"""The options of ``faithfulness``, ``rag`` and ``tool_use``, and the objects built from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from trustassay.core.metric import Context, Metric
from trustassay.core.prompts import prompt_property
from trustassay.core.sample import Document
from trustassay.errors import UsageError, check_choices, check_least
from trustassay.judging.claims import Claim, build_claims, parse_claim_list
from trustassay.judging.refusal import Detector, find_refusal, load_detector
from trustassay.judging.verdict import ClaimVerifier, VerdictOptions, find_inner_names
from trustassay.text.limits import TextWork
from trustassay.text.sentences import Splitter, load_splitter

ClaimsFrom = Literal["sentences", "model"]


@dataclass(frozen=True)
class FaithfulnessOptions(Metric):
    """The options; see :class:`~trustassay.metrics.faithfulness.metric.Faithfulness`."""

    claims: ClaimsFrom = "sentences"
    passages: int = 3
    threshold: float = 0.5
    contradiction: float = 0.5
    near: float = 0.5
    joined: bool = True
    splitter: str = "sentencex"
    refusal: str = "phrases"
    prompt: str | None = None
    max_tokens: int = 1024

    def __post_init__(self) -> None:
        check_least(self, passages=1, max_tokens=1)
        check_choices(self, claims=ClaimsFrom)
        for option in ("threshold", "contradiction"):
            if not 0 < getattr(self, option) <= 1:
                raise UsageError(f"{option}: expected a number above 0 and up to 1")
        if not 0 <= self.near <= 1:
            raise UsageError("near: expected a number from 0 to 1")
        # Build these now: an unknown name or a faulty file must fail before a run starts.
        _ = self.split, self.refuses, self.claims_prompt

    @cached_property
    def split(self) -> Splitter:
        """The splitter of sentences."""
        return load_splitter(self.splitter)

    @cached_property
    def refuses(self) -> Detector:
        """The detector of refusals."""
        return load_detector(self.refusal)

    claims_prompt = prompt_property("trustassay.metrics.faithfulness", "claims")
    """The template by which a model is asked for an answer's claims."""

    async def claims_of(self, context: Context, text: str) -> Sequence[Claim]:
        """Return the claims of an answer to the sample's question: its sentences by rules, or the
        list that the judge writes.
        """
        sample = context.sample
        if self.claims == "sentences":
            return await TextWork.for_sample(sample)(self._split_by_rules, context, text)
        prompt = self.claims_prompt
        reply = await context.models.chat(
            prompt.fill(question=sample.question, answer=text),
            role="judge",
            max_tokens=self.max_tokens,
            prompt=prompt.name,
        )
        return parse_claim_list(reply.text, text)

    def _split_by_rules(self, context: Context, text: str) -> list[Claim]:
        sample = context.sample
        # Capitalised words inside the passages' sentences are names; a heading or list lead that
        # holds one belongs to the claims below it.
        names = {
            name for document in sample.documents or () for name in find_inner_names(document.text)
        }
        return build_claims(sample.question, text, self.split, names=names)

    def refusal_in(self, response: str, claims: Sequence[Claim]) -> str | None:
        """Return the words by which a response declines as a whole; ``None`` if it answers."""
        # The default detector works on claims, which tell a refusal of the whole question from one
        # of a detail. Other detectors see the text alone.
        rules = self.refusal == "phrases" and self.claims == "sentences"
        return find_refusal(claims) if rules else self.refuses(response)

    def verifier(self, context: Context, documents: Sequence[Document]) -> ClaimVerifier:
        """Build the verifier that judges claims by these passages.

        Raises:
            AssessmentError: the passages are too long to assess.
        """
        options = VerdictOptions(
            self.passages, self.threshold, self.contradiction, self.near, self.joined
        )
        question = context.sample.question
        result = ClaimVerifier(
            options, context.models, question, documents, self.split, context.second
        )
        context.limits.check_count("sentences of its passages", result.sentence_count)
        return result
