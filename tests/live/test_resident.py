"""One open scorer for each setting of a process, for records of any tool."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support import Recorder
from trustassay.core.sample import Sample
from trustassay.errors import BackendError, UnknownNameError
from trustassay.live import open_scorers
from trustassay.live.integrations.resident import ResidentScorer, close_all, needs


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_all()


def record(number: int = 0, **fields: Any) -> dict[str, Any]:
    text = f"The bridge {number} was opened in 1911."
    return {"question": "When?", "response": text, "documents": [text]} | fields


def opened() -> int:
    return len(open_scorers._scorers_by_key)


def test_a_scorer_is_opened_by_the_first_record_and_kept() -> None:
    entailer = Recorder()
    first = ResidentScorer("faithfulness", entailer=entailer)
    assert opened() == 0
    assert [one.metric for one in first.score(record())] == ["faithfulness"]
    first.score(record(1))
    assert opened() == 1


def test_equal_settings_share_a_scorer_and_others_do_not() -> None:
    entailer = Recorder()
    for metrics, options in (
        ("faithfulness", {"entailer": entailer}),
        (["faithfulness"], {"entailer": entailer}),
        ("faithfulness", {"entailer": "lexical"}),
        ("faithfulness", {"entailer": "lexical", "seed": 0}),
        ("faithfulness:threshold=0.7", {"entailer": "lexical"}),
    ):
        ResidentScorer(metrics, **options).score(record())
    assert opened() == 4


def test_fifty_callers_of_threads_and_of_a_loop_are_scored_together() -> None:
    entailer = Recorder()
    scorer = ResidentScorer("faithfulness", entailer=entailer)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(scorer.ascore(record(n)) for n in range(50)))

    found = asyncio.run(all_of_them())
    assert len(found) == 50
    assert {one.error for (one,) in found} == {None}
    assert len(entailer.batches) < 25
    with ThreadPoolExecutor(50) as pool:
        again = list(pool.map(lambda n: scorer.score(record(n)), range(50)))
    assert again == found
    assert opened() == 1


def test_fifty_threads_open_one_scorer() -> None:
    begin = threading.Barrier(50)
    scorers = [ResidentScorer("faithfulness", entailer="lexical") for _ in range(50)]

    def work(scorer: ResidentScorer) -> Any:
        begin.wait()
        return scorer.score(record())

    with ThreadPoolExecutor(50) as pool:
        assert len({str(one) for one in pool.map(work, scorers)}) == 1
    assert opened() == 1


def deep() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(50_000):
        found = {"inputs": found}
    return found


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "question: is missing"),
        (record(response=None), "response: is missing"),
        ({"question": "When?", "response": "In 1911."}, "documents: is missing"),
        (record(response=["a", "b"]), "response: expected text"),
        (record(documents=3), "documents"),
        ("text", "expected an object, got text"),
        (None, "expected an object, got null"),
        (deep(), "nested too deeply"),
    ],
)
def test_a_record_that_cannot_be_scored_is_a_failure_not_a_0(given: Any, words: str) -> None:
    scorer = ResidentScorer(["faithfulness", "grounding"], entailer=Recorder())
    for found in (scorer.score(given), asyncio.run(scorer.ascore(given))):
        assert [one.metric for one in found] == ["faithfulness", "grounding"]
        assert all(one.score is None and words in (one.error or "") for one in found)


def test_an_exception_inside_is_a_failure_of_that_metric() -> None:
    def entailer(premise: str, hypothesis: str) -> float:
        raise ZeroDivisionError("unlucky")

    scorer = ResidentScorer("faithfulness", entailer=entailer)
    (found,) = scorer.score(record())
    assert found.score is None
    assert "unlucky" in (found.error or "")


def test_fields_name_what_a_record_calls_them() -> None:
    fields = {"question": "ask.it", "response": "said", "documents": "sources"}
    scorer = ResidentScorer("faithfulness", entailer=Recorder(), fields=fields)
    text = "The bridge was opened in 1911."
    (found,) = scorer.score({"ask": {"it": "When?"}, "said": text, "sources": [text]})
    assert found.error is None
    (missing,) = scorer.score({"said": text, "sources": [text]})
    assert missing.error and "ask.it" in missing.error


def test_a_sample_is_taken_as_it_is() -> None:
    scorer = ResidentScorer("faithfulness", entailer=Recorder())
    assert scorer.score(Sample.parse(record())) == scorer.score(record())


def test_wrong_names_are_told_at_once_and_missing_backends_by_the_first_record() -> None:
    with pytest.raises(UnknownNameError, match="did you mean faithfulness"):
        ResidentScorer("faithfullness")
    with pytest.raises(UnknownNameError, match="entailer"):
        ResidentScorer("faithfulness", entailr="lexical")
    scorer = ResidentScorer("judge")
    for _ in range(2):
        with pytest.raises((ValueError, BackendError), match="judge"):
            scorer.score(record())
    assert opened() == 0


def test_after_closing_the_next_record_opens_again(tmp_path: Path) -> None:
    scorer = ResidentScorer("faithfulness", entailer="lexical", out=tmp_path / "run")
    scorer.score(record())
    scorer.close()
    scorer.close()
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["metrics"]
    assert opened() == 0
    scorer.score(record(1))
    scorer.close()
    assert len((tmp_path / "run" / "samples.jsonl").read_text().splitlines()) == 2


def test_a_scorer_that_another_caller_closed_is_opened_again() -> None:
    scorer = ResidentScorer("faithfulness", entailer=Recorder())
    scorer.score(record())
    scorer._open().close()
    assert scorer.score(record(1))[0].error is None
    scorer._open().close()
    assert asyncio.run(scorer.ascore(record(2)))[0].error is None


def test_a_cancelled_caller_harms_no_other() -> None:
    scorer = ResidentScorer("faithfulness", entailer=Recorder())

    async def one_gives_up() -> Any:
        tasks = [asyncio.create_task(scorer.ascore(record(n))) for n in range(5)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(one_gives_up())
    assert isinstance(found[2], asyncio.CancelledError)
    assert [one[0].error for one in found[:2] + found[3:]] == [None] * 4


def test_a_folder_that_cannot_be_written_leaves_no_scorer_open(tmp_path: Path) -> None:
    broken = ResidentScorer("faithfulness", entailer="lexical", out=tmp_path / "run")
    others = [ResidentScorer("faithfulness", entailer="lexical", seed=n) for n in range(2)]
    for scorer in (others[0], broken, others[1]):
        scorer.score(record())
    threads = [one[0] for one in open_scorers._scorers_by_key.values()]
    (tmp_path / "run" / "summary.json").mkdir()
    with pytest.raises(OSError, match="summary"):
        close_all()
    assert not any(one._thread.is_alive() for one in threads)
    assert opened() == 0


AT_THE_END = """
from trustassay.live.integrations.resident import ResidentScorer

scorer = ResidentScorer("faithfulness", entailer="lexical", out={out!r})
scorer.score({record!r})
"""


@pytest.mark.slow
def test_the_end_of_the_process_writes_the_folder(tmp_path: Path) -> None:
    program = AT_THE_END.format(out=str(tmp_path / "run"), record=record())
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["metrics"]


def test_a_forked_process_opens_its_own() -> None:
    scorer = ResidentScorer("faithfulness", entailer="lexical")
    scorer.score(record())
    if not (child := os.fork()):
        code = 1
        try:
            code = int(scorer.score(record(1))[0].score != 1.0)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_tool_that_is_not_installed_is_named() -> None:
    words = r"needs no-such-tool, .*: pip install no-such-tool"
    with pytest.raises(ImportError, match=words), needs("no_such_tool.scorer", "no-such-tool"):
        import no_such_tool.scorer  # type: ignore[import-not-found]  # noqa: F401


def test_another_failure_of_an_import_is_told_as_it_is() -> None:
    with (
        pytest.raises(ModuleNotFoundError, match="something_else"),
        needs("no_such_tool", "no-such-tool"),
    ):
        raise ModuleNotFoundError("No module named 'something_else'", name="something_else")
