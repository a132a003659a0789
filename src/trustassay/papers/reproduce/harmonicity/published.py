"""What Kersting et al. 2024 print: Tables 8 to 10, and examples that their content identifies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trustassay.core.sample import Sample

PAPER_EMBEDDER = "openai:text-embedding-ada-002"


class PrintedModelMeans(NamedTuple):
    """A row of Tables 8 to 10: means with their standard errors, as in ``0.063(4)``."""

    model: str
    gamma: str
    """Of all answers."""
    low_gamma: str
    """Of those with gamma below .05."""
    rating: str
    low_rating: str

    @property
    def means(self) -> tuple[float, float, float, float]:
        """The four means without their errors."""
        gamma, low_gamma, rating, low_rating = (float(text.partition("(")[0]) for text in self[1:])
        return gamma, low_gamma, rating, low_rating


PRINTED_MEANS: Mapping[str, tuple[str, Sequence[PrintedModelMeans]]] = {
    domain: (table, [PrintedModelMeans(*line.split()) for line in lines.strip().splitlines()])
    for domain, table, lines in (
        (
            "WebQA",
            "Table 8",
            """
            GPT-4o 0.063(4) 0.022(2) 4.67(6) 4.63(11)
            Smaug-72B 0.073(3) 0.018(1) 4.34(7) 4.32(10)
            Mixtral-8x7B 0.098(4) 0.031(2) 4.10(8) 4.00(18)
            Claude-2.1 0.100(3) 0.028(3) 4.12(9) 4.58(12)
            Claude-3.0 0.108(6) 0.028(4) 4.05(8) 4.36(13)
            Mistral-7B 0.109(10) 0.028(2) 4.08(12) 4.13(16)
            GPT-4 0.127(8) 0.023(1) 4.41(8) 4.58(11)
            Llama-7B 0.142(14) 0.026(3) 3.41(12) 3.80(27)
            ChatGPT 0.150(66) 0.013(1) 4.31(9) 4.20(13)
            MPT-7B 0.163(7) 0.024(3) 2.99(14) 3.81(40)
            """,
        ),
        (
            "ProgrammingQA",
            "Table 9",
            """
            Claude-3.0 0.078(6) 0.022(2) 3.97(13) 4.28(17)
            GPT-4o 0.094(4) 0.043(1) 4.36(11) 4.13(32)
            Mistral-7B 0.094(7) 0.023(3) 3.19(17) 3.24(32)
            GPT-4 0.104(6) 0.032(1) 4.59(6) 4.83(10)
            ChatGPT 0.109(5) 0.032(1) 4.38(7) 4.63(10)
            Claude-2.1 0.113(4) 0.031(2) 4.45(7) 4.77(13)
            Mixtral-8x7B 0.115(4) 0.028(2) 4.23(8) 3.90(37)
            MPT-7B 0.132(11) 0.028(2) 2.61(21) 3.03(34)
            Llama-7B 0.154(9) 0.018(5) 3.41(16) 3.69(43)
            Smaug-72B 0.286(29) 0.014(3) 4.12(8) 4.71(12)
            """,
        ),
        (
            "TruthfulQA",
            "Table 10",
            """
            GPT-4o 0.095(6) 0.027(3) 4.16(8) 4.29(25)
            ChatGPT 0.099(9) 0.017(2) 3.72(10) 3.91(18)
            Claude-3.0 0.104(6) 0.028(6) 3.92(12) 4.30(38)
            Smaug-72B 0.112(10) 0.025(2) 4.17(6) 4.58(11)
            Mixtral-8x7B 0.117(4) 0.019(2) 4.03(9) 4.28(18)
            Llama-7B 0.118(9) 0.013(3) 3.19(17) 3.10(36)
            GPT-4 0.127(6) 0.024(1) 4.14(9) 4.36(13)
            Mistral-7B 0.130(11) 0.027(2) 4.03(13) 4.20(20)
            MPT-7B 0.144(12) 0.001(1) 3.38(17) 3.72(33)
            Claude-2.1 0.154(30) 0.035(3) 3.86(9) 4.41(24)
            """,
        ),
    )
}
"""By domain, the number of its table and the rows, in the paper's order."""


class PrintedExample(NamedTuple):
    """An example whose prompt and answers the paper prints in full."""

    table: str
    gamma: str
    any_embedder: bool
    """Whether gamma does not depend on the embedder, since all answers are the same."""


PRINTED_EXAMPLES: Mapping[str, PrintedExample] = {
    "892179b63781acd42b1223a67560e0517621f91d908ed7cea727124c5cef5616": PrintedExample(
        "Table 1", "0", any_embedder=True
    ),
    "2a4d9e8a69fd02280757698b5f3d30ea31dd8b988a75a001a1ad66ca9ca7dcca": PrintedExample(
        "Table 2", "0.044", any_embedder=False
    ),
}
"""By :func:`digest_answers`: Tables 3 and 4 shorten their answers, so nothing identifies them."""
TRUTHFULQA_DIGEST = "600fbaf1f24147c366d98c94910624c31f0a16cf9c04a224457f400828557b9e"
"""Of the 817 questions of TruthfulQA, from which the paper draws (:func:`digest_questions`)."""
PRINTED_CONE = "below 11"
PRINTED_COSINE = "0.9824(5)"
"""Of the authors' program, over questions of TruthfulQA."""


def digest_answers(question: str, original: str, answers: Sequence[str]) -> str:
    """Return the SHA-256 of a prompt and its answers, in their order."""
    texts = [text.strip() for text in (question, original, *answers)]
    return hashlib.sha256(json.dumps(texts, ensure_ascii=False).encode()).hexdigest()


def digest_questions(samples: Sequence[Sample]) -> str:
    """Return the SHA-256 of the different questions, whatever their order."""
    questions = sorted({sample.question.strip() for sample in samples})
    return hashlib.sha256("\n".join(questions).encode("utf-8", "surrogatepass")).hexdigest()


def find_printed_gamma(
    question: str, original: str, answers: Sequence[str], embedder: str
) -> PrintedExample | None:
    """Return the paper's example with exactly these texts, if gamma can be compared."""
    example = PRINTED_EXAMPLES.get(digest_answers(question, original, answers))
    is_comparable = example is not None and (example.any_embedder or embedder == PAPER_EMBEDDER)
    return example if is_comparable else None
