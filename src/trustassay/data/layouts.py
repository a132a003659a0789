"""What other tools call the fields of a record: layouts, spellings, other languages, guesses.

A record is recognised by its keys (:mod:`trustassay.data.recognising`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from trustassay.data.records import is_nan
from trustassay.sample import Problem, SampleError

Converter = Callable[[Any], Any]

TEXT_FIELDS = ("id", "question", "response", "model")
STRUCTURED_FIELDS = (
    "answers",
    "claims",
    "documents",
    "references",
    "resamples",
    "wrong_answers",
    "corrected_answers",
    "incorrect_answers",
)
PROSE_NAMES = frozenset({"reference", "expected_output", "expectedOutput", "ground_truth", "ideal"})
"""Other tools' names of one text that may fill a list field here."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How one tool writes a record.

    Any key of ``telling`` tells the layout, where ``together`` only all of them do; one of
    ``telling_without_question`` does so in a record without ``question``. ``fields`` gives, for a
    canonical field, the tool's names for it, the preferred one first; ``documents`` the same for
    the fields of a document; ``converters`` turn the value of a tool's field into the canonical
    one, and raise ``SampleError`` (with an empty field name) where that cannot be done. Both are
    followed by :data:`SPELLINGS` and :data:`CONVERTERS`, which hold for every layout.
    """

    name: str
    telling: frozenset[str]
    fields: Mapping[str, tuple[str, ...]]
    documents: Mapping[str, str] = field(default_factory=dict)
    converters: Mapping[str, Converter] = field(default_factory=dict)
    telling_without_question: frozenset[str] = frozenset()
    together: bool = False

    def tells(self, keys: Collection[str]) -> bool:
        """Return whether ``keys`` tell the layout."""
        told = self.telling.intersection(keys)
        return told == self.telling if self.together else bool(told)


def _short_answers(pairs: Any) -> Any:
    """Turn ALCE's sub-questions, each with its short answers, into lists of aliases."""
    if isinstance(pairs, Mapping):  # columns, as `datasets` may store them
        return pairs.get("short_answers")
    if not isinstance(pairs, list | tuple):
        raise SampleError([Problem("", "expected a list of questions with short_answers")])
    return [p.get("short_answers") if isinstance(p, Mapping) else None for p in pairs]


def _one_question(value: Any) -> Any:
    """Refuse the messages of a conversation; the parser checks everything else."""
    if isinstance(value, list | tuple):
        message = "expected one question, got a list of messages (multi-turn is not supported)"
        raise SampleError([Problem("", message)])
    return value


def _unless_blank(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


def _in_list(value: Any) -> Any:
    """Split a list that is written with semicolons; a list stays as it is."""
    if not isinstance(value, str):
        return value
    return [text.strip() for text in value.split(";") if text.strip()]


def _one_of_list(value: Any) -> Any:
    """Return the same as the aliases of one answer: each is right by itself."""
    found = _in_list(value)
    return [found] if found and isinstance(found, list) else found


def _not_hallucinated(value: Any) -> Any:
    """Turn yes or true, there is a hallucination, into the label of a wrong answer."""
    if value is None or isinstance(value, bool):
        return None if value is None else int(not value)
    known = {"yes": 0, "no": 1}
    said = value.strip().casefold() if isinstance(value, str) else ""
    if said not in known:
        message = "expected yes, no, true or false (whether the response is hallucinated)"
        raise SampleError([Problem("", f"{message}, got {str(value)[:40]!r}")])
    return known[said]


def passages(value: Any) -> Any:
    """Read a text as one passage; a list with passages keeps its places. ``None`` for blanks."""
    if isinstance(value, list | tuple):
        texts = ["" if one is None or is_nan(one) else one for one in value]
        blank = all(isinstance(one, str) and not one.strip() for one in texts)
        return None if texts and blank else texts
    if isinstance(value, str):
        return [value] if value.strip() else None
    return value


def _barred(value: Any) -> Any:
    """Split the passages that DeepEval joins with bars where it writes a table."""
    return value.split("|") if isinstance(value, str) and value.strip() else value


def _any_of(value: Any) -> Any:
    """Read one right answer, or a list of which each is right by itself."""
    if isinstance(value, list | tuple):
        return [list(value)] if value else None
    return None if _unless_blank(value) is None else [value]


SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "question": ("user_input", "input", "query"),
    "response": ("actual_output", "output"),
    "documents": (
        "retrieved_contexts",
        "retrieval_context",
        "retrievalContext",
        "contexts",
        "context",
        "docs",
        "retrieved_documents",
        "source",
    ),
    "answers": ("ideal",),
    "claims": ("reference", "expected_output", "expectedOutput", "ground_truth", "ground_truths"),
}
"""Names of fields that need no other key beside them, after those of the record's layout."""
CONVERTERS: Mapping[str, Converter] = {
    **dict.fromkeys(SPELLINGS["claims"], _unless_blank),
    "ideal": _any_of,
}
"""What turns the values of these names into canonical ones."""


def is_passage(value: Any) -> bool:
    """Return whether a value is the text of passages, and no link, file name or title."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(is_passage, value))
    if not isinstance(value, str):
        return False
    text = value.strip()
    long = len(text.split()) >= _WORDS_OF_PASSAGE or text.endswith(("。", "！", "？"))
    return long or (len(text.split()) > 2 and text.endswith((".", "!", "?")))


_WORDS_OF_PASSAGE = 16
AMBIGUOUS = frozenset({"source"})
"""Names of documents that mostly hold a link or a title: they count where :func:`is_passage`."""

_LOG_FIELDS = {
    "response": ("answer",),
    "documents": ("contexts", "context", "retrieved_documents"),
    "claims": ("ground_truth", "ground_truths"),
}


def _log_of(*telling: str) -> Layout:
    """Return the layout of logs and spreadsheets, and of Ragas before 0.2, told by two keys."""
    return Layout("log", frozenset(telling), _LOG_FIELDS, together=True)


_TRUST_EVAL_DOCUMENTS = {"supports": "answers_found", "excerpt": "sent"}

# Its documents may bear Trust-Eval's names: flags must not get lost without a word.
CANONICAL = Layout("canonical", frozenset(), {}, _TRUST_EVAL_DOCUMENTS)

_DEEPEVAL_FIELDS = {
    "question": ("input",),
    "response": ("actual_output", "actualOutput", "output", "answer"),
    "documents": ("retrieval_context", "retrievalContext", "context"),
    "claims": ("expected_output", "expectedOutput"),
}

LAYOUTS = (
    Layout(  # as it writes tables
        "DeepEval",
        telling=frozenset({"input", "retrieval_context", "source_file"}),
        together=True,
        fields=_DEEPEVAL_FIELDS,
        converters={"retrieval_context": _barred, "context": _barred},
    ),
    Layout(
        "DeepEval",
        telling=frozenset(
            {
                "actual_output",
                "expected_output",
                "retrieval_context",
                "actualOutput",
                "expectedOutput",
                "retrievalContext",
            }
        ),
        telling_without_question=frozenset({"input"}),
        fields=_DEEPEVAL_FIELDS,
    ),
    Layout(
        "Ragas",
        telling=frozenset({"user_input", "retrieved_contexts"}),
        fields={
            "question": ("user_input",),
            "response": ("answer",),
            "documents": ("retrieved_contexts",),
            "claims": ("reference",),
        },
        converters={"user_input": _one_question},
    ),
    _log_of("answer", "contexts"),
    _log_of("answer", "context"),
    _log_of("answer", "documents"),
    _log_of("answer", "retrieved_documents"),
    _log_of("answer", "ground_truth"),
    _log_of("answer", "ground_truths"),
    _log_of("answer", "ideal"),
    Layout(
        "Trust-Eval",
        telling=frozenset({"output", "docs", "qa_pairs"}),
        fields={
            "response": ("output",),
            "documents": ("docs",),
            "answers": ("qa_pairs",),
        },
        documents=_TRUST_EVAL_DOCUMENTS,
        converters={"qa_pairs": _short_answers},
    ),
    Layout(
        "TruthfulQA",
        telling=frozenset({"Correct Answers", "Incorrect Answers"}),
        together=True,
        fields={
            "question": ("Question",),
            "answers": ("Correct Answers",),
            "incorrect_answers": ("Incorrect Answers",),
        },
        converters={"Correct Answers": _one_of_list, "Incorrect Answers": _in_list},
    ),
    Layout(
        "HaluEval",
        telling=frozenset({"chatgpt_response"}),
        fields={
            "id": ("ID",),
            "question": ("user_query",),
            "response": ("chatgpt_response",),
            "label": ("hallucination",),
        },
        converters={"ID": _unless_blank, "hallucination": _not_hallucinated},
    ),
    Layout(
        "TrustScore",
        telling=frozenset({"pred", "human_eval"}),
        together=True,
        fields={"response": ("pred",), "label": ("human_eval",)},
    ),
)


# ---- other spellings (Ground Truth, actualOutput) and languages (Réponse, 質問) ----

_CANONICAL = {"id", "question", "response", "documents", "model"}
_SECTIONS = {"inputs", "outputs", "reference_outputs", "answer"}
_KNOWN = frozenset(
    name
    for name in {
        *_CANONICAL,
        *_SECTIONS,
        *(name for names in SPELLINGS.values() for name in names),
        *(name for layout in LAYOUTS for names in layout.fields.values() for name in names),
    }
    if re.fullmatch(r"[a-z_]+", name)
)
"""Names that other spellings are read as."""


def respellings(names: Collection[str], kept: Collection[str]) -> dict[str, str]:
    """Return the names of a record that are read as known ones, by these.

    No name of ``kept`` is among them, and none that would take the place of another field.
    """
    found: dict[str, str] = {}
    for name in names:
        if isinstance(name, str) and name not in _KNOWN and name not in kept:
            known = known_name(name)
            if known in _KNOWN and known not in names:
                found.setdefault(known, name)
    return found


def known_name(name: str) -> str:
    """Return the English name that a name translates, else the name in its normal form."""
    found = normal(name)
    return _TRANSLATED.get(found, found)


def normal(name: str) -> str:
    """Return a name in small letters without accents, its words joined by one underscore each."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    if not parted.isascii():
        letters = unicodedata.normalize("NFKD", parted)
        parted = "".join(one for one in letters if not unicodedata.combining(one))
    return re.sub(r"[\W_]+", "_", parted).strip("_").lower()


_TRANSLATIONS: Mapping[str, str] = {
    "question": (
        "frage fragen nutzerfrage kundenfrage anfrage demande pregunta consulta "
        "pergunta domanda quesito vraag 質問 質問文 問い 問題 问题 提问 提問 user_question "
        "customer_question"
    ),
    "answer": (
        "antwort antworten reponse respuesta contestacion resposta risposta antwoord 回答 回答文 "
        "答え 応答 答案 答复 答覆 回复 回覆 bot_answer generated_answer "
        "antwort_des_modells reponse_du_modele respuesta_del_modelo "
        "resposta_do_modelo risposta_del_modello"
    ),
    "context": (
        "kontext kontexte textstelle textstellen abschnitt abschnitte passage passages contexte "
        "contextes extrait extraits contexto contextos pasaje pasajes fragmento fragmentos trecho "
        "trechos contesto contesti brano brani passaggio passaggi contexten "
        "fragment fragmenten 文脈 コンテキスト 参考文書 参照文書 文書 上下文 语境 語境 参考文档 "
        "参考资料 參考資料 段落 文档 文檔 retrieved_passages retrieved_chunks chunks"
    ),
    "source": (
        "sources quelle quellen quelltext fuente fuentes fonte fontes fonti bron bronnen 出典 出所 "
        "情報源 来源 來源 出处 出處"
    ),
    "ground_truth": (
        "gold gold_answer gold_answers golden_answer expected_answer correct_answer "
        "right_answer reference_answer ideal_answer target_answer musterantwort musterlosung "
        "musterloesung referenzantwort richtige_antwort erwartete_antwort korrekte_antwort "
        "reponse_attendue reponse_correcte reponse_de_reference bonne_reponse respuesta_correcta "
        "respuesta_esperada respuesta_de_referencia resposta_correta resposta_esperada "
        "resposta_de_referencia risposta_corretta risposta_attesa risposta_di_riferimento "
        "juist_antwoord juiste_antwoord correct_antwoord verwacht_antwoord referentieantwoord 正解 "
        "模範解答 正答 期待される回答 正确答案 正確答案 标准答案 標準答案 参考答案 參考答案"
    ),
    "id": (
        "nr lfd_nr kennung identifiant identificador identificativo identificatie "
        "番号 識別子 编号 編號 序号 序號"
    ),
    "model": "modell sprachmodell modele modelo modello モデル モデル名 模型 模型名称 模型名稱",
}
_TRANSLATED: Mapping[str, str] = {
    normal(name): known for known, names in _TRANSLATIONS.items() for name in names.split()
}


# ---- guesses of what unknown fields hold, for messages that propose a command ----

_TELLING_WORDS: Mapping[str, tuple[str, ...]] = {
    "question": (
        *("question", "query", "prompt", "ask", "instruction", "utterance", "request", "input"),
        *("user", "message"),
    ),
    "response": (
        *("response", "answer", "reply", "completion", "output", "prediction", "generat"),
        *("assistant", "bot", "result"),
    ),
    "documents": (
        *("document", "passage", "context", "source", "evidence", "chunk", "retriev"),
        *("knowledge", "article", "snippet"),
    ),
}
"""Words in the names of fields, the most telling first."""
_ABOUT = frozenset(
    {"id", "ids", "at", "time", "date", "timestamp", "score", "count", "tokens", "model", "name"}
    | {"type", "url", "link", "language", "rating", "label", "latency", "version", "format"}
)
"""Words of names that hold something about a text, and not the text."""


@lru_cache(maxsize=256)
def guesses(names: tuple[str, ...], taken: tuple[str, ...] = ()) -> Mapping[str, str]:
    """Return the best guess of a name for the question, the response and the documents; records
    are never read by it.

    ``taken`` are names that are known to hold something else.
    """
    free = {name: known_name(name) for name in names if name not in taken}
    free = {name: known for name, known in free.items() if _ABOUT.isdisjoint(known.split("_"))}
    found: dict[str, str] = {}
    for canonical, words in _TELLING_WORDS.items():
        by_word = (name for word in words for name, known in free.items() if word in known)
        if (best := next(by_word, None)) is not None:
            found[canonical] = best
            del free[best]
    return found
