"""Names of fields in records of other tools: layouts, spellings, other languages, guesses.

:mod:`trustassay.input.recognising` uses them to recognise a record by its keys.
"""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from trustassay.core.labels import NO, YES, fold_label
from trustassay.core.sample import CANONICAL_FIELDS, Problem, SampleError, columns_to_rows

Converter = Callable[[Any], Any]
NAMES: Mapping[str, Any] = tomllib.loads(
    files("trustassay.input").joinpath("names.toml").read_text(encoding="utf-8")
)
"""Names of fields, by subject, from ``names.toml``."""

TEXT_FIELDS, STRUCTURED_FIELDS = CANONICAL_FIELDS[:4], CANONICAL_FIELDS[4:12]
"""Canonical fields with a single text, and those with lists or objects."""
PROSE_NAMES = frozenset({"reference", "expected_output", "expectedOutput", "ground_truth", "ideal"})
"""Names in other tools of a single text that may fill one of our list fields."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a tool's records.

    :data:`SPELLINGS` and :data:`CONVERTERS`, which hold for every layout, come after its own.
    """

    name: str
    """The name of the tool or data set."""
    identifying_keys: tuple[tuple[str, ...], ...]
    """Groups of keys; the layout is recognised where all keys of one group are present."""
    fields: Mapping[str, tuple[str, ...]]
    """By canonical field, the tool's names for it, the preferred one first."""
    documents: Mapping[str, str] = field(default_factory=dict)
    """By canonical field of a document, the tool's name for it."""
    converters: Mapping[str, Converter] = field(default_factory=dict)
    """By the tool's field, a function that returns the canonical value. It raises ``SampleError``,
    with an empty field name, where it cannot."""
    keys_without_question: tuple[str, ...] = ()
    """Keys one of which identifies the layout in a record without ``question``."""


def _short_answers(pairs: Any) -> Any:
    """Turn ALCE's sub-questions, each with its short answers, into lists of aliases."""
    # The library `datasets` may store a list of objects as an object of lists.
    if isinstance(pairs, Mapping):
        return pairs.get("short_answers")
    if not isinstance(pairs, list | tuple):
        message = f"expected a list of questions with short_answers, got {str(pairs)[:40]!r}"
        raise SampleError([Problem("", message)])
    return [p.get("short_answers") if isinstance(p, Mapping) else None for p in pairs]


def _unless_blank(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


def _in_list(value: Any) -> Any:
    """Split a list that is written with semicolons; a list stays as it is."""
    if not isinstance(value, str):
        return value
    return [text.strip() for text in value.split(";") if text.strip()]


def _one_of_list(value: Any) -> Any:
    """Return a list as the aliases of a single answer, each of which is right by itself."""
    result = _in_list(value)
    return [result] if result and isinstance(result, list) else result


def _not_hallucinated(value: Any) -> Any:
    """Turn yes or true (there is a hallucination) into 0, the label of a wrong answer.

    Any other word says by itself what it means, or is left for the reader of labels to refuse.
    """
    # Of an object or a list, a field may be the label.
    word = fold_label(str(value)) if isinstance(value, str | int | float) else ""
    return int(word in NO) if word in YES | NO else value


def _split_at_bars(value: Any) -> Any:
    """Split the passages that DeepEval joins with bars in its tables."""
    is_list = not isinstance(value, str) or value.lstrip().startswith("[")
    return value if is_list or not value.strip() else value.split("|")


def _any_of(value: Any) -> Any:
    """Return a right answer, or a list of right answers, as the aliases of one answer."""
    if isinstance(value, list | tuple):
        return [list(value)] if value else None
    return None if _unless_blank(value) is None else [value]


def _several_texts(value: Any) -> Any:
    """Return a list of texts; any other value, such as a number of samples, has no replies."""
    listed = isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    return value if listed else None


def read_gold_texts(value: Any) -> Any:
    """Return SQuAD's gold answers, texts with their places, as the aliases of one answer.

    Any other value is returned as it is.
    """
    if isinstance(value, Mapping) and value.get("text") == []:
        return None  # a question without an answer in the passage
    # `datasets` stores a list of objects as an object of lists.
    rows = columns_to_rows(value) if isinstance(value, Mapping) else value
    rows = rows if isinstance(rows, list | tuple) else [rows]
    texts = [
        row["text"]
        for row in rows
        if isinstance(row, Mapping) and ("answer_start" in row or [*row] == ["text"])
    ]
    is_list_of_texts = len(texts) == len(rows) and all(isinstance(text, str) for text in texts)
    return [list(dict.fromkeys(texts))] if texts and is_list_of_texts else value


SPELLINGS: Mapping[str, tuple[str, ...]] = {
    known: tuple(names) for known, names in NAMES["spellings"].items()
}
"""By canonical field, names that are recognised in any record, after those of its layout."""
CONVERTERS: Mapping[str, Converter] = {
    **dict.fromkeys(SPELLINGS["claims"], _unless_blank),
    **dict.fromkeys(SPELLINGS["resamples"], _several_texts),
    "ideal": _any_of,
}
"""By name, functions that return the canonical value, for records of any layout."""


AMBIGUOUS = frozenset({"source"})
"""Names that may mean documents but mostly hold a link or a title; they count only with prose."""
TEXTS_ONLY = frozenset({"model_answer", "completion", "generation"})
"""Names of a response that count only with a text; a prediction may be a number."""

_DEEPEVAL_FIELDS = {
    "question": ("input",),
    "response": ("actual_output", "actualOutput", "output", "answer"),
    "documents": ("retrieval_context", "retrievalContext", "context"),
    "claims": ("expected_output", "expectedOutput"),
}
_TRUST_EVAL_DOCUMENT = {"supports": "answers_found", "excerpt": "sent"}
LAYOUTS = (
    Layout(  # as it writes tables
        "DeepEval",
        (("input", "retrieval_context", "source_file"),),
        _DEEPEVAL_FIELDS,
        converters=dict.fromkeys(("retrieval_context", "context"), _split_at_bars),
    ),
    Layout(
        "DeepEval",
        (
            *(("actualOutput",), ("actual_output",), ("expectedOutput",), ("expected_output",)),
            *(("retrievalContext",), ("retrieval_context",)),
        ),
        _DEEPEVAL_FIELDS,
        keys_without_question=("input",),
    ),
    Layout(
        "Ragas",
        (("retrieved_contexts",), ("user_input",)),
        {
            "question": ("user_input",),
            "response": ("answer",),
            "documents": ("retrieved_contexts",),
            "claims": ("reference",),
        },
    ),
    Layout(
        "log",
        (
            *(("answer", "contexts"), ("answer", "context"), ("answer", "documents")),
            *(("answer", "retrieved_documents"), ("answer", "retrieved_context")),
            ("answer", "ground_truth"),
            *(("answer", "ground_truths"), ("answer", "ideal"), ("answer", "source_documents")),
        ),
        {
            # Beside the output of a model, "answer" is mostly the right answer of a data set.
            "response": (*SPELLINGS["response"], "answer"),
            "documents": ("contexts", "context", "retrieved_documents", "retrieved_context"),
            "claims": ("ground_truth", "ground_truths"),
        },
    ),
    Layout(
        "LangChain",
        (("query", "result", "source_documents"),),
        {"question": ("query",), "response": ("result",), "documents": ("source_documents",)},
    ),
    Layout(
        "LettuceDetect",
        (("prompt", "answer", "labels"),),
        {"question": ("prompt",), "response": ("answer",), "documents": ("context",)},
    ),
    Layout(
        "uqlm",
        (("prompts", "responses"), ("responses", "sampled_responses")),
        {"question": ("prompts",), "response": ("responses",)},
    ),
    Layout(
        "Braintrust",
        tuple(("input", "expected", key) for key in ("scores", "span_id", "_xact_id")),
        {"question": ("input",), "response": ("output",), "claims": ("expected",)},
    ),
    Layout(
        "Trust-Eval",
        (("docs",), ("output",), ("qa_pairs",)),
        {"response": ("output",), "documents": ("docs",), "answers": ("qa_pairs",)},
        _TRUST_EVAL_DOCUMENT,
        {"qa_pairs": _short_answers},
    ),
    Layout(
        "TruthfulQA",
        (("Correct Answers", "Incorrect Answers"),),
        {
            "question": ("Question",),
            "answers": ("Correct Answers",),
            "incorrect_answers": ("Incorrect Answers",),
        },
        converters={"Correct Answers": _one_of_list, "Incorrect Answers": _in_list},
    ),
    Layout(
        "HaluEval",
        (("chatgpt_response",),),
        {
            "id": ("ID",),
            "question": ("user_query",),
            "response": ("chatgpt_response",),
            "label": ("hallucination",),
        },
        converters={"ID": _unless_blank, "hallucination": _not_hallucinated},
    ),
    Layout(
        "TrustScore", (("human_eval", "pred"),), {"response": ("pred",), "label": ("human_eval",)}
    ),
)
"""How tools write a record; the first layout that fits counts."""
# Documents in our own layout may have Trust-Eval's names: their flags must not be dropped silently.
CANONICAL = Layout("canonical", (), {}, _TRUST_EVAL_DOCUMENT)


# ---- other spellings (Ground Truth, actualOutput) and languages (Réponse, 質問) ----

_KNOWN = frozenset(
    name
    for name in {
        *("id", "question", "response", "documents", "model"),
        *("inputs", "outputs", "reference_outputs", "answer"),
        *(name for names in SPELLINGS.values() for name in names),
        *(name for layout in LAYOUTS for names in layout.fields.values() for name in names),
    }
    if re.fullmatch(r"[a-z_]+", name)
)
"""Names to which other spellings and translations are mapped."""


_PROMPTFOO_COLUMNS = frozenset({"Status", "Score", "Grader Reason"})
_PROMPTFOO_ANSWERS = re.compile(r"\[[^\]]+\] ")
"""The column of answers in promptfoo's tables: the model in brackets and the prompt."""


def find_respellings(names: Collection[str], names_to_keep: Collection[str]) -> dict[str, str]:
    """Return the names of a record that are other spellings of known names, by the known name.

    Args:
        names: the names of the record.
        names_to_keep: names that are not mapped.
    """
    result: dict[str, str] = {}
    is_promptfoo = _PROMPTFOO_COLUMNS.issubset(names)
    for name in names:
        if isinstance(name, str) and name not in _KNOWN and name not in names_to_keep:
            english_name = translate_name(name)
            if is_promptfoo and _PROMPTFOO_ANSWERS.match(name):
                english_name = "model_answer"
            # A field that exists under its known name is never replaced by another one.
            if english_name in _KNOWN and english_name not in names:
                result.setdefault(english_name, name)
    return result


def translate_name(name: str) -> str:
    """Return the English translation of a field's name, or else the name in its normal form."""
    result = normalise_name(name)
    return _TRANSLATIONS.get(result, result)


@lru_cache(maxsize=4096)
def normalise_name(name: str) -> str:
    """Return a name in small letters without accents, with one underscore between words."""
    # "actualOutput" becomes "actual_Output" first.
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    if not parted.isascii():
        letters = unicodedata.normalize("NFKD", parted)
        parted = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[\W_]+", "_", parted).strip("_").lower()


_TRANSLATIONS: Mapping[str, str] = {
    normalise_name(name): known
    for known, names in NAMES["translations"].items()
    for name in names.split()
}


# ---- fields that records of a tool lack ----


def explain_missing(field: str, record: Mapping[str, Any]) -> str:
    """Return why a record of a known tool may lack a field; empty where nothing is known."""
    for hint in NAMES["hints"]:
        if hint["field"] == field and all(name in record for name in hint["keys"]):
            return str(hint["text"])
    return ""


# ---- guesses of the meaning of unknown fields, for messages that propose a command ----

_WORDS_OF_GUESSES = {name: words.split() for name, words in NAMES["guesses"].items()}
_WORDS_ABOUT_FIELDS = frozenset(_WORDS_OF_GUESSES.pop("about"))
_WORDS_OF_GOLD = frozenset(_WORDS_OF_GUESSES.pop("gold"))
_OBJECTS_OF_QUESTIONS = frozenset(_WORDS_OF_GUESSES.pop("questions"))
_WORDS_OF_RIVALS = frozenset(_WORDS_OF_GUESSES.pop("rivals"))
_WORDS_OF_OUTPUTS = tuple(_WORDS_OF_GUESSES.pop("output"))
_WORDS_OF_QUESTIONS = frozenset(_WORDS_OF_GUESSES["question"]) - {"user"}  # mostly a name


def is_gold(name: str) -> bool:
    """Whether a name or path means a right answer or a judgement, and not a model's answer."""
    root, _, inside = name.partition(".")
    is_of_question = inside and normalise_name(root) in _OBJECTS_OF_QUESTIONS
    if is_of_question and not _has_word(normalise_name(inside), _WORDS_OF_OUTPUTS):
        return True
    words = {*normalise_name(name).split("_"), *translate_name(name).split("_")}
    return not _WORDS_OF_GOLD.isdisjoint(words)


def _is_about_field(words: Sequence[str]) -> bool:
    """Whether the words of a name mean something about a text, and not the text."""
    # "answer_model" is the model of an answer, but "model_text" is a text.
    return any(
        word in _WORDS_ABOUT_FIELDS for word in words if word != "model" or word == words[-1]
    )


@lru_cache(maxsize=4096)
def may_be_model_answer(name: str) -> bool:
    """Whether a name, other than "answer", mostly means the answer of a model."""
    words = _translate_words(name).split("_")
    if words == ["answer"] or is_gold(name) or _is_about_field(words):
        return False
    is_question = "user" in words or not _WORDS_OF_QUESTIONS.isdisjoint(words)
    return not is_question and not _WORDS_OF_RIVALS.isdisjoint(words)


def _translate_words(name: str) -> str:
    """Return a name whose single words are translated, too: "Antwort des Chatbots"."""
    return "_".join(map(translate_name, translate_name(name).split("_")))


def _has_word(name: str, words: Iterable[str]) -> bool:
    """Whether a name in normal form has one of some words or beginnings of words."""
    # "task" has no "ask" and "both" no "bot", but "userquery" has "query".
    return any(
        word in name if len(word) > 4 else re.search(rf"(?:^|_){word}s?(?:_|$)", name)
        for word in words
    )


def is_only_question(name: str, names: Iterable[str]) -> bool:
    """Whether no other name of a record may mean the question, except ``question`` itself."""
    for other in names:
        words = translate_name(str(other)).split("_")
        # A system prompt is the same for all questions, and "prompt_tokens" is about a text.
        is_text = "system" not in words and not _is_about_field(words)
        may_be_question = is_text and not _WORDS_OF_QUESTIONS.isdisjoint(words)
        if may_be_question and other not in (name, "question"):
            return False
    return True


@lru_cache(maxsize=256)
def guess_fields(names: tuple[str, ...], names_taken: tuple[str, ...] = ()) -> Mapping[str, str]:
    """Return the likeliest names for the question, the response and the documents.

    Guesses only appear in messages; records are never read by them.

    Args:
        names: the names of a record.
        names_taken: names that are known to mean something else.
    """
    free = {name: _translate_words(name) for name in names if name not in names_taken}
    # "question_id" and "answer_score" are about a field, and do not hold its text.
    free = {
        name: english_name
        for name, english_name in free.items()
        if not _is_about_field(english_name.split("_"))
    }
    result: dict[str, str] = {}
    for canonical, words in _WORDS_OF_GUESSES.items():
        by_word = (
            name
            for word in words
            for name, english_name in free.items()
            if _has_word(english_name, [word]) and not (canonical == "response" and is_gold(name))
        )
        if (best := next(by_word, None)) is not None:
            result[canonical] = best
            del free[best]
    return result
