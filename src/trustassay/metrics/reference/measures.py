"""The parts of the metric, and the measures that they are.

Words in common, BLEU, ROUGE-L, METEOR, chrF; BERTScore, BARTScore, GPTScore. Two recipes of the
first: ours, and the one by which the TrustScore paper's Table 1 was made (Zheng et al. 2024). The
last three ask models. Tokens are words after SQuAD's normalisation (Rajpurkar et al. 2016) unless
said otherwise.
"""

import asyncio
import csv
import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, cast

from trustassay.capabilities import Models
from trustassay.errors import AssessmentError, UnknownNameError, did_you_mean, install
from trustassay.prompts import Prompt, shipped
from trustassay.sample import Sample
from trustassay.text.words import normalise_squad
from trustassay.token_matching import Overlap, greedy_match, harmonic_mean

Family = Literal[
    "tokens", "bleu", "rouge_l", "meteor", "chrf", "bertscore", "bartscore", "gptscore"
]
"""Parts that are computed together, by the same code."""
Form = Literal["ref", "src", "evid"]
FORMS: tuple[Form, ...] = ("ref", "src", "evid")
"""What an answer's likelihood is conditioned on: gold answers, the question, the passages."""


class Part(NamedTuple):
    """One number of an answer.

    bounds: its least and largest value; ``None`` for a mean log-probability, which is 0 or less.
    form: of a likelihood, what it is conditioned on.
    """

    name: str
    explanation: str
    family: Family
    bounds: tuple[float, float] | None = (0.0, 1.0)
    form: Form | None = None

    @property
    def needs_gold(self) -> bool:
        """Whether a sample without gold answers cannot have it."""
        return self.form in (None, "ref")


def _read() -> Iterator[Part]:
    table = files(__package__).joinpath("parts.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(io.StringIO(table)):
        bounds = (float(row["least"]), float(row["largest"])) if row["least"] else None
        family, form = cast("Family", row["family"]), cast("Form | None", row["form"] or None)
        yield Part(row["name"], row["explanation"], family, bounds, form)


PARTS: Mapping[str, Part] = {part.name: part for part in _read()}
"""All parts, in the order in which they are shown."""

_BY_MODELS = frozenset({"bertscore", "bartscore", "gptscore"})
LEXICAL = tuple(part.name for part in PARTS.values() if part.family not in _BY_MODELS)
"""The parts that ask no model."""


def selected(text: str) -> tuple[str, ...]:
    """Return the parts that a text names, in the order of :data:`PARTS`.

    Names are joined by ``+``: of a part, of a family (``rouge_l`` is all three, ``bartscore`` all
    forms, ``bartscore_ref`` the three of that form), or ``lexical``. A name that nothing has raises
    UnknownNameError.
    """
    known: dict[str, set[str]] = {"lexical": set(LEXICAL), **{name: {name} for name in PARTS}}
    for part in PARTS.values():
        groups = [part.family] if part.form is None else [part.family, f"{part.family}_{part.form}"]
        for group in groups:
            known.setdefault(group, set()).add(part.name)
    chosen: set[str] = set()
    for name in filter(None, text.split("+")):
        if name not in known:
            raise UnknownNameError(did_you_mean("part of reference", name, known))
        chosen |= known[name]
    return tuple(name for name in PARTS if name in chosen)


Aggregate = Literal["best", "first", "mean"]


def token_overlap(answer: Sequence[str], gold: Sequence[str]) -> Overlap:
    """Return the overlap of two lists of tokens, each counted as often as both have it (SQuAD).

    All three are 1 where both lists are empty, and 0 where one is.
    """
    if not answer or not gold:
        same = float(len(answer) == len(gold))
        return Overlap(same, same, same)
    common = (Counter(answer) & Counter(gold)).total()
    precision, recall = common / len(answer), common / len(gold)
    return Overlap(precision, recall, harmonic_mean(precision, recall))


def contains(answer: Sequence[str], gold: Sequence[str]) -> bool:
    """Whether the gold tokens stand in the answer's, in a row; no tokens stand nowhere."""
    n = len(gold)
    return n > 0 and any(answer[i : i + n] == gold for i in range(len(answer) - n + 1))


def novel(answer: Sequence[str], question: Collection[str]) -> Sequence[str]:
    """Return the answer's tokens that the question lacks; all of them where none is left."""
    return [token for token in answer if token not in question] or answer


def mean_log_probability(tokens: Sequence[float]) -> float:
    """Return the mean of tokens' natural log-probabilities, log p(y | x) / |y|.

    This is BARTScore (Yuan et al. 2021, eq. 2) and GPTScore (Fu et al. 2023, eq. 1) with the same
    weight 1 / |y| for each token. Without a token it raises ValueError.
    """
    if not tokens:
        raise ValueError("a text without tokens has no mean log-probability")
    return math.fsum(tokens) / len(tokens)


def aggregated(values: Sequence[float], how: Aggregate) -> float:
    """Return one number from those of the gold answers, of which there is at least one."""
    if how == "first":
        return values[0]
    return max(values) if how == "best" else math.fsum(values) / len(values)


DEBIAN = Path("/usr/share/wordnet")
"""Where Debian's and Ubuntu's wordnet-base and wordnet-sense-index put WordNet 3.0."""
ADVICE = (
    "WordNet is not installed: python -m nltk.downloader wordnet, or on Debian and Ubuntu "
    "apt install --no-install-recommends wordnet-base wordnet-sense-index"
)
_LEXICOGRAPHER_FILES = 45


def wordnet_folder() -> Any | None:
    """Return NLTK's pointer to the folder or archive of WordNet, ``None`` where there is none."""
    import nltk

    for name in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):
        try:
            return nltk.data.find(name)
        except LookupError:
            continue
    if not (DEBIAN / "data.noun").is_file() or not (DEBIAN / "index.sense").is_file():
        return None
    if str(DEBIAN) not in nltk.data.path:  # NLTK reads no folder that is not named there
        nltk.data.path.append(str(DEBIAN))
    return nltk.data.FileSystemPathPointer(str(DEBIAN))


@cache
def wordnet() -> Any:
    """Return NLTK's reader of WordNet; raises LookupError if it is not installed."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):  # type: ignore[misc]
        """Looks up synonyms alone: reads no names of lexicographer files, which Debian lacks."""

        def open(self, file: str) -> Any:
            if file != "lexnames":
                return super().open(file)
            rows = (f"{number:02d}\tfile{number}\t1\n" for number in range(_LEXICOGRAPHER_FILES))
            return io.StringIO("".join(rows))

        def map_wn(self, version: str = "wordnet") -> None:
            """Map to no other version: that serves other languages."""

    folder = wordnet_folder()
    if folder is None:
        raise LookupError(ADVICE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that other languages are not there
        return Reader(folder, None)


Recipe = Literal["default", "trustscore-paper"]

_MODULES: Mapping[Family, str] = {
    "bleu": "sacrebleu",
    "rouge_l": "rouge_score",
    "meteor": "nltk",
    "chrf": "sacrebleu",
}
"""By family the module that it needs."""


class Compared(NamedTuple):
    """An answer with the gold answers, and how it is compared with them."""

    answer: str
    golds: Sequence[str]
    question: str
    aggregate: Aggregate
    recipe: Recipe

    def how(self, name: str) -> Aggregate:
        """Return the aggregate of a part; the paper's recipe has its own for those it knows."""
        if self.recipe == "trustscore-paper":
            if name == "em":
                return "best"
            if PARTS[name].family in ("rouge_l", "meteor"):
                return "first"
        return self.aggregate


def missing(part: str, recipe: Recipe) -> str | None:
    """Return what a part needs that is not installed, and how to get it."""
    family = PARTS[part].family
    paper_bleu = family == "bleu" and recipe == "trustscore-paper"
    needed = "nltk" if paper_bleu else _MODULES.get(family)
    if needed and find_spec(needed) is None:
        return f"{part} needs {needed.replace('_', '-')}: {install('reference')}"
    if family == "meteor" and wordnet_folder() is None:
        return f"{part}: {ADVICE}"
    return None


def lexical_parts(names: Sequence[str], given: Compared) -> dict[str, float]:
    """Return the lexical ones among ``names`` for an answer and its gold answers.

    BLEU by ``best`` takes all gold answers as its references at once, as it defines.
    """
    columns, result = per_gold(names, given), {}
    for name in names:
        if name in columns:
            result[name] = aggregated(columns[name], given.how(name))
        elif PARTS[name].family == "bleu":
            order = int(name[-1])
            if given.recipe == "trustscore-paper":
                result[name] = _paper_bleu(given.answer, given.golds, order)
            elif given.aggregate == "best":
                result[name] = _bleu(given.answer, given.golds, order)
            else:
                values = [_bleu(given.answer, [gold], order) for gold in given.golds]
                result[name] = aggregated(values, given.aggregate)
    return result


def per_gold(names: Sequence[str], given: Compared) -> Mapping[str, Sequence[float]]:
    """Return the value of each lexical part against each gold answer, or the first alone where no
    other counts; BLEU has none.
    """
    columns: dict[str, list[float]] = {}
    for family in dict.fromkeys(PARTS[name].family for name in names):
        if (measure := _MEASURES.get(family)) is None:
            continue
        own = [name for name in names if PARTS[name].family == family]
        alone = all(given.how(name) == "first" for name in own)
        counted = given.golds[:1] if alone else given.golds
        rows = [measure(given.answer, gold, given.question, given.recipe) for gold in counted]
        columns |= {name: [row[name] for row in rows] for name in own}
    return columns


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    """Return the words that SQuAD's normalisation leaves; where it leaves none, those there are."""
    return tuple(normalise_squad(text).split() or text.lower().split())


def _tokens(answer: str, gold: str, question: str, _: Recipe) -> Mapping[str, float]:
    ours, theirs = _words(answer), _words(gold)
    overlap = token_overlap(ours, theirs)
    new = novel(ours, frozenset(_words(question)))
    return {
        "em": float(ours == theirs),
        "contains": float(contains(ours, theirs)),
        "token_precision": overlap.precision,
        "token_recall": overlap.recall,
        "token_f1": overlap.f1,
        "novel_token_f1": token_overlap(new, theirs).f1,
    }


def _rouge_l(answer: str, gold: str, _: str, __: Recipe) -> Mapping[str, float]:
    result = _scorer("rouge_l").score(gold, answer)["rougeL"]
    return {
        "rouge_l": float(result.fmeasure),
        "rouge_l_precision": float(result.precision),
        "rouge_l_recall": float(result.recall),
    }


def _meteor(answer: str, gold: str, _: str, recipe: Recipe) -> Mapping[str, float]:
    from nltk.translate.meteor_score import single_meteor_score

    split = _word_tokenizer(recipe).tokenize
    return {"meteor": float(single_meteor_score(split(gold), split(answer), wordnet=wordnet()))}


def _chrf(answer: str, gold: str, _: str, __: Recipe) -> Mapping[str, float]:
    return {"chrf": _share(_scorer("chrf").sentence_score(answer, [gold]).score)}


_MEASURES: Mapping[Family, Callable[[str, str, str, Recipe], Mapping[str, float]]] = {
    "tokens": _tokens,
    "rouge_l": _rouge_l,
    "meteor": _meteor,
    "chrf": _chrf,
}


def _bleu(answer: str, golds: Sequence[str], order: int) -> float:
    return _share(_scorer("bleu", order).sentence_score(answer, list(golds)).score)


def _share(percentage: float) -> float:
    return min(float(percentage) / 100, 1.0)  # rounding puts the same text a little above 100


def _paper_bleu(answer: str, golds: Sequence[str], order: int) -> float:
    """Return NLTK's BLEU of text parted at white space; of four words with smoothing method 4."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    smoothing = SmoothingFunction().method4 if order == 4 else None
    weights = (0.25,) * 4 if order == 4 else (1.0, 0.0, 0.0, 0.0)
    references = [gold.split() for gold in golds]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that without a common word it is 0
        return float(sentence_bleu(references, answer.split(), weights, smoothing))


@cache
def _scorer(family: Family, order: int = 0) -> Any:
    if family == "rouge_l":
        from rouge_score.rouge_scorer import RougeScorer

        return RougeScorer(["rougeL"], use_stemmer=False)
    from sacrebleu.metrics import BLEU, CHRF

    return CHRF() if family == "chrf" else BLEU(effective_order=True, max_ngram_order=order)


@cache
def _word_tokenizer(recipe: Recipe) -> Any:
    """Return NLTK's word tokenizer; the paper's as it was in NLTK 3.8.1, where dashes parted no
    words, and an opening quote stayed with a word of two letters or more.
    """
    from nltk.tokenize import NLTKWordTokenizer

    if recipe == "default":
        return NLTKWordTokenizer()
    start = re.compile(r"(?i)'(?!re|ve|ll|[mtsdn])(?=\w\b)")

    class Earlier(NLTKWordTokenizer):  # type: ignore[misc]
        PUNCTUATION: ClassVar[Any] = [
            rule for rule in NLTKWordTokenizer.PUNCTUATION if not rule[0].search("\u2013")
        ]
        STARTING_QUOTES: ClassVar[Any] = [*NLTKWordTokenizer.STARTING_QUOTES[:-1], (start, "' ")]

    return Earlier()


JUDGE = "judge"
"""The role of the models whose likelihoods are BARTScore and GPTScore."""


async def bertscore(models: Models, answer: str, golds: Sequence[str]) -> dict[str, list[float]]:
    """Return BERTScore's parts of an answer against each gold answer.

    A text is asked for with a space before it: that is how models with byte-level tokenizers
    learnt to read a word, and changes nothing for others. A blank answer has 0.
    """
    if not answer.strip():
        return {name: [0.0] * len(golds) for name in _BERTSCORE}
    texts = [answer, *golds]
    ours, *theirs = await asyncio.gather(*(models.token_vectors(f" {t.strip()}") for t in texts))
    result = [greedy_match(ours.vectors, one.vectors, ours.special, one.special) for one in theirs]
    columns = zip(*result, strict=True)
    return {name: list(column) for name, column in zip(_BERTSCORE, columns, strict=True)}


_BERTSCORE = ("bertscore_precision", "bertscore_recall", "bertscore")


@dataclass(frozen=True)
class Likelihoods:
    """BARTScore or GPTScore of one answer.

    family: ``bartscore``, whose prompt is the source text alone, or ``gptscore``, whose prompt says
    what is to be done with it. passages: how many documents are shown at most. prompts: a folder
    of the user's own prompts for GPTScore.
    """

    family: str
    models: Models
    sample: Sample
    answer: str
    passages: int
    prompts: str | None = None

    async def parts(self, form: Form, golds: Sequence[str]) -> dict[str, list[float]]:
        """Return the parts of a form: against each gold answer for ``ref``, else one value.

        Raises AssessmentError if the answer is blank, there is nothing to be conditioned on, or the
        run's models do not say which of them is to be asked.
        """
        if not self.answer.strip():
            raise AssessmentError("the response is blank: no likelihood", "empty")
        if form != "ref":
            value = await self._likelihood(self._prompt(form), self.answer)
            return {f"{self.family}_{form}": [value]}
        there = [self._likelihood(self._prompt(form, gold), self.answer) for gold in golds]
        back = self._prompt(form, self.answer)
        values = await asyncio.gather(*there, *(self._likelihood(back, gold) for gold in golds))
        precisions, recalls = values[: len(golds)], values[len(golds) :]
        return {
            f"{self.family}_ref": [(p + r) / 2 for p, r in zip(precisions, recalls, strict=True)],
            f"{self.family}_ref_precision": precisions,
            f"{self.family}_ref_recall": recalls,
        }

    async def _likelihood(self, prompt: str, text: str) -> float:
        result = await self.models.likelihood(prompt, text.strip(), role=JUDGE, name=self._judge())
        try:
            return mean_log_probability(result.tokens)
        except ValueError:
            raise AssessmentError(f"{self.family}: the model reads no token in {text!r}") from None

    def _judge(self) -> str:
        """Return the name of the judge of this family, or of the only one that there is."""
        names = self.models.names(JUDGE)
        if self.family in names:
            return self.family
        if len(names) == 1:
            return names[0]
        raise AssessmentError(
            f"{self.family}: none of the judges ({', '.join(names)}) has this name; name them as "
            f"in --judge {self.family}=hf:MODEL"
        )

    def _prompt(self, form: Form, text: str = "") -> str:
        """Return what the likelihood is conditioned on."""
        passages = [
            ": ".join(filter(None, (one.title.strip(), one.text.strip())))
            for one in (self.sample.documents or ())[: self.passages]
        ]
        if form == "evid" and not passages:
            raise AssessmentError(f"{self.family}_evid: the sample has no passage")
        question = self.sample.question.strip()
        if self.family == "bartscore":
            return {"ref": text.strip(), "src": question, "evid": "\n".join(passages)}[form]
        prompt = prompt_of(form, self.prompts)
        # The answer stands on a line of its own, so that no token reaches across its beginning.
        return prompt.filled(text=text.strip(), question=question, passages=passages) + "\n"


@cache
def prompt_of(form: Form, folder: str | None) -> Prompt:
    """Return GPTScore's prompt for a form, from a folder of the user's (as :func:`shipped`)."""
    name = f"gptscore-{form}"
    return shipped(__package__, name, None if folder is None else Path(folder) / f"{name}.jinja")
