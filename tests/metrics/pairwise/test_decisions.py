"""A decision model prefers one of two answers, in both orders, or finds them equal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.decision_server import DecisionServer
from trustassay.api import score
from trustassay.errors import UsageError
from trustassay.metrics.pairwise.metric import OTHER_RESPONSE, Pairwise

PAIR = {"id": "a", "question": "q", "response": "first {%s}", OTHER_RESPONSE: "other {%s}"}


def compare(uri: str, here: str, there: str, **options: Any) -> Any:
    sample = {**PAIR, "response": f"first {here}", OTHER_RESPONSE: f"other {there}"}
    (result,) = score([sample], metrics=[Pairwise(**options)], judge=uri).assessments
    return result


@pytest.mark.parametrize("scheme", ["systemone", "decisions"])
@pytest.mark.parametrize(
    ("mark", "verdict"),
    [("{.8 .1 .1}", "inconsistent"), ("{.1 .1 .8}", "unsure"), ("{.1 .1 .1}", "unreadable")],
)
def test_a_choice_in_both_orders(scheme: str, mark: str, verdict: str) -> None:
    with DecisionServer("vllm") as server:
        # The same probabilities for both places, whatever stands there.
        result = compare(f"{scheme}:m@{server.url}", mark, mark)
        key = "state" if scheme == "systemone" else "input"
        states = [body[key] for body in server.bodies]
    assert result.verdict == verdict
    assert sorted(state.index("first") < state.index("other") for state in states) == [False, True]
    rows = [row for row in result.evidence if "choice" in row]
    assert all("no reason" in row["reply"] for row in rows) == (verdict != "unreadable")


def test_a_preference_that_holds_in_both_orders_wins() -> None:
    with DecisionServer("vllm") as server:
        # The mark that comes first counts: it is that of the answer in place A.
        result = compare(f"systemone:m@{server.url}", "{.8 .1 .1}", "{.1 .8 .1}")
    assert (result.verdict, result.score) == ("win", 1)


def test_a_prompt_of_the_user_is_refused(tmp_path: Any) -> None:
    file = tmp_path / "p.jinja"
    file.write_text("{{ question }} {{ first }} {{ second }} {{ fence }}")
    with pytest.raises(UsageError, match="which ignores prompt"):
        compare("systemone:m@http://127.0.0.1:9", "", "", prompt=str(file))
