"""BERTScore, BARTScore and GPTScore against their definitions, token by token, on real models."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import needed
from trustassay import score
from trustassay.metrics import Reference
from trustassay.metrics.fewl import Fewl
from trustassay.metrics.reference.measures import prompt_of

_HF = "needs torch and transformers: pip install '.[hf]'"
torch, transformers = needed("torch", _HF), needed("transformers", _HF)

from tests.tiny_chat import save_bart, save_llama, save_roberta, save_t5  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]

QUESTION = "What is the capital of France?"
GOLDS = ["Paris", "the city of Paris"]
ANSWERS = ["Paris", "The capital of France is Paris.", "the dog sat on the mat"]
PASSAGES = ["Paris is the capital of France.", "The dog sat on the cat."]
SAMPLES = [
    {
        "id": str(i),
        "question": QUESTION,
        "response": answer,
        "answers": GOLDS,
        "documents": [{"title": "France", "text": PASSAGES[0]}, PASSAGES[1]],
    }
    for i, answer in enumerate(ANSWERS)
]
# Of a T5 with large weights the logits alone take all of a 32-bit number's digits.
MAKERS: Mapping[str, Callable[[Path], Path]] = {
    "bart": save_bart,
    "t5": partial(save_t5, factor=0.7),
    "llama": save_llama,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models")
    for name, make in MAKERS.items():
        make(path / name)
    save_roberta(path / "roberta")
    return path


def parts_of(metric: Reference, **backends: Any) -> list[Mapping[str, float]]:
    run = score(SAMPLES, metrics=metric, **backends)
    assert [one.error for one in run.assessments] == [None] * len(SAMPLES)
    return [one.parts for one in run.assessments]


# ------------------------------------------------------------------------------------- BERTScore


def vectors(model: Any, tokenizer: Any, text: str, layer: int) -> Any:
    """Return unit vectors of a text's tokens, the first and the last of which are special."""
    inputs = tokenizer(f" {text}", return_tensors="pt", return_token_type_ids=False)
    with torch.inference_mode():
        states = model(**inputs, output_hidden_states=True).hidden_states[layer][0]
    return states / states.norm(dim=-1, keepdim=True)


def bertscore(answer: Any, gold: Any) -> tuple[float, float, float]:
    """Return P, R and F as the paper's equations read, special tokens counting in no mean."""
    precision = [max(float(a @ g) for g in gold) for a in answer[1:-1]]
    recall = [max(float(a @ g) for a in answer) for g in gold[1:-1]]
    p, r = sum(precision) / len(precision), sum(recall) / len(recall)
    return p, r, 2 * p * r / (p + r)


@pytest.mark.parametrize("layer", [None, 1])
def test_bertscore_is_what_its_equations_say(folder: Path, layer: int | None) -> None:
    model = transformers.AutoModel.from_pretrained(folder / "roberta").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "roberta")
    uri = f"hf:{folder / 'roberta'}" + (f"?layer={layer}" if layer else "")
    best = parts_of(Reference(parts="bertscore"), token_embedder=uri)
    mean = parts_of(Reference(parts="bertscore", aggregate="mean"), token_embedder=uri)
    for i, answer in enumerate(ANSWERS):
        ours, *golds = (vectors(model, tokenizer, t, layer or 3) for t in (answer, *GOLDS))
        columns = list(zip(*(bertscore(ours, gold) for gold in golds), strict=True))
        for name, column in zip(
            ("bertscore_precision", "bertscore_recall", "bertscore"), columns, strict=True
        ):
            assert best[i][name] == pytest.approx(max(column), abs=1e-5)
            assert mean[i][name] == pytest.approx(sum(column) / len(column), abs=1e-5)
    assert best[0]["bertscore"] == pytest.approx(1, abs=1e-5)
    assert best[2]["bertscore"] < 0.999


def test_bertscore_as_a_similarity_is_the_same(folder: Path) -> None:
    """``fewl`` by one reference, without a penalty and linear, is the similarity itself."""
    model = f"hf:{folder / 'roberta'}"
    golds = [parts_of(Reference(parts="bertscore", aggregate="first"), token_embedder=model)]
    file = [{**one, "references": {"gold": GOLDS[0]}} for one in SAMPLES]
    metric = Fewl(form="theory", divergence="kl", weights="uniform", penalty="none")
    run = score(file, metrics=metric, similarity=f"bertscore:{model}")
    expected = [parts["bertscore"] for parts in golds[0]]
    assert [one.score for one in run.assessments] == pytest.approx(expected, abs=1e-6)
    assert expected[0] > expected[2]


def test_bertscore_of_silence_is_nothing(folder: Path) -> None:
    [found] = score(
        [{**SAMPLES[0], "response": " "}],
        metrics=Reference(parts="bertscore"),
        token_embedder=f"hf:{folder / 'roberta'}",
    ).assessments
    assert {name: value for name, value in found.parts.items() if value} == {"blank": 1.0}


# ---------------------------------------------------------------------- BARTScore and GPTScore


@cache
def opened(path: Path) -> tuple[Any, Any]:
    auto = transformers.AutoModelForSeq2SeqLM
    if path.name == "llama":
        auto = transformers.AutoModelForCausalLM
    return auto.from_pretrained(path).eval(), transformers.AutoTokenizer.from_pretrained(path)


def mean_logprob(path: Path, prompt: str, text: str) -> float:
    """Return the mean log-probability of the tokens of a text after a prompt, one by one."""
    model, tokenizer = opened(path)
    before: dict[str, Any] = {}
    if path.name == "llama":
        start = tokenizer(prompt)["input_ids"]
        tokens = tokenizer(prompt + text)["input_ids"][len(start) :]
    else:
        before = tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
        tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
        start = [2, 1] if path.name == "bart" else [0]  # what the decoder begins with
    found = []
    for place, token in enumerate(tokens):
        read = torch.tensor([[*start, *tokens[:place]]])
        name = "decoder_input_ids" if before else "input_ids"
        with torch.inference_mode():
            logits = model(**before, **{name: read}).logits[0, -1]
        found.append(float(logits.log_softmax(-1)[token]))
    assert len(found) > 1
    return sum(found) / len(found)


def prompts(family: str, answer: str) -> dict[str, tuple[str, str]]:
    """Return, by form, what is read before which text."""
    shown = ["France: Paris is the capital of France.", PASSAGES[1]]
    forms: dict[str, tuple[str, str]] = {}
    if family == "bartscore":
        for i, gold in enumerate(GOLDS):
            forms |= {f"precision{i}": (gold, answer), f"recall{i}": (answer, gold)}
        return forms | {"src": (QUESTION, answer), "evid": ("\n".join(shown), answer)}
    ref, src, evid = (prompt_of(form, None) for form in ("ref", "src", "evid"))
    for i, gold in enumerate(GOLDS):
        forms[f"precision{i}"] = (ref.fill(text=gold) + "\n", answer)
        forms[f"recall{i}"] = (ref.fill(text=answer) + "\n", gold)
    forms["src"] = (src.fill(question=QUESTION) + "\n", answer)
    forms["evid"] = (evid.fill(question=QUESTION, passages=shown) + "\n", answer)
    return forms


@pytest.mark.parametrize(
    ("family", "kind"),
    [("bartscore", "bart"), ("bartscore", "t5"), ("gptscore", "t5"), ("gptscore", "llama")],
)
def test_likelihoods_are_what_their_equation_says(folder: Path, family: str, kind: str) -> None:
    found = parts_of(Reference(parts=family), judge=f"hf:{folder / kind}")
    for parts, answer in zip(found, ANSWERS, strict=True):
        own = {
            form: mean_logprob(folder / kind, *asked)
            for form, asked in prompts(family, answer).items()
        }
        expected = {
            "ref_precision": max(own["precision0"], own["precision1"]),
            "ref_recall": max(own["recall0"], own["recall1"]),
            "ref": max((own[f"precision{i}"] + own[f"recall{i}"]) / 2 for i in range(2)),
            "src": own["src"],
            "evid": own["evid"],
        }
        assert dict(parts) == {
            f"{family}_{name}": pytest.approx(value, abs=1e-5) for name, value in expected.items()
        }
        assert len(set(expected.values())) >= 3  # none stands for another


def test_two_judges_are_told_apart_by_their_names(folder: Path) -> None:
    judges = {"bartscore": f"hf:{folder / 'bart'}", "gptscore": f"hf:{folder / 't5'}"}
    both = parts_of(Reference(parts="bartscore_src+gptscore_src"), judge=judges)
    for family, model in judges.items():
        [name] = [f"{family}_src"]
        alone = parts_of(Reference(parts=name), judge=model)
        assert [parts[name] for parts in alone] == [parts[name] for parts in both]
    other = {"one": judges["bartscore"], "two": judges["gptscore"]}
    run = score(SAMPLES[:1], metrics=Reference(parts="gptscore_src"), judge=other)
    assert run.assessments[0].error is not None
    assert "--judge gptscore=hf:MODEL" in run.assessments[0].error


def test_a_prompt_of_the_users_own_is_read(folder: Path, tmp_path: Path) -> None:
    for form in ("ref", "src", "evid"):
        (tmp_path / f"gptscore-{form}.jinja").write_text("{# version 1 #}Say: {{ question }}")
    [own, *_] = parts_of(
        Reference(parts="gptscore_src", prompts=str(tmp_path)), judge=f"hf:{folder / 'llama'}"
    )
    expected = mean_logprob(folder / "llama", f"Say: {QUESTION}\n", ANSWERS[0])
    assert own["gptscore_src"] == pytest.approx(expected, abs=1e-5)


def test_the_score_of_a_log_probability_is_a_probability(folder: Path) -> None:
    metric = Reference(parts="gptscore_ref")
    run = score(SAMPLES, metrics=metric, judge=f"hf:{folder / 't5'}")
    for one in run.assessments:
        assert one.score is not None
        assert 0 < one.score < 1
        assert one.score == pytest.approx(math.exp(one.parts["gptscore_ref"]))


def test_a_blank_answer_has_no_likelihood(folder: Path) -> None:
    samples: Sequence[Any] = [{**SAMPLES[0], "response": ""}]
    run = score(samples, metrics=Reference(parts="em+gptscore_src"), judge=f"hf:{folder / 't5'}")
    assert run.assessments[0].error == "the response is blank, so it has no likelihood"
    assert run.assessments[0].fault == "empty"
