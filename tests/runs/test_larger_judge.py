"""What a larger judge would cost for the same run: said wherever the judge is."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import Recorder, records, summary_of
from trustassay import Prices, Run, score
from trustassay.calls.prices import Price, describe_price_table, find_published_price
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.judging.entailer_quality import find_entailer_quality
from trustassay.metrics import Grounding

FIRST = "A larger judge: --entailer openai:gpt-4o-mini, "
LOCAL = (
    "A second reader that runs on this machine: `trustassay models get qwen2.5-coder-1.5b` "
    "(1.1 GB), then --second qwen2.5-coder-1.5b."
)


class Embedded(Recorder):
    """An entailer under the name of one whose agreement with people is known."""

    name = "embedded:9"
    languages = ("en",)


def scored(out: Path, **options: Any) -> Run:
    rows = options.pop("rows", records(3))
    return score(rows, metrics=Grounding(), entailer=Embedded(), out=out, cache=None, **options)


def test_its_price_is_that_of_the_pairs_that_were_judged(tmp_path: Path) -> None:
    prices = Prices({"gpt-4o-mini": Price(1000.0, 0.0)})
    run = scored(tmp_path / "run", prices=prices, why="they cite")
    found = summary_of(tmp_path / "run")["larger_judge"]
    pairs = run.summary_file["calls"]["entailment"]["stored"]
    # The prompt around a pair has 600 characters, and the pair about 60.
    assert found["usd"] == pytest.approx(pairs * 700 / 4 * 1000 / 1e6, rel=0.3)
    assert (found["samples"], found["prices"]) == (3, "")
    words = (
        f"{FIRST}about {found['usd']:.2f} USD for 3 answers. {LOCAL} Why this metric: they cite."
    )
    assert words in (tmp_path / "run" / "report.html").read_text()
    for text in (repr(run), run._repr_html_()):
        assert f"--entailer openai:gpt-4o-mini (needs a key, {found['usd']:,.2f} USD)" in text
        assert "Why this metric: they cite." in text


def test_a_second_reader_is_offered_where_the_run_could_have_one_and_has_none() -> None:
    def way_out(metric: str, second: str | None = None) -> str:
        return find_entailer_quality("embedded:9", [metric], second=second).advice

    assert way_out("grounding") == f"A larger judge: --entailer openai:gpt-4o-mini. {LOCAL}"
    assert LOCAL in way_out("faithfulness")
    assert LOCAL not in way_out("factcheck")
    assert LOCAL not in way_out("grounding", "gguf:model.gguf")


def test_a_run_with_a_second_reader_is_offered_no_other(tmp_path: Path) -> None:
    scored(tmp_path / "run", second=Recorder())
    page = (tmp_path / "run" / "report.html").read_text()
    assert FIRST in page
    assert LOCAL not in page


def test_the_published_price_comes_with_the_day_of_its_table(tmp_path: Path) -> None:
    run = scored(tmp_path / "run")
    words = f"{FIRST}less than 0.01 USD for 3 answers (prices: genai-prices "
    assert words in (tmp_path / "run" / "report.html").read_text()
    assert "(needs a key, <0.01 USD)" in repr(run)


def test_answers_that_the_small_judge_does_not_read_count(tmp_path: Path) -> None:
    spanish = {"response": "La lámpara roja está en la casa verde, junto a la puerta [1]."}
    prices = Prices({"gpt-4o-mini": Price(1000.0, 0.0)})
    rows = [records(2)[0], records(2)[1] | spanish]
    both = scored(tmp_path / "both", rows=rows, prices=prices)
    alone = scored(tmp_path / "alone", rows=rows[:1], prices=prices)
    usd = [run.summary_file["larger_judge"]["usd"] for run in (alone, both)]
    assert usd[1] == pytest.approx(2 * usd[0])


def test_a_run_goes_on_whatever_was_said_of_its_metric(tmp_path: Path) -> None:
    first, again = (scored(tmp_path / "run", why=why) for why in ("they cite", None))
    assert repr(again) == repr(first)


def test_a_judge_of_another_name_has_no_such_line(tmp_path: Path) -> None:
    run = score(records(1), metrics=Grounding(), entailer=Recorder(), out=tmp_path / "run")
    assert "larger_judge" not in run.summary_file
    assert "openai:gpt-4o-mini" not in repr(run)


class Priced:
    """A chat model under the name of one that the published table holds."""

    name = "openai:gpt-4o-mini"
    shared = False

    async def reply(self, request: ChatRequest) -> Reply:
        return Reply("Number 0 is odd [1].", prompt_tokens=1_000_000, reply_tokens=0)


def test_what_a_run_paid_comes_with_the_table_of_its_prices(tmp_path: Path) -> None:
    row = records(1)[0] | {"response": None, "label": 1}
    run = scored(tmp_path / "run", rows=[row], model=Priced())
    usage = run.summary_file["usage"]
    price = find_published_price("openai:gpt-4o-mini")
    assert price
    assert usage["models"]["openai:gpt-4o-mini"]["usd"] == price[0]
    assert usage["prices"] == describe_price_table()
    own = Prices({"gpt-4o-mini": Price(2.0, 0.0)})
    run = scored(tmp_path / "own", rows=[row], model=Priced(), prices=own)
    assert run.summary_file["usage"]["models"]["openai:gpt-4o-mini"]["usd"] == 2
    assert "prices" not in run.summary_file["usage"]
