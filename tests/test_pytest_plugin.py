"""``assert_trust``: the message, the bounds, and that models are loaded once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.people.towns import JUNK, towns
from tests.support import Recorder
from trustassay.backends.lexical import LexicalEntailer
from trustassay.metrics import Faithfulness
from trustassay.pytest_plugin import AssertTrust

GOOD = next(towns(1, ids="a"))
BAD = next(towns(1, junk=True))


@pytest.fixture
def check() -> AssertTrust:
    return AssertTrust({"entailer": "lexical", "embedder": "embedded"})


def test_a_good_answer_passes_and_its_assessment_is_returned(check: AssertTrust) -> None:
    found = check(GOOD, "grounding", at_least=0.9)
    assert (found.id, found.score) == ("a0", 1.0)
    assert check(BAD, Faithfulness(), at_most=0.1).verdict == "not found"


def test_the_message_has_reason_and_evidence(check: AssertTrust) -> None:
    with pytest.raises(AssertionError) as raised:
        check(BAD, "faithfulness", at_least=0.9)
    text = str(raised.value)
    assert text.startswith(
        "faithfulness: not supported; score 0, expected at least 0.9\nverdict: not found\nreason: "
    )
    assert f"text: {JUNK.removesuffix(' [1].')}" in text
    assert "“Purple”, “elephants”" in text
    with pytest.raises(AssertionError, match=r"supported; score 1, .* 0.1 and at most"):
        check(GOOD, "faithfulness", at_least=0.1, at_most=0.5)


def test_what_cannot_be_scored_fails(check: AssertTrust) -> None:
    with pytest.raises(AssertionError, match="no score, expected at least 0\ncould not be scored"):
        check(GOOD | {"response": " "}, "faithfulness", at_least=0)
    refusal = GOOD | {"response": "I am sorry, but I cannot find that in the documents."}
    with pytest.raises(AssertionError, match=r"not answered \(refused\); no score.*\nverdict: ref"):
        check(refusal, "faithfulness", at_least=0)


def test_a_bound_is_needed(check: AssertTrust) -> None:
    with pytest.raises(ValueError, match="expected a bound of the score, at_least= or at_most="):
        check(GOOD, "faithfulness")


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"at_least": 90}, "at_least=90: faithfulness scores from 0 to 1; .*; 90 % of .* is 0.9"),
        (
            {"at_most": -0.1},
            "at_most=-0.1: faithfulness scores from 0 to 1; expected a bound in that range$",
        ),
    ],
)
def test_a_bound_outside_the_range_is_refused(
    check: AssertTrust, bounds: dict[str, float], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        check(GOOD, "faithfulness", **bounds)


def test_a_model_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[LexicalEntailer] = []

    def note(entailer: LexicalEntailer) -> None:
        loaded.append(entailer)

    monkeypatch.setattr(LexicalEntailer, "__init__", note)
    check = AssertTrust({"entailer": "lexical"})
    for metric in ("grounding", "faithfulness", "faithfulness"):
        check(GOOD, metric, at_least=0.9)
    assert len(loaded) == 1


def test_an_object_is_used_as_it_is() -> None:
    entailer = Recorder()
    assert AssertTrust({"entailer": entailer})(BAD, "grounding", at_least=1).score == 1
    assert entailer.batches


@pytest.mark.slow
def test_the_fixture_in_pytest(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n"
        "@pytest.fixture(scope='session')\n"
        "def trust_backends():\n    return {'entailer': 'lexical'}\n"
    )
    (tmp_path / "test_answers.py").write_text(
        "".join(
            f"def test_{name}(assert_trust):\n"
            f"    assert_trust({row!r}, 'faithfulness', at_least=0.9)\n\n"
            for name, row in (("good", GOOD), ("bad", BAD))
        )
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "trustassay.pytest_plugin"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "E       reason: 1 of 1 sentence not found" in done.stdout
