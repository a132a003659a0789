"""What a model card says of the pairs: each run behind the weights is counted once."""

from lab.training.combine import licences, runs


def _note(mixture: str, seed: int, start: object = None) -> dict[str, object]:
    note: dict[str, object] = {"options": {"mixture": mixture, "seed": seed}}
    return note | ({"began with": start} if start else {})


def test_runs_behind_a_mean_are_counted_once() -> None:
    first = _note("worlds=10,gap=1", 1)
    mean = {"mean of": [_note("written=5", 2, first), _note("written=7", 3, first)]}
    last = _note("written=5", 4, mean)
    assert licences({"mean of": [mean, last]}) == {
        "worlds": {"pairs": 10, "licence": "made here"},
        "gap": {"pairs": 1, "licence": "Apache-2.0, text CC BY-SA 3.0"},
        "written": {"pairs": 17, "licence": "made here"},
    }


def test_runs_come_in_the_order_in_which_they_began() -> None:
    first = _note("worlds=10", 1)
    mean = {"mean of": [_note("written=5", 2, first), _note("written=7", 3, first)]}
    last = {"options": {"seed": 4, "start": "/a/path/mean"}, "began with": mean}
    found = runs({"mean of": [first, last]})
    assert [options["seed"] for options in found] == [1, 2, 3, 4]
    assert found[3]["start"] == "mean"
