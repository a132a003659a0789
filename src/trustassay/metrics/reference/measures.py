"""The parts of ``reference``, and the measures that compute them.

Common words, BLEU, ROUGE-L, METEOR and chrF need no model; BERTScore, BARTScore and GPTScore do.
The lexical ones have two recipes: ours, and that of Table 1 of the TrustScore paper (Zheng et al.
2024). Tokens are words after SQuAD's normalisation (Rajpurkar et al. 2016) unless said otherwise.
"""

import asyncio
import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from trustassay.core.capabilities import Models
from trustassay.core.prompts import Prompt, load_prompt
from trustassay.core.sample import Sample
from trustassay.errors import AssessmentError, UnknownNameError, did_you_mean, install_command
from trustassay.statistics.token_matching import MatchScores, greedy_match, harmonic_mean
from trustassay.text.words import normalise_squad

Family = Literal[
    "tokens", "bleu", "rouge_l", "meteor", "chrf", "bertscore", "bartscore", "gptscore"
]
"""A group of parts that the same code computes together."""
Form = Literal["ref", "src", "evid"]
FORMS: tuple[Form, ...] = ("ref", "src", "evid")
"""What an answer's likelihood is conditioned on: gold answers, the question, the passages."""


class ReferencePart(NamedTuple):
    """One number of an answer."""

    name: str
    """The name in options and results."""
    family: Family
    """The group that it is computed with."""
    explanation: str
    """One line for the report."""
    bounds: tuple[float, float] | None = (0.0, 1.0)
    """The least and the largest value; ``None`` for a mean log-probability, which is 0 or less."""
    form: Form | None = None
    """For a likelihood, what it is conditioned on."""

    @property
    def needs_gold(self) -> bool:
        """Whether a sample without gold answers cannot have it."""
        return self.form in (None, "ref")


def _build_likelihood_parts(family: Family, title: str) -> tuple[ReferencePart, ...]:
    """Return the parts that are mean log-probabilities of a language model."""
    after = f"{title}: log-probability of the answer's tokens after the"
    both = f"{title}: mean of both directions, answer after gold answer and back"
    recall = f"{title}: log-probability of the gold answer's tokens after the answer"
    return (
        ReferencePart(f"{family}_ref", family, both, None, "ref"),
        ReferencePart(f"{family}_ref_precision", family, f"{after} gold answer", None, "ref"),
        ReferencePart(f"{family}_ref_recall", family, recall, None, "ref"),
        ReferencePart(f"{family}_src", family, f"{after} question", None, "src"),
        ReferencePart(f"{family}_evid", family, f"{after} passages", None, "evid"),
    )


_ALL_PARTS = (
    ReferencePart("em", "tokens", "the answer is a gold answer, once normalised (SQuAD)"),
    ReferencePart("contains", "tokens", "the answer contains a gold answer as whole words"),
    ReferencePart("token_precision", "tokens",
        "share of the answer's words that are in a gold answer"),
    ReferencePart("token_recall", "tokens",
        "share of a gold answer's words that are in the answer"),
    ReferencePart("token_f1", "tokens", "F1 of the words that answer and gold answer share"),
    ReferencePart("novel_token_f1", "tokens",
        "token_f1 without the question's words in the answer"),
    ReferencePart("bleu_1", "bleu", "BLEU of single words"),
    ReferencePart("bleu_4", "bleu", "BLEU of up to four words in a row"),
    ReferencePart("rouge_l", "rouge_l", "ROUGE-L, F-measure of the longest common subsequence"),
    ReferencePart("rouge_l_precision", "rouge_l",
        "ROUGE-L precision: length of the subsequence relative to the answer"),
    ReferencePart("rouge_l_recall", "rouge_l",
        "ROUGE-L recall: length of the subsequence relative to a gold answer"),
    ReferencePart("meteor", "meteor", "METEOR: words, stems and synonyms, and their order"),
    ReferencePart("chrf", "chrf", "chrF: F-measure of up to six characters in a row"),
    ReferencePart("bertscore", "bertscore", "BERTScore F: tokens matched by their vectors"),
    ReferencePart("bertscore_precision", "bertscore",
        "BERTScore precision, over the answer's tokens", (-1.0, 1.0)),
    ReferencePart("bertscore_recall", "bertscore",
        "BERTScore recall, over a gold answer's tokens", (-1.0, 1.0)),
    *_build_likelihood_parts("bartscore", "BARTScore"),
    *_build_likelihood_parts("gptscore", "GPTScore"),
)  # fmt: skip
PARTS: Mapping[str, ReferencePart] = {part.name: part for part in _ALL_PARTS}
"""All parts, in the order in which they are shown."""

_MODEL_FAMILIES = frozenset({"bertscore", "bartscore", "gptscore"})
LEXICAL = tuple(part.name for part in PARTS.values() if part.family not in _MODEL_FAMILIES)
"""The parts that need no model."""


def select_parts(text: str) -> tuple[str, ...]:
    """Return the parts that a text names, in the order of :data:`PARTS`.

    Names are joined by ``+``: a part, a family (``rouge_l`` is all three, ``bartscore`` all forms,
    ``bartscore_ref`` the three of that form), or ``lexical``. Raises UnknownNameError.
    """
    parts_by_name: dict[str, set[str]] = {
        "lexical": set(LEXICAL),
        **{name: {name} for name in PARTS},
    }
    for part in PARTS.values():
        groups = [part.family] if part.form is None else [part.family, f"{part.family}_{part.form}"]
        for group in groups:
            # A family may have the name of one of its parts ("rouge_l"): the set then holds all of
            # them.
            parts_by_name.setdefault(group, set()).add(part.name)
    chosen: set[str] = set()
    for name in filter(None, text.split("+")):
        if name not in parts_by_name:
            raise UnknownNameError(did_you_mean("part of reference", name, parts_by_name))
        chosen |= parts_by_name[name]
    return tuple(name for name in PARTS if name in chosen)


Aggregate = Literal["best", "first", "mean"]


def token_overlap(answer: Sequence[str], gold: Sequence[str]) -> MatchScores:
    """Return the overlap of two lists of tokens, counted with repetition (SQuAD).

    All three are 1 where both lists are empty, and 0 where one is.
    """
    if not answer or not gold:
        same = float(len(answer) == len(gold))
        return MatchScores(same, same, same)
    common = (Counter(answer) & Counter(gold)).total()
    precision, recall = common / len(answer), common / len(gold)
    return MatchScores(precision, recall, harmonic_mean(precision, recall))


def contains(answer: Sequence[str], gold: Sequence[str]) -> bool:
    """Whether the gold tokens occur in the answer in a row; an empty list does not occur."""
    n = len(gold)
    return n > 0 and any(answer[i : i + n] == gold for i in range(len(answer) - n + 1))


def novel(answer: Sequence[str], question: Collection[str]) -> Sequence[str]:
    """Return the answer's tokens that are not in the question; all of them if every one is."""
    return [token for token in answer if token not in question] or answer


def mean_log_probability(tokens: Sequence[float]) -> float:
    """Return the mean of tokens' natural log-probabilities, log p(y | x) / |y|.

    This is BARTScore (Yuan et al. 2021, eq. 2) and GPTScore (Fu et al. 2023, eq. 1) with the
    same weight 1 / |y| for each token. Raises ValueError without a token.
    """
    if not tokens:
        raise ValueError("a text without tokens has no mean log-probability")
    return math.fsum(tokens) / len(tokens)


def aggregate_values(values: Sequence[float], how: Aggregate) -> float:
    """Combine the values against each gold answer, 1 or more, into one."""
    if how == "first":
        return values[0]
    return max(values) if how == "best" else math.fsum(values) / len(values)


DEBIAN_WORDNET = Path("/usr/share/wordnet")
"""Where Debian's and Ubuntu's wordnet-base and wordnet-sense-index put WordNet 3.0."""
WORDNET_ADVICE = (
    "WordNet is not installed: python -m nltk.downloader wordnet, or on Debian and Ubuntu "
    "apt install --no-install-recommends wordnet-base wordnet-sense-index"
)
# Files by subject ("noun.animal"), which WordNet 3.0 has.
_LEXICOGRAPHER_FILES = 45


def wordnet_folder() -> Any | None:
    """Return NLTK's pointer to the folder or archive of WordNet, ``None`` where there is none."""
    import nltk

    for name in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):
        try:
            return nltk.data.find(name)
        except LookupError:
            continue
    # Both packages are needed: one has the data, the other the index of senses.
    if (
        not (DEBIAN_WORDNET / "data.noun").is_file()
        or not (DEBIAN_WORDNET / "index.sense").is_file()
    ):
        return None
    if str(DEBIAN_WORDNET) not in nltk.data.path:  # NLTK reads no folder that is not named there
        nltk.data.path.append(str(DEBIAN_WORDNET))
    return nltk.data.FileSystemPathPointer(str(DEBIAN_WORDNET))


@cache
def wordnet() -> Any:
    """Return NLTK's reader of WordNet; raises LookupError if it is not installed."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class WordnetReader(WordNetCorpusReader):  # type: ignore[misc]
        """Reads synonyms only; makes up the file of lexicographer names, absent on Debian."""

        def open(self, file: str) -> Any:
            if file != "lexnames":
                return super().open(file)
            rows = (f"{number:02d}\tfile{number}\t1\n" for number in range(_LEXICOGRAPHER_FILES))
            return io.StringIO("".join(rows))

        def map_wn(self, version: str = "wordnet") -> None:
            """Map to no other version: that serves other languages."""

    folder = wordnet_folder()
    if folder is None:
        raise LookupError(WORDNET_ADVICE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # warns that other languages are not installed
        return WordnetReader(folder, None)


Recipe = Literal["default", "trustscore-paper"]

_MODULES: Mapping[Family, str] = {
    "bleu": "sacrebleu",
    "rouge_l": "rouge_score",
    "meteor": "nltk",
    "chrf": "sacrebleu",
}
"""The module that each family needs."""


class GoldComparison(NamedTuple):
    """An answer with its gold answers, and the way of comparing them."""

    answer: str
    """The answer to assess."""
    golds: Sequence[str]
    """The gold answers, with all aliases."""
    question: str
    """The question."""
    aggregate: Aggregate
    """How the values against the gold answers become one."""
    recipe: Recipe
    """Whose implementation of the measures to follow."""

    def how(self, name: str) -> Aggregate:
        """Return the aggregate of a part; the paper's recipe has its own for some parts."""
        if self.recipe == "trustscore-paper":
            if name == "em":
                return "best"
            if PARTS[name].family in ("rouge_l", "meteor"):
                return "first"
        return self.aggregate


def explain_missing(part: str, recipe: Recipe) -> str | None:
    """Return which requirement of a part is not installed, and how to install it; else ``None``."""
    family = PARTS[part].family
    paper_bleu = family == "bleu" and recipe == "trustscore-paper"
    # The paper computed BLEU with NLTK, we do with sacrebleu.
    needed = "nltk" if paper_bleu else _MODULES.get(family)
    if needed and find_spec(needed) is None:
        return f"{part} needs {needed.replace('_', '-')}: {install_command('reference')}"
    if family == "meteor" and wordnet_folder() is None:
        return f"{part}: {WORDNET_ADVICE}"
    return None


def lexical_parts(names: Sequence[str], comparison: GoldComparison) -> dict[str, float]:
    """Return the lexical ones among ``names`` for an answer and its gold answers.

    With ``best``, BLEU takes all gold answers as its references at once, as its authors define it.
    """
    columns, result = per_gold(names, comparison), {}
    for name in names:
        if name in columns:
            result[name] = aggregate_values(columns[name], comparison.how(name))
        elif PARTS[name].family == "bleu":
            order = int(name[-1])
            if comparison.recipe == "trustscore-paper":
                result[name] = _compute_paper_bleu(comparison.answer, comparison.golds, order)
            elif comparison.aggregate == "best":
                result[name] = _compute_bleu(comparison.answer, comparison.golds, order)
            else:
                values = [
                    _compute_bleu(comparison.answer, [gold], order) for gold in comparison.golds
                ]
                result[name] = aggregate_values(values, comparison.aggregate)
    return result


def per_gold(names: Sequence[str], comparison: GoldComparison) -> Mapping[str, Sequence[float]]:
    """Return the values of each lexical part against the gold answers, or against the first where
    no other counts. BLEU has none, as it compares with all at once.
    """
    columns: dict[str, list[float]] = {}
    for family in dict.fromkeys(PARTS[name].family for name in names):
        if (measure := _MEASURES.get(family)) is None:
            continue
        names_of_family = [name for name in names if PARTS[name].family == family]
        # Do not compute what the aggregate ignores.
        only_first = all(comparison.how(name) == "first" for name in names_of_family)
        golds_compared = comparison.golds[:1] if only_first else comparison.golds
        rows = [
            measure(comparison.answer, gold, comparison.question, comparison.recipe)
            for gold in golds_compared
        ]
        columns |= {name: [row[name] for row in rows] for name in names_of_family}
    return columns


@lru_cache(maxsize=4096)
def _split_words(text: str) -> tuple[str, ...]:
    """Return the words after SQuAD's normalisation, or before it where it leaves none ("The")."""
    return tuple(normalise_squad(text).split() or text.lower().split())


def _measure_tokens(answer: str, gold: str, question: str, _: Recipe) -> Mapping[str, float]:
    ours, theirs = _split_words(answer), _split_words(gold)
    overlap = token_overlap(ours, theirs)
    new = novel(ours, frozenset(_split_words(question)))
    return {
        "em": float(ours == theirs),
        "contains": float(contains(ours, theirs)),
        "token_precision": overlap.precision,
        "token_recall": overlap.recall,
        "token_f1": overlap.f1,
        "novel_token_f1": token_overlap(new, theirs).f1,
    }


def _measure_rouge_l(answer: str, gold: str, _: str, __: Recipe) -> Mapping[str, float]:
    result = _build_scorer("rouge_l").score(gold, answer)["rougeL"]
    return {
        "rouge_l": float(result.fmeasure),
        "rouge_l_precision": float(result.precision),
        "rouge_l_recall": float(result.recall),
    }


def _measure_meteor(answer: str, gold: str, _: str, recipe: Recipe) -> Mapping[str, float]:
    from nltk.translate.meteor_score import single_meteor_score

    split = _build_word_tokenizer(recipe).tokenize
    return {"meteor": float(single_meteor_score(split(gold), split(answer), wordnet=wordnet()))}


def _measure_chrf(answer: str, gold: str, _: str, __: Recipe) -> Mapping[str, float]:
    return {"chrf": _to_share(_build_scorer("chrf").sentence_score(answer, [gold]).score)}


_MEASURES: Mapping[Family, Callable[[str, str, str, Recipe], Mapping[str, float]]] = {
    "tokens": _measure_tokens,
    "rouge_l": _measure_rouge_l,
    "meteor": _measure_meteor,
    "chrf": _measure_chrf,
}


def _compute_bleu(answer: str, golds: Sequence[str], order: int) -> float:
    return _to_share(_build_scorer("bleu", order).sentence_score(answer, list(golds)).score)


def _to_share(percentage: float) -> float:
    return min(float(percentage) / 100, 1.0)  # rounding puts equal texts a little above 100


def _compute_paper_bleu(answer: str, golds: Sequence[str], order: int) -> float:
    """Return NLTK's BLEU of text split at white space; BLEU-4 with smoothing method 4."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    smoothing = SmoothingFunction().method4 if order == 4 else None
    weights = (0.25,) * 4 if order == 4 else (1.0, 0.0, 0.0, 0.0)
    references = [gold.split() for gold in golds]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # warns that BLEU is 0 without a common word
        return float(sentence_bleu(references, answer.split(), weights, smoothing))


@cache
def _build_scorer(family: Family, order: int = 0) -> Any:
    if family == "rouge_l":
        from rouge_score.rouge_scorer import RougeScorer

        return RougeScorer(["rougeL"], use_stemmer=False)
    from sacrebleu.metrics import BLEU, CHRF

    return CHRF() if family == "chrf" else BLEU(effective_order=True, max_ngram_order=order)


@cache
def _build_word_tokenizer(recipe: Recipe) -> Any:
    """Return NLTK's word tokenizer; for the paper's recipe as it was in NLTK 3.8.1.

    There dashes did not split words, and an opening quote stayed with a word of two letters or
    more.
    """
    from nltk.tokenize import NLTKWordTokenizer

    if recipe == "default":
        return NLTKWordTokenizer()
    # An opening quote before a single letter, as in "'a", but not in "'re" or "'s".
    start = re.compile(r"(?i)'(?!re|ve|ll|[mtsdn])(?=\w\b)")

    class EarlierTokenizer(NLTKWordTokenizer):  # type: ignore[misc]
        PUNCTUATION: ClassVar[Any] = [
            # \u2013 is the en dash: the rule that splits at dashes is the later addition.
            rule
            for rule in NLTKWordTokenizer.PUNCTUATION
            if not rule[0].search("\u2013")
        ]
        STARTING_QUOTES: ClassVar[Any] = [*NLTKWordTokenizer.STARTING_QUOTES[:-1], (start, "' ")]

    return EarlierTokenizer()


JUDGE = "judge"
"""The role of the models that give the likelihoods of BARTScore and GPTScore."""


async def bertscore(models: Models, answer: str, golds: Sequence[str]) -> dict[str, list[float]]:
    """Return BERTScore's parts of an answer against each gold answer.

    Texts are sent with a leading space: byte-level tokenizers have learnt words that way, and it
    changes nothing for others. A blank answer has 0.
    """
    if not answer.strip():
        return {name: [0.0] * len(golds) for name in _BERTSCORE_PARTS}
    texts = [answer, *golds]
    ours, *theirs = await asyncio.gather(*(models.token_vectors(f" {t.strip()}") for t in texts))
    result = [
        greedy_match(ours.vectors, vectors.vectors, ours.special, vectors.special)
        for vectors in theirs
    ]
    columns = zip(*result, strict=True)
    return {name: list(column) for name, column in zip(_BERTSCORE_PARTS, columns, strict=True)}


_BERTSCORE_PARTS = ("bertscore_precision", "bertscore_recall", "bertscore")


@dataclass(frozen=True)
class Likelihoods:
    """BARTScore or GPTScore of one answer."""

    family: str
    """``bartscore`` (the prompt is the source text) or ``gptscore`` (with an instruction)."""
    models: Models
    sample: Sample
    answer: str
    """The answer to assess."""
    passages: int
    """The most documents that a prompt shows."""
    prompts: str | None = None
    """A folder of the user's own prompts for GPTScore."""

    async def parts(self, form: Form, golds: Sequence[str]) -> dict[str, list[float]]:
        """Return the parts of a form: against each gold answer for ``ref``, else one value.

        Raises AssessmentError if the answer is blank, there is nothing to condition on, or it is
        unclear which of the run's models to ask.
        """
        if not self.answer.strip():
            raise AssessmentError("the response is blank, so it has no likelihood", "empty")
        if form != "ref":
            value = await self._compute_likelihood(self._build_prompt(form), self.answer)
            return {f"{self.family}_{form}": [value]}
        # Precision: the answer given the gold answer. Recall: the gold answer given the answer.
        precision_calls = [
            self._compute_likelihood(self._build_prompt(form, gold), self.answer) for gold in golds
        ]
        recall_prompt = self._build_prompt(form, self.answer)
        values = await asyncio.gather(
            *precision_calls, *(self._compute_likelihood(recall_prompt, gold) for gold in golds)
        )
        precisions, recalls = values[: len(golds)], values[len(golds) :]
        return {
            f"{self.family}_ref": [(p + r) / 2 for p, r in zip(precisions, recalls, strict=True)],
            f"{self.family}_ref_precision": precisions,
            f"{self.family}_ref_recall": recalls,
        }

    async def _compute_likelihood(self, prompt: str, text: str) -> float:
        result = await self.models.likelihood(
            prompt, text.strip(), role=JUDGE, name=self._find_judge()
        )
        try:
            return mean_log_probability(result.tokens)
        except ValueError:
            raise AssessmentError(f"{self.family}: the model finds no token in {text!r}") from None

    def _find_judge(self) -> str:
        """Return the name of the judge for this family: its own, or the only one of the run."""
        names = self.models.names(JUDGE)
        if self.family in names:
            return self.family
        if len(names) == 1:
            return names[0]
        raise AssessmentError(
            f"{self.family}: none of the judges ({', '.join(names)}) has this name; give "
            f"--judge {self.family}=hf:MODEL"
        )

    def _build_prompt(self, form: Form, text: str = "") -> str:
        """Return what the likelihood is conditioned on."""
        passages = [
            ": ".join(filter(None, (document.title.strip(), document.text.strip())))
            for document in (self.sample.documents or ())[: self.passages]
        ]
        if form == "evid" and not passages:
            raise AssessmentError(f"{self.family}_evid: the sample has no passage")
        question = self.sample.question.strip()
        if self.family == "bartscore":
            return {"ref": text.strip(), "src": question, "evid": "\n".join(passages)}[form]
        prompt = prompt_of(form, self.prompts)
        # The answer begins on a line of its own, so that no token spans its beginning.
        return prompt.fill(text=text.strip(), question=question, passages=passages) + "\n"


@cache
def prompt_of(form: Form, folder: str | None) -> Prompt:
    """Return GPTScore's prompt for a form, from a folder of the user's or as shipped."""
    name = f"gptscore-{form}"
    user_file = None if folder is None else Path(folder) / f"{name}.jinja"
    return load_prompt(__package__, name, user_file, "text question passages")
