"""The first pass: every fault at once, nothing started, and an id for everybody."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import Recorder, lines, record, records
from trustassay import Document, Sample, score
from trustassay.runs import intake
from trustassay.runs.intake import MAX_FAULTS_KEPT, BadInputError, RunOptions
from trustassay.runs.lines import hash64

METRICS = ["grounding"]


def ids(samples: Any, **options: Any) -> list[str]:
    return [a.id for a in score(samples, metrics=METRICS, **options).assessments]


def test_all_faults_are_told_at_once_and_nothing_is_started(tmp_path: Path) -> None:
    rows = records(6)
    rows[1].pop("question")
    rows[3]["response"] = ["a"]
    rows[3]["documents"] = 7
    rows[5].pop("response")
    recorder = Recorder()
    with pytest.raises(BadInputError) as error:
        score(rows, metrics=METRICS, entailer=recorder, out=tmp_path / "run")
    assert error.value.count == 3
    assert "\n".join(map(str, error.value.faults)).splitlines() == [
        "sample 2: question: is missing (expected text)",
        "sample 4: documents: expected a list of documents, got 7",
        "sample 4: response: expected text, got a list",
        "sample 6: response: is missing (expected the text to assess)",
    ]
    assert not recorder.batches
    assert not (tmp_path / "run").exists()


def test_the_first_thousand_faults_are_kept_and_all_are_counted() -> None:
    with pytest.raises(BadInputError) as error:
        ids({"id": f"{i}"} for i in range(1200))
    assert error.value.count == 1200
    assert len(error.value.faults) == MAX_FAULTS_KEPT


def test_faulty_records_are_left_out_and_counted_on_request(tmp_path: Path) -> None:
    rows = [record(0), {"id": "bad"}, record(1), "no record", record(2)]
    run = score(rows, metrics=METRICS, skip_bad=True, out=tmp_path / "run")  # type: ignore[arg-type]
    assert [a.id for a in run.assessments] == ["q0", "q1", "q2"]
    assert run.outcome.intake.faulty == 2
    assert run.summary_file["skipped"] == 2


def test_nothing_usable_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"no usable sample .*: 1 faulty record skipped; sample 1: "
    ):
        ids([{"id": "bad"}], skip_bad=True)
    with pytest.raises(ValueError, match="no records"):
        ids([])


def test_an_id_that_stands_twice_is_a_fault() -> None:
    with pytest.raises(
        BadInputError, match="sample 3: id: 'q0' is already used by an earlier record"
    ):
        ids([record(0), record(1), record(0)])


def test_equal_records_without_id_get_ids_of_their_own() -> None:
    def nameless(i: int) -> dict[str, Any]:
        return {k: v for k, v in record(i).items() if k != "id"}

    found = ids([nameless(0), nameless(1), nameless(0), nameless(0)])
    assert len(set(found)) == 4
    assert found[2:] == [f"{found[0]}-2", f"{found[0]}-3"]
    assert found == ids([nameless(0), nameless(1), nameless(0), nameless(0)])


def test_an_id_that_looks_like_a_made_one_is_not_taken_twice() -> None:
    nameless = {k: v for k, v in record(0).items() if k != "id"}
    (name,) = ids([nameless])
    assert ids([nameless, record(1) | {"id": f"{name}-2"}, nameless])[2] == f"{name}-3"


def test_the_work_for_equal_records_grows_with_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[str] = []

    def counted(*parts: str) -> int:
        names.extend(parts)
        return hash64(*parts)

    monkeypatch.setattr(intake, "hash64", counted)
    nameless = {"question": "q", "response": "r", "documents": []}
    assert len(set(ids([nameless] * 300))) == 300
    assert len(names) < 5 * 300  # to try all names that are taken would be 45,000


# ---- samples as objects ----


def test_sample_objects_and_records_are_the_same_thing(tmp_path: Path) -> None:
    for name, rows in (("a", records(3)), ("b", [Sample.parse(r) for r in records(3)])):
        score(rows, metrics=METRICS, out=tmp_path / name)
    stored = [(tmp_path / n / "samples.jsonl").read_bytes() for n in "ab"]
    assert stored[0] == stored[1]


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        (Sample("a", "", response="r", documents=()), "sample 1: question: is blank"),
        (Sample("", "q", response="r", documents=()), "sample 1: id: is blank"),
        (Sample("a", "q", response=["r"], documents=()), "sample 1: response: expected text"),  # type: ignore[arg-type]
        (
            Sample(
                "a",
                "q",
                response="r",
                answers=(("x",),),
                documents=(Document("d", "t", supports=(1, 0)),),
            ),
            "2 flags for 1 answers",
        ),
    ],
)
def test_a_sample_that_was_built_wrong_is_a_fault(sample: Sample, words: str) -> None:
    with pytest.raises(BadInputError) as error:
        ids([sample])
    assert words in str(error.value)


def test_a_text_where_a_list_of_texts_belongs_is_one_text(tmp_path: Path) -> None:
    """Read as a list it would be held against single letters (quirk B1 of the spec)."""
    sample = Sample("a", "q", response="r", documents=(), answers=("Nile",), claims="The Nile.")  # type: ignore[arg-type]
    score([sample], metrics=METRICS, out=tmp_path / "run")
    (stored,) = lines(tmp_path / "run" / "samples.jsonl")
    assert stored["answers"] == [["Nile"]]
    assert stored["claims"] == ["The Nile."]


def test_ids_with_lone_surrogates_are_cleaned_before_anything_else(tmp_path: Path) -> None:
    sample = Sample("\ud800", "q", response="r", documents=())
    assert ids([sample], out=tmp_path / "run") == ["\ufffd"]


def test_limit_reads_no_further_than_it_must() -> None:
    def rows() -> Any:
        yield from records(3)
        raise AssertionError("read too far")

    assert ids(rows(), limit=3) == ["q0", "q1", "q2"]


def test_options_have_the_documented_defaults() -> None:
    assert RunOptions().samples_at_once is None  # 256, or what the endpoints need
    assert RunOptions().seed == 0
