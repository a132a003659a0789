"""What raters do is stored, taken up again, and read by `agree`."""

from __future__ import annotations

import asyncio
import json
import resource
from pathlib import Path

import pytest

from tests.people.annotate.helpers import MODELS, answers, project, session, two_files
from tests.support import jsonl, lines
from trustassay import score
from trustassay.input.ratings import read_ratings
from trustassay.metrics.judge import read_rubric
from trustassay.people.annotate.items import RatingInputOptions
from trustassay.people.annotate.project import AnnotateOptions, AnnotationProject, open_project
from trustassay.people.annotate.session import (
    AnnotationSession,
    NotOfferedError,
    RatingsFile,
    RatingState,
)
from trustassay.report.serving import AccessLinks
from trustassay.runs.folder import RunFolder


def rate_all(found: AnnotationSession, rater: str, choice: str = "4") -> None:
    async def work() -> None:
        while (step := found.raters[rater].current) is not None:
            await found.rate(rater, step, choice)

    asyncio.run(work())


def test_ratings_are_lines_that_agree_reads(tmp_path: Path) -> None:
    made, out = project(tmp_path, again=0.5), tmp_path / "r.jsonl"
    with session(made, out) as found:
        rate_all(found, "anna", "4")
        rate_all(found, "bela", "0")
    start, *rows = lines(out)
    assert start["action"] == "start"
    assert len(rows) == 2 * (8 + 4)
    assert {(row["rater"], row["rating"]) for row in rows} == {("anna", 4), ("bela", 0)}
    assert {row["model"] for row in rows} == set(MODELS)
    read = read_ratings(out)
    assert sum(one.repeat == 1 for one in read.ratings) == 8
    assert {(one.rater, one.value) for one in read.ratings} == {("anna", 4), ("bela", 0)}
    assert read.missing_count == 0


def test_undo_and_skip_are_further_lines(tmp_path: Path) -> None:
    made, out = project(tmp_path), tmp_path / "r.jsonl"

    async def work(found: AnnotationSession) -> None:
        await found.rate("anna", 0, "5", "too high")
        await found.undo("anna", 0)
        assert found.raters["anna"].current == 0
        assert found.raters["anna"].undone_states[0] == RatingState("5", "too high")
        await found.rate("anna", 0, "2")
        await found.skip("anna", 1, "who knows")
        await found.rate("anna", 2, "3")
        await found.undo("anna", 0)  # no longer the last one: a request that came twice

    with session(made, out) as found:
        asyncio.run(work(found))
        assert found.raters["anna"].skipped == [1]
    rows = lines(out)[1:]
    assert [(row["rating"], row.get("action")) for row in rows] == [
        (5, None),
        (None, "undo"),
        (2, None),
        (None, "skip"),
        (3, None),
    ]
    read = read_ratings(out)
    assert [one.value for one in read.ratings] == [2, 3]
    assert read.missing_count == 1
    with session(made, out) as found:
        assert found.raters["anna"].current == 3
        assert found.raters["anna"].states[1] == RatingState(None, "who knows")
        asyncio.run(found.reopen("anna"))
        assert found.raters["anna"].current == 1
    assert read_ratings(out).missing_count == 0


def test_undo_goes_back_one_after_another_also_after_a_restart(tmp_path: Path) -> None:
    made, out = project(tmp_path), tmp_path / "r.jsonl"

    async def three(found: AnnotationSession) -> None:
        for step in range(3):
            await found.rate("anna", step, "1")

    async def back(found: AnnotationSession) -> None:
        for step in (2, 1, 0):
            assert found.raters["anna"].last == step
            await found.undo("anna", step)

    with session(made, out) as found:
        asyncio.run(three(found))
    with session(made, out) as found:
        asyncio.run(back(found))
        assert found.raters["anna"].last is None
        assert found.raters["anna"].current == 0


def test_the_same_request_twice_is_one_rating(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"

    async def work(found: AnnotationSession) -> None:
        assert await found.rate("anna", 0, "5", " note\r\nmore ")
        assert not await found.rate("anna", 0, "5", "note\nmore")
        assert await found.rate("anna", 0, "4")  # by the browser's Back: the last one counts

    with session(project(tmp_path), out) as found:
        asyncio.run(work(found))
    assert [one.value for one in read_ratings(out).ratings] == [4]
    assert lines(out)[1]["note"] == "note\nmore"


@pytest.mark.parametrize(("step", "choice"), [(8, "4"), (-1, "4"), (0, "6"), (0, ""), (0, "4.0")])
def test_what_was_not_on_offer_is_refused(tmp_path: Path, step: int, choice: str) -> None:
    with session(project(tmp_path), tmp_path / "r.jsonl") as found:
        with pytest.raises(NotOfferedError):
            asyncio.run(found.rate("anna", step, choice))
        assert found.raters["anna"].states == {}
    assert len(lines(tmp_path / "r.jsonl")) == 1


def test_words_keep_the_order_of_their_rubric(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"

    async def work(found: AnnotationSession) -> None:
        await found.rate("anna", 0, "yes")
        await found.rate("anna", 1, "no")

    with session(project(tmp_path, rubric="verdict"), out) as found:
        asyncio.run(work(found))
    read = read_ratings(out)
    assert read.categories == ("no", "yes")
    assert read.ordered
    assert [one.value for one in read.ratings] == [1, 0]
    with session(project(tmp_path, rubric="categories"), tmp_path / "c.jsonl") as found:
        asyncio.run(found.rate("anna", 0, "irrelevant"))
    assert not read_ratings(tmp_path / "c.jsonl").ordered


# Several rubrics

TWO = ["truthfulness", "verdict"]


def test_each_rubric_has_a_record_and_is_read_alone(tmp_path: Path) -> None:
    made, out = project(tmp_path, rubrics=TWO), tmp_path / "r.jsonl"

    async def work(found: AnnotationSession) -> None:
        anna = found.raters["anna"]
        await found.rate("anna", 0, "truthfulness/4")
        assert (anna.current, anna.rated) == (0, 0)
        await found.rate("anna", 0, "verdict/yes", "both")
        assert (anna.current, anna.rated) == (1, 1)
        await found.rate("anna", 1, "verdict/no")  # in any order
        await found.rate("anna", 0, "truthfulness/2")  # the last one counts

    with session(made, out) as found:
        asyncio.run(work(found))
    start, *rows = lines(out)
    assert list(start["rubrics"]) == TWO
    assert [(row["rubric"], row["rating"]) for row in rows] == [
        ("truthfulness", 4), ("verdict", "yes"), ("verdict", "no"), ("truthfulness", 2),
    ]  # fmt: skip
    assert [one.value for one in read_ratings(out, fields={"rating": "truthfulness"}).ratings] == [
        2
    ]
    words = read_ratings(out, fields={"rating": "verdict"})
    assert (words.categories, words.ordered) == (("no", "yes"), True)
    assert [one.value for one in words.ratings] == [1, 0]
    with pytest.raises(
        ValueError, match=r"2 rubrics; expected --field rating=RUBRIC with one of tr"
    ):
        read_ratings(out)
    with pytest.raises(ValueError, match="got 'code'"):
        read_ratings(out, fields={"rating": "code"})
    with session(made, out) as found:
        anna = found.raters["anna"]
        assert (anna.current, anna.next, anna.note(0)) == (1, 2, "both")
        assert found.raters["anna"].states[3] == RatingState("no")


def test_a_skip_leaves_all_rubrics_that_are_open_and_undo_takes_them_back(tmp_path: Path) -> None:
    made, out = project(tmp_path, rubrics=TWO), tmp_path / "r.jsonl"

    async def work(found: AnnotationSession) -> None:
        anna = found.raters["anna"]
        await found.skip("anna", 0)
        assert (anna.skipped, anna.current, anna.last) == ([0], 1, 1)
        await found.undo("anna", 1)
        assert (anna.skipped, anna.current, anna.states) == ([], 0, {})
        await found.rate("anna", 0, "truthfulness/4")
        await found.skip("anna", 0)
        assert (anna.skipped, anna.rated, anna.states[0].choice) == ([0], 0, "4")
        await found.reopen("anna")
        assert (anna.next, anna.current) == (1, 0)
        for wrong in ("4", "verdict/4", "code/4", "truthfulness/", "/4"):
            with pytest.raises(NotOfferedError):
                await found.rate("anna", 0, wrong)

    with session(made, out) as found:
        asyncio.run(work(found))
    assert [row.get("action") for row in lines(out)[1:]] == [
        "skip", "skip", "undo", "undo", None, "skip", "undo",
    ]  # fmt: skip


def test_rubrics_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--rubric: two rubrics have the same name"):
        project(tmp_path, rubrics=["answer", "answer"])
    with pytest.raises(ValueError, match="expected at most one, as a guide"):
        project(tmp_path, rubrics=TWO, pairs=two_files(tmp_path))
    out = tmp_path / "r.jsonl"
    with session(project(tmp_path, rubrics=TWO), out) as found:
        asyncio.run(found.rate("anna", 0, "verdict/yes"))
    out.write_text(out.read_text().replace('"rubric": "verdict"', '"rubric": "code"'))
    with pytest.raises(ValueError, match=r"r.jsonl:2: rubric: expected one of .*, got 'code'"):
        session(project(tmp_path, rubrics=TWO), out).__enter__()


# Pairs


def test_a_pair_is_stored_by_file_whatever_the_side(tmp_path: Path) -> None:
    made = project(tmp_path, pairs=two_files(tmp_path, 20), raters=["anna"])
    out = tmp_path / "r.jsonl"
    sides = {one.swapped for one in made.steps["anna"]}
    assert sides == {True, False}

    async def work(found: AnnotationSession) -> None:
        for place, step in enumerate(made.steps["anna"]):
            shown_first = made.items[step.item].answers[1 if step.swapped else 0]
            choice = "first" if shown_first.endswith("a.") else "second"
            await found.rate("anna", place, choice if place else "tie")

    with session(made, out) as found:
        asyncio.run(work(found))
    rows = lines(out)[1:]
    assert [row["rating"] for row in rows] == ["tie"] + ["a"] * 19
    assert {row["first"] for row in rows} == {"a", "b"}
    assert not any("model" in row for row in rows)
    with session(made, out) as found:  # what is stored is read back on the side that it was on
        assert {state.choice for state in found.raters["anna"].states.values()} == {
            "first",
            "second",
            "tie",
        }
    assert read_ratings(out).categories == ("a", "tie")


def test_pairs_are_found_by_question_where_no_id_is_in_both(tmp_path: Path) -> None:
    first = jsonl(tmp_path / "a.jsonl", answers(3, MODELS[:1]))
    second = jsonl(tmp_path / "b.jsonl", answers(5, MODELS[1:]))
    made = project(tmp_path, pairs=(first, second))
    assert [item.answers for item in made.items] == [
        (f"Answer {n}a.", f"Answer {n}b.") for n in range(3)
    ]
    assert made.material.remarks == ["left out: 2 answers in only one of the files"]
    both = [row | {"id": f"new-{n}"} for n, row in enumerate(answers(2))]
    with pytest.raises(ValueError, match="2 questions occur more than once"):
        project(tmp_path, pairs=(first, jsonl(tmp_path / "both.jsonl", both)))
    other = jsonl(tmp_path / "o.jsonl", [{"id": "x", "question": "Else?", "response": "y"}])
    with pytest.raises(ValueError, match="share no id and no question with a response"):
        project(tmp_path, pairs=(first, other))
    same = jsonl(
        tmp_path / "s.jsonl", [{"id": answers(1)[0]["id"], "question": "Else?", "response": "y"}]
    )
    with pytest.raises(ValueError, match="has different questions"):
        project(tmp_path, pairs=(first, same))


# The same command again


def torn(path: Path) -> bytes:
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"item": "hidden-0')
    return whole


def test_an_unfinished_line_is_cut_off(tmp_path: Path) -> None:
    made, out = project(tmp_path), tmp_path / "r.jsonl"
    with session(made, out) as found:
        asyncio.run(found.rate("anna", 0, "3"))
    whole = torn(out)
    assert len(read_ratings(out).ratings) == 1  # `agree` does not wait for a repair
    with session(made, out) as found:
        assert out.read_bytes() == whole
        assert found.raters["anna"].current == 1
        asyncio.run(found.rate("anna", 1, "2"))
    assert [one.value for one in read_ratings(out).ratings] == [3, 2]


def test_a_first_line_that_was_cut_short_is_written_again(tmp_path: Path) -> None:
    made, out = project(tmp_path), tmp_path / "r.jsonl"
    out.write_bytes(b'{"action": "start", "inp')
    with session(made, out):
        assert lines(out) == [made.start]
    out.write_bytes(b'{"act')
    with session(made, out):
        assert lines(out) == [made.start]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("my diary\n", "not a file that `annotate` wrote; nothing was changed"),
        ('{"item": "a", "rater": "x", "rating": 4}\n', "not a file that `annotate` wrote"),
        ("{START}nonsense\n{LINE}", "r.jsonl:2: the line is damaged"),
        ("{START}{START}", "r.jsonl:2: expected one start line"),
        ('{START}{"item": 4, "rater": "anna"}\n', "r.jsonl:2: expected the fields item and rater"),
        ('{START}{"item": "x", "rater": "anna"}\n', "r.jsonl:2: 'anna' was not asked to rate this"),
        ("{LINE7}", "r.jsonl:2: rating: '7' is not a level"),
    ],
)
def test_damaged_files_are_named_and_not_changed(tmp_path: Path, content: str, words: str) -> None:
    made, out = project(tmp_path), tmp_path / "r.jsonl"
    start = json.dumps(made.start) + "\n"
    line = json.dumps({"item": made.items[0].id, "rater": "anna", "rating": 7}) + "\n"
    text = content.replace("{START}", start).replace("{LINE7}", start + line)
    out.write_text(text.replace("{LINE}", line))
    before = out.read_bytes()
    with pytest.raises(ValueError, match=words), session(made, out):
        pass
    assert out.read_bytes() == before


def test_ratings_of_another_input_or_other_options_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    with session(project(tmp_path), out):
        pass
    with pytest.raises(ValueError, match="holds ratings of another input"):
        session(project(tmp_path, answers(5)), out).__enter__()
    with pytest.raises(
        ValueError, match=r"was made with other options: seed 0 \(now 1\); use the same"
    ):
        session(project(tmp_path, seed=1), out).__enter__()
    with pytest.raises(ValueError, match=r"rubric 'answer/1' \(now 'code/1'\)"):
        session(project(tmp_path, rubric="code"), out).__enter__()


def test_raters_may_join_where_all_rate_all(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    with session(project(tmp_path, raters=["anna"]), out) as found:
        asyncio.run(found.rate("anna", 0, "3"))
    with session(project(tmp_path, raters=["bela"]), out) as found:
        asyncio.run(found.rate("bela", 0, "3"))
    assert {one.rater for one in read_ratings(out).ratings} == {"anna", "bela"}
    divided = tmp_path / "d.jsonl"
    with session(project(tmp_path, double=0.5), divided):
        pass
    with pytest.raises(ValueError, match="was made with other options: raters"):
        session(project(tmp_path, double=0.5, raters=["anna", "cili"]), divided).__enter__()


def test_one_process_writes_to_a_file(tmp_path: Path) -> None:
    made, out = project(tmp_path), tmp_path / "r.jsonl"
    with (
        session(made, out),
        pytest.raises(ValueError, match="another process is writing to this file"),
    ):
        RatingsFile(out)
    RatingsFile(out).close()


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    made, out = project(tmp_path), tmp_path / "r.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with session(made, out) as found:
        asyncio.run(found.rate("anna", 0, "3"))
        before = out.read_bytes()
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, hard))
        try:
            with pytest.raises(OSError, match=r"r\.jsonl"):
                asyncio.run(found.rate("anna", 1, "3"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert out.read_bytes() == before
        assert found.raters["anna"].current == 1
        asyncio.run(found.rate("anna", 1, "2"))
    assert [one.value for one in read_ratings(out).ratings] == [3, 2]


def test_nothing_is_stored_where_nobody_finds_it(tmp_path: Path) -> None:
    made, out = project(tmp_path), tmp_path / "r.jsonl"
    with session(made, out) as found:
        asyncio.run(found.rate("anna", 0, "3"))
        moved = out.rename(tmp_path / "elsewhere.jsonl")
        with pytest.raises(OSError, match=r"No such file.*r\.jsonl"):
            asyncio.run(found.rate("anna", 1, "3"))
        out.write_text("other")
        with pytest.raises(OSError, match=r"replaced by another file.*r\.jsonl"):
            asyncio.run(found.rate("anna", 1, "3"))
        assert out.read_text() == "other"
        moved.rename(out)
        asyncio.run(found.rate("anna", 1, "2"))
        with out.open("a") as other:
            other.write("half a li")
        with pytest.raises(OSError, match=r"another program changed it.*r\.jsonl"):
            asyncio.run(found.rate("anna", 2, "2"))
    assert [one.value for one in read_ratings(out).ratings] == [3, 2]


# What is rated


def shown_items(made: AnnotationProject, rater: str) -> list[str]:
    return [made.items[one.item].id for one in made.steps[rater]]


def test_per_group_draws_from_each_model_and_domain(tmp_path: Path) -> None:
    made = project(tmp_path, answers(20), per_group=3, raters=["anna"])
    chosen = [made.items[one.item] for one in made.steps["anna"]]
    groups = [(item.model, item.domain) for item in chosen]
    assert len(groups) == 12
    assert {groups.count(group) for group in groups} == {3}
    together = project(tmp_path, answers(20), per_group=3, raters=["anna"], together=True)
    questions = {together.items[one.item].question for one in together.steps["anna"]}
    assert len(questions) == 6
    assert len(together.steps["anna"]) == 12


def test_answers_that_are_not_there_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = answers(2)
    del rows[0]["response"]
    rows[1]["response"] = "  "
    made = project(tmp_path, rows)
    assert len(made.items) == 3
    assert made.material.remarks == ["left out: 1 sample without a response"]


def test_faulty_records_are_skipped_where_wanted_and_counted(tmp_path: Path) -> None:
    rows = [*answers(2), {"question": 4}]
    made = project(tmp_path, rows, reading={"skip_bad": True})
    assert len(made.items) == 4
    assert made.material.remarks == ["skipped: 1 faulty record"]
    with pytest.raises(ValueError, match="question: expected text"):
        project(tmp_path, rows)


def test_a_run_is_read_as_it_is(tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "model"} for row in answers(2)]
    run = score(rows, metrics=["grounding"], entailer="lexical", out=tmp_path / "run")
    folder = RunFolder(run.path)
    folder.write_json("run", {**(folder.read_run() or {}), "backends": {"model": "asked"}})
    made = open_project(run.path, AnnotateOptions(["anna"], [read_rubric("answer")]))
    assert {item.model for item in made.items} == {"asked"}
    assert {item.domain for item in made.items} == {"web", "code"}
    renamed = AnnotateOptions(
        ["anna"], [read_rubric("answer")], reading=RatingInputOptions(fields={"response": "reply"})
    )
    with pytest.raises(ValueError, match="--field is for files"):
        open_project(run.path, renamed)


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "answers"} for row in answers(2)]
    with pytest.raises(ValueError, match="the rubric truthfulness: shows gold answers"):
        project(tmp_path, rows, rubric="truthfulness")
    with pytest.raises(ValueError, match="--gold: shows gold answers"):
        project(tmp_path, rows, gold=True)
    assert project(tmp_path, rows, rubric="truthfulness", gold=False).items
    with pytest.raises(ValueError, match="no answers are left to rate"):
        project(tmp_path, answers(1, MODELS[:1]), double=0)
    with pytest.raises(ValueError, match="two raters have the same name"):
        project(tmp_path, raters=["anna", "Anna"])
    with pytest.raises(ValueError, match="--rater: expected up to 40 letters"):
        project(tmp_path, raters=["../anna"])
    with pytest.raises(ValueError, match="--again: expected a share"):
        project(tmp_path, again=1.5)


# Links


def test_links_are_secret_and_stay(tmp_path: Path) -> None:
    first = AccessLinks(tmp_path / "r.jsonl", ["anna", "bela"])
    assert first.tokens == AccessLinks(tmp_path / "r.jsonl", ["anna", "bela"]).tokens
    assert (
        AccessLinks(tmp_path / "r.jsonl", ["cili", "anna"]).tokens["anna"] == first.tokens["anna"]
    )
    assert AccessLinks(tmp_path / "r.jsonl", ["bela"]).tokens["bela"] == first.tokens["bela"]
    assert first.tokens["anna"] != AccessLinks(tmp_path / "s.jsonl", ["anna"]).tokens["anna"]
    assert len(set(first.tokens.values())) == 2
    assert first.find_owner(first.tokens["bela"]) == "bela"
    for wrong in ("", "anna", first.tokens["anna"][:-1], first.tokens["anna"] + "x", "é\ud800"):
        assert first.find_owner(wrong) is None
    path = tmp_path / ".r.jsonl.links"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text('{"anna": "short"}')
    with pytest.raises(ValueError, match="damaged; remove it"):
        AccessLinks(tmp_path / "r.jsonl", ["anna"])
