"""The statistics: by hand, beside another program's numbers, and their properties."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.capabilities import TokenVectors
from trustassay.metrics.uncertainty import maths
from trustassay.metrics.uncertainty.maths import Matrices

CASES = json.loads((Path(__file__).parent / "peers.json").read_text("utf-8"))["cases"]
"""By ``python -m lab.benchmarks.uncertainty_peers``."""


def matrices(case: Mapping[str, Any]) -> Matrices:
    return Matrices(np.array(case["entailment"]), np.array(case["contradiction"]))


def own(case: Mapping[str, Any]) -> list[float]:
    return [token[0][0] for token in case["tokens"]]


def alternatives(case: Mapping[str, Any]) -> list[list[float]]:
    return [[log for log, _ in token] for token in case["tokens"]]


def unlike(case: Mapping[str, Any]) -> float:
    return 1 - float(np.mean(case["similarities"]))


def lexical(name: str) -> Callable[[Mapping[str, Any]], float]:
    """Return a part of words in the other program's form: minus the similarity."""
    return lambda case: (
        maths.compute_word_parts([name], [], ["", *case["texts"]], str.splitlines)[name] - 1
    )


OURS: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "semantic_sets": lambda c: maths.semantic_sets(matrices(c)),
    "semantic_entropy": lambda c: maths.semantic_entropy(maths.clusters(matrices(c))),
    "semantic_entropy_weighted": lambda c: maths.semantic_entropy(
        maths.clusters(matrices(c)), c["log_likelihoods"]
    ),
    "eigenvalue_sum": lambda c: maths.eigenvalue_sum(maths.similarities(matrices(c))),
    "degree": lambda c: maths.degree(maths.similarities(matrices(c))),
    "eccentricity": lambda c: maths.eccentricity(maths.similarities(matrices(c))),
    "kernel_entropy": lambda c: maths.kernel_entropy(matrices(c)),
    "luq": lambda c: maths.luq(maths.agreement(matrices(c))),
    "rouge_l": lexical("rouge_l"),
    "nll": lambda c: maths.sequence_nll(own(c)),
    "mean_nll": lambda c: maths.mean_nll(own(c)),
    "mean_entropy": lambda c: float(np.mean([maths.entropy(one) for one in alternatives(c)])),
    "self_certainty": lambda c: maths.self_certainty(alternatives(c)),
    "ccp": lambda c: (
        maths.claim_conditioned([[(log, how) for log, how in t] for t in c["tokens"]]) - 1
    ),
    "cocoa_nll": lambda c: maths.sequence_nll(own(c)) * unlike(c),
    "cocoa_mean_nll": lambda c: maths.mean_nll(own(c)) * unlike(c),
    "cocoa_entropy": lambda c: (
        float(np.mean([maths.entropy(one) for one in alternatives(c)])) * unlike(c)
    ),
}


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_same_as_lm_polygraph(name: str, number: int) -> None:
    case = CASES[number]
    if name == "rouge_l":
        pytest.importorskip("rouge_score")
    assert OURS[name](case["inputs"]) == pytest.approx(case["numbers"][name], abs=1e-6)


@pytest.mark.filterwarnings("ignore:.*n-gram:UserWarning")
def test_bleu_is_that_of_lm_polygraph_where_its_weights_sum_to_one() -> None:
    pytest.importorskip("nltk")
    for case in CASES:
        assert lexical("bleu")(case["inputs"]) == pytest.approx(case["numbers"]["bleu"], abs=1e-6)


SAME = Matrices(np.ones((3, 3)), np.zeros((3, 3)))
APART = Matrices(np.eye(3), 1 - np.eye(3))


def test_replies_that_say_the_same_leave_no_doubt() -> None:
    weights = maths.similarities(SAME)
    assert maths.semantic_sets(SAME) == 1
    assert maths.clusters(SAME).tolist() == [0, 0, 0]
    assert maths.semantic_entropy([0, 0, 0]) == 0
    assert maths.eigenvalue_sum(weights) == pytest.approx(1)
    assert maths.degree(weights) == 0
    assert maths.eccentricity(weights) == pytest.approx(0, abs=1e-7)
    assert maths.luq(maths.agreement(SAME)) == 0


def test_replies_that_contradict_each_other_leave_most() -> None:
    weights = maths.similarities(APART)
    assert maths.semantic_sets(APART) == 3
    assert maths.semantic_entropy(maths.clusters(APART)) == pytest.approx(math.log(3))
    assert maths.eigenvalue_sum(weights) == pytest.approx(3)
    assert maths.degree(weights) == pytest.approx(2 / 3)
    assert maths.kernel_entropy(APART) == pytest.approx(1)
    assert maths.luq(maths.agreement(APART)) == 1


def test_a_chain_is_one_set_but_two_clusters() -> None:
    # a says b, b says c, and a does not say c: Lin et al. join them, Kuhn et al. compare with a.
    entailment = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.9], [0.1, 0.9, 1.0]])
    chain = Matrices(entailment, np.where(entailment < 0.5, 0.8, 0.0))
    assert maths.semantic_sets(chain) == 1
    assert maths.clusters(chain).tolist() == [0, 0, 1]
    # 2/3 and 1/3 of the replies: -(2/3 ln 2/3 + 1/3 ln 1/3)
    assert maths.semantic_entropy([0, 0, 1]) == pytest.approx(0.6365141683)


def test_entailment_one_way_is_not_the_same_meaning() -> None:
    entailment = np.array([[1.0, 0.9], [0.2, 1.0]])
    narrower = Matrices(entailment, np.array([[0.0, 0.05], [0.5, 0.0]]))
    assert maths.clusters(narrower).tolist() == [0, 1]


def test_likelihoods_weigh_meanings() -> None:
    # meanings of probability .5 + .25 and .125: minus the mean of their logarithms over replies
    logs = np.log([0.5, 0.25, 0.125])
    expected = -(2 * math.log(0.75) + math.log(0.125)) / 3
    assert maths.semantic_entropy([0, 0, 1], logs) == pytest.approx(expected)


def test_ngrams_by_hand() -> None:
    # five tokens in all; "b" is one of them, "a" two
    sentences, other = [["A", "b"]], [["a", "c", "c"]]
    mean, largest = maths.selfcheck_ngram(sentences, [sentences, other])
    assert mean == pytest.approx([-(math.log(2 / 5) + math.log(1 / 5)) / 2])
    assert largest == pytest.approx([-math.log(1 / 5)])
    of_two, _ = maths.selfcheck_ngram(sentences, [sentences, other], n=2)
    # bigrams: (, a) twice, (a, b), (a, c), (c, c)
    assert of_two == pytest.approx([-(math.log(2 / 5) + math.log(1 / 5)) / 2])


def test_a_few_alternatives_give_a_lower_bound_of_the_entropy() -> None:
    whole = np.log([0.5, 0.2, 0.2, 0.1])
    assert maths.entropy(whole) == pytest.approx(1.2206072645)
    # the rest of .3 as one alternative
    assert maths.entropy(whole[:2]) == pytest.approx(
        -(0.5 * math.log(0.5) + 0.2 * math.log(0.2) + 0.3 * math.log(0.3))
    )
    assert maths.entropy([0.0]) == 0


def test_only_what_contradicts_a_token_makes_it_less_sure() -> None:
    half = math.log(0.5)
    assert maths.claim_conditioned([[(half, "entail"), (half, "neutral")]]) == pytest.approx(0)
    assert maths.claim_conditioned([[(half, "entail"), (half, "contra")]]) == pytest.approx(0.5)
    assert maths.claim_conditioned([]) == 0


def test_nothing_on_either_side_is_neither() -> None:
    assert maths.ratio([0.0, 0.3], [0.0, 0.1]).tolist() == [0.5, pytest.approx(0.75)]


@st.composite
def any_matrices(draw: st.DrawFn) -> Matrices:
    k = draw(st.integers(2, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shares = rng.dirichlet([0.3, 0.3, 0.3], size=(k, k))
    entailment, contradiction = shares[..., 0].copy(), shares[..., 2].copy()
    np.fill_diagonal(entailment, 1)
    np.fill_diagonal(contradiction, 0)
    return Matrices(entailment, contradiction)


@given(any_matrices(), st.randoms(use_true_random=False))
def test_the_order_of_replies_changes_nothing_and_bounds_hold(replies: Matrices, dice: Any) -> None:
    k = len(replies.entailment)
    order = list(range(k))
    dice.shuffle(order)
    moved = Matrices(*(one[np.ix_(order, order)] for one in replies))
    for found, again, least, most in (
        (maths.semantic_sets(replies), maths.semantic_sets(moved), 1, k),
        (*(maths.eigenvalue_sum(maths.similarities(m)) for m in (replies, moved)), 1, k),
        (*(maths.degree(maths.similarities(m)) for m in (replies, moved)), 0, 1),
        (*(maths.kernel_entropy(m) for m in (replies, moved)), 0, 1),
        (*(maths.luq(maths.agreement(m)) for m in (replies, moved)), 0, 1),
    ):
        assert found == pytest.approx(again, abs=1e-6)
        assert least - 1e-9 <= found <= most + 1e-9
    entropy = maths.semantic_entropy(maths.clusters(replies))
    assert 0 <= entropy <= math.log(k) + 1e-9


def _best_f1(one: Any, other: Any) -> float:
    """BERTScore's F in loops (Zhang et al. 2020, section 3), special tokens in no mean."""

    def cosine(x: Any, y: Any) -> float:
        return float(np.dot(x, y) / (np.linalg.norm(x) * np.linalg.norm(y)))

    def mean(a: Any, b: Any) -> float:
        rows = [x for place, x in enumerate(a.vectors) if place not in a.special]
        return sum(max(cosine(x, y) for y in b.vectors) for x in rows) / len(rows)

    recall, precision = mean(other, one), mean(one, other)
    return 2 * precision * recall / (precision + recall)


def test_selfcheck_bertscore_in_loops() -> None:
    rng = np.random.default_rng(5)

    def text(n: int) -> TokenVectors:
        return TokenVectors(("t",) * n, rng.uniform(0.1, 1, (n, 6)).astype("float32"), (0, n - 1))

    answer, replies = [text(4), text(6)], [[text(3)], [text(5), text(7)], [text(4)]]
    weights = [1, 2, 3]
    wanted = [
        1
        - sum(w * max(_best_f1(one, o) for o in r) for w, r in zip(weights, replies, strict=True))
        / 6
        for one in answer
    ]
    np.testing.assert_allclose(
        maths.selfcheck_bertscore(answer, replies, weights), wanted, atol=1e-6
    )


def test_selfcheck_bertscore_of_the_same_sentence_is_0() -> None:
    one = TokenVectors(("a", "b"), np.eye(2, dtype=np.float32))
    other = TokenVectors(("c", "d"), -np.eye(2, dtype=np.float32))
    assert maths.selfcheck_bertscore([one], [[other, one]], [1]) == pytest.approx(0)
    assert maths.selfcheck_bertscore([one], [[other]], [1]) == 1
