"""References that are drawn anew: which ones, and that all answers of a question get the same."""

import numpy as np

from trustassay.papers.experiments.measuring import FewlArrays, Penalty, resample_references


def numbers_of(present: list[list[bool]]) -> FewlArrays:
    """Arrays whose similarity is the place of its reference, so that a draw can be read off."""
    mask = np.array(present)
    places = np.tile(np.arange(mask.shape[1], dtype=float), (len(mask), 1))
    return FewlArrays(
        ids=[str(n) for n in range(len(mask))],
        names=[str(n) for n in range(mask.shape[1])],
        present=mask,
        single=np.eye(mask.shape[1], dtype=bool)[mask.argmax(axis=1)],
        similarity=places,
        nearest=Penalty(places, mask & (places != 1)),
        random=Penalty(places, mask),
        ability=places,
        ours=places,
    )


def test_all_answers_of_a_question_get_the_same_references() -> None:
    numbers = numbers_of([[True] * 5] * 6)
    questions = np.array([0, 0, 0, 1, 1, 1])
    drawn = resample_references(numbers, questions, np.random.default_rng(1))
    assert (drawn.similarity[:3] == drawn.similarity[0]).all()
    assert (drawn.similarity[3:] == drawn.similarity[3]).all()
    assert not (drawn.similarity[0] == drawn.similarity[3]).all()
    for other in (drawn.nearest.values, drawn.random.values, drawn.ability, drawn.ours):
        assert (drawn.similarity == other).all()
    # A reference without a penalty has none where it is drawn either.
    assert (drawn.nearest.present == (drawn.similarity != 1)).all()


def test_only_references_that_answered_are_drawn() -> None:
    numbers = numbers_of([[False, True, False, True], [True, False, False, False]])
    seen = set()
    for seed in range(50):
        drawn = resample_references(numbers, np.arange(2), np.random.default_rng(seed))
        # As many as answered, in the first columns; the single one is the first that is drawn.
        assert drawn.present.tolist() == [[True, True, False, False], [True, False, False, False]]
        assert drawn.single.tolist() == [[True, False, False, False]] * 2
        seen |= set(drawn.similarity[0, :2].tolist())
        assert drawn.similarity[1, 0] == 0
    assert seen == {1, 3}


def test_draws_have_the_frequencies_of_drawing_with_replacement() -> None:
    n = 4000
    numbers = numbers_of([[True] * 5] * n)
    drawn = resample_references(numbers, np.arange(n), np.random.default_rng(0))
    shares = np.bincount(drawn.similarity[:, 0].astype(int), minlength=5) / n
    assert np.abs(shares - 0.2).max() < 0.03
    distinct = np.mean([len(set(row)) for row in drawn.similarity.tolist()])
    assert abs(distinct - 5 * (1 - 0.8**5)) < 0.05
