"""A grown input: new samples alone are scored, into the folder of yesterday."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.support import Recorder, jsonl, lines, record, records, summary_of
from trustassay import score
from trustassay.errors import RunFolderError, UsageError
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import BadInputError

METRIC = "grounding"


def scored(folder: Path, *, out: str = "run", **options: Any) -> Recorder:
    recorder = Recorder()
    given = {"metrics": METRIC, "entailer": recorder, "append": True, **options}
    score(folder / "a.jsonl", out=folder / out, **given)
    return recorder


def state(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.name != "calls.sqlite"}


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """Return a folder with a run of six records, and an input of nine."""
    jsonl(tmp_path / "a.jsonl", records(6))
    scored(tmp_path)
    jsonl(tmp_path / "a.jsonl", records(9))
    return tmp_path


def test_what_is_new_is_scored_and_the_rest_is_kept(grown: Path) -> None:
    before = summary_of(grown / "run")
    asked = scored(grown).asked
    assert len(asked) == 12, "four pairs of each of three"
    assert not any(f"Number {i} " in one for _, one in asked for i in range(6))
    summary = summary_of(grown / "run")
    assert summary.pop("grown") == {"samples": 6, "metrics": before["metrics"]}
    scored(grown, out="fresh", append=False)
    assert (grown / "run/assessments.jsonl").read_bytes() == (
        grown / "fresh/assessments.jsonl"
    ).read_bytes()
    assert summary["metrics"] == summary_of(grown / "fresh")["metrics"]
    assert "3 of 9 answers are new." in (grown / "run/report.html").read_text()

    after = state(grown / "run")
    assert not scored(grown).batches
    assert not scored(grown, append=False).batches, "the run is that of today's input"
    assert state(grown / "run") == after, "and nothing is written where nothing is new"


def test_new_records_may_stand_anywhere(grown: Path) -> None:
    rows = records(9)
    jsonl(grown / "a.jsonl", [rows[8], *rows[3:6], rows[7], *rows[:3], rows[6]])
    assert len(scored(grown).asked) == 12
    scored(grown, out="fresh", append=False)
    assert (grown / "run/assessments.jsonl").read_bytes() == (
        grown / "fresh/assessments.jsonl"
    ).read_bytes()
    jsonl(grown / "a.jsonl", rows)
    assert not scored(grown).batches
    ids = [one["id"] for one in lines(grown / "run/assessments.jsonl")]
    assert ids == [one["id"] for one in rows], "another order alone sorts them anew"


def test_records_without_ids_are_known_by_their_content(tmp_path: Path) -> None:
    rows = [{k: v for k, v in one.items() if k != "id"} for one in [*records(3), record(0)]]
    jsonl(tmp_path / "a.jsonl", rows)
    scored(tmp_path)
    jsonl(tmp_path / "a.jsonl", [*rows, *[{k: v for k, v in record(7).items() if k != "id"}]])
    assert len(scored(tmp_path).asked) == 4
    jsonl(tmp_path / "a.jsonl", [*rows[:2], {**rows[2], "response": "No."}, *rows[3:]])
    with pytest.raises(
        RunFolderError,
        match=r"2 of 5 scored samples have changed or .*, such as '\w+';",
    ):
        scored(tmp_path)


def test_a_changed_record_is_named_with_its_place_and_nothing_is_touched(grown: Path) -> None:
    before, rows = state(grown / "run"), records(9)
    rows[4]["response"] = "Number 4 is even [1]."
    del rows[5]["response"]
    jsonl(grown / "a.jsonl", [*rows[:5], rows[6]])
    message = r"a\.jsonl:5: response: has changed since 'q4' was scored; choose another --out"
    with pytest.raises(BadInputError, match=message):
        scored(grown)
    with pytest.raises(
        RunFolderError,
        match=r"2 of 6 scored samples have changed or .*, such as '\w+';",
    ):
        scored(grown, skip_bad=True)
    assert state(grown / "run") == before


def test_a_record_that_is_gone_is_an_error(grown: Path) -> None:
    before = state(grown / "run")
    jsonl(grown / "a.jsonl", records(9)[1:])
    with pytest.raises(
        RunFolderError, match=r"1 of 6 .* are no longer in the input, such as 'q0';"
    ):
        scored(grown)
    assert state(grown / "run") == before


def test_other_settings_are_another_run(grown: Path) -> None:
    with pytest.raises(RunFolderError, match=r"Different: seed was 0, now 1$"):
        scored(grown, seed=1)
    with pytest.raises(RunFolderError, match=r"add --append if records were only added"):
        scored(grown, append=False)
    with pytest.raises(RunFolderError) as error:
        scored(grown, append=False, seed=1)
    assert "--append" not in str(error.value)


def test_stopped_before_the_samples_are_replaced_it_counts_what_is_new(
    grown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def stop(self: Path, target: Path) -> Path:
        if target.name == "samples.jsonl":
            raise KeyboardInterrupt
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            scored(grown)
    assert len(scored(grown).asked) == 12
    assert summary_of(grown / "run")["grown"]["samples"] == 6


def test_stopped_on_the_way_it_goes_on(grown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(folder: RunFolder) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "drop_outputs", stop)
        with pytest.raises(KeyboardInterrupt):
            scored(grown)
    assert len(scored(grown).asked) == 12
    assert summary_of(grown / "run")["grown"]["samples"] == 6
    jsonl(grown / "a.jsonl", records(10))
    scored(grown)
    assert summary_of(grown / "run")["grown"]["samples"] == 9, "that of the last time"


def test_responses_that_were_asked_for_are_kept(tmp_path: Path) -> None:
    asked = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "It is odd [1]."

    for n in (3, 5, 5):
        rows = [{**one, "response": None} for one in records(n)]
        jsonl(tmp_path / "a.jsonl", rows)
        scored(tmp_path, model=model)
    assert len(asked) == 5
    jsonl(tmp_path / "a.jsonl", [{**rows[0], "question": "What else?"}, *rows[1:]])
    with pytest.raises(BadInputError, match=r"a\.jsonl:1: question: has changed"):
        scored(tmp_path, model=model)


def test_a_share_grows_with_the_input(tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", records(60))
    scored(tmp_path, sample="20%")
    first = {one["id"] for one in lines(tmp_path / "run/samples.jsonl")}
    jsonl(tmp_path / "a.jsonl", records(120))
    scored(tmp_path, sample="20%")
    second = {one["id"] for one in lines(tmp_path / "run/samples.jsonl")}
    assert first < second
    assert summary_of(tmp_path / "run")["drawn"]["of"] == 120
    with pytest.raises(RunFolderError, match=r"Different: drawn\.sample was '20%', now '30%'"):
        scored(tmp_path, sample="30%")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": 5}, "append: with sample, expected a share"),
        ({"sample": "5%", "sample_by": "model"}, "append: with sample, .* no sample_by"),
        ({"metrics": "fewl:form=agreement"}, "would change, because fewl compares each answer"),
        (
            {"metrics": "faithfulness", "second": "lexical"},
            "because the second reader's answers are drawn",
        ),
        ({"engine": "ray"}, "append: not with engine='ray'"),
    ],
)
def test_what_would_change_earlier_scores_is_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    rows = [{**one, "references": {"a": "x", "b": "y"}, "model": "m"} for one in records(3)]
    jsonl(tmp_path / "a.jsonl", rows)
    with pytest.raises(UsageError, match=message):
        scored(tmp_path, entailer=None, **options)


def test_the_figures_before_stand_beside_those_of_now(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", records(30))
    command = ("score", "a.jsonl", "--metric", "faithfulness", "--entailer", "lexical", "--append")
    assert "--append: needs --out" in cli(*command).err
    assert "before" not in cli(*command, "--out", "run").err
    jsonl(tmp_path / "a.jsonl", [*records(30), {**record(77), "response": "Stones sing loudly."}])
    said = cli(*command, "--out", "run", "--json")
    headings = ["figure", "before", "interval", "n", "now", "interval", "n"]
    assert headings in [line.split() for line in said.err.splitlines()]
    assert "of 31 questions." in said.err
    assert "1 of 31 answers is new." in said.err
    assert json.loads(said.out)["grown"]["samples"] == 30
