"""The page as text: what stands in it, and what can never stand in it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.report.conftest import selection
from trustassay.core.metric import Figure, Summary
from trustassay.report.distributions import Histogram
from trustassay.report.page import ReportMetric, ReportRun, ReportSample, write_page
from trustassay.report.text import HIDDEN

MakeRun = Callable[..., ReportRun]
MakeSample = Callable[..., ReportSample]
MakeHostile = Callable[..., list[ReportSample]]


ALLOWED_TAGS = frozenset(
    re.findall(
        r"\w+",
        "article b blockquote br dd details div dl dt figcaption figure g h2 h3 h4 h5 li mark ol p "
        "q rect section span summary svg table tbody td th thead title tr ul",
    )
)


ID = r"(?:[a-z]+|[am]\d+(-[dr]\d+(-s\d+)?)?|id=[A-Za-z0-9_.~%-]*)"
"""An id of the page: our own words and numbers, or a percent-encoded id of a sample."""


class Outline(HTMLParser):
    """Every tag of a page with its attributes, and the text between the tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, attribute: str) -> set[str]:
        return {a[attribute] or "" for _, a in self.tags if attribute in a}


def written(run: ReportRun, folder: Path) -> str:
    path = folder / "report.html"
    write_page(run, path)
    return path.read_text(encoding="utf-8")


@pytest.fixture
def made_up(made_up_page: Path) -> str:
    return made_up_page.read_text(encoding="utf-8")


# What the page says


def test_run_and_figures(made_up: str) -> None:
    assert "Elephants, a made-up run" in made_up
    assert "elephants.jsonl" in made_up
    assert 'value">61.1<' in made_up
    assert "55.2\u202f–\u202f66.9" in made_up
    assert "61.13\u202f%" in made_up
    assert "1,234,567" in made_up
    assert "17.50\u202fwords" in made_up
    assert "not applicable: <bdi>no answer is a list</bdi>" in made_up
    assert "<bdi>too few answers</bdi>" in made_up
    assert "never_computed" not in made_up
    text = " ".join(re.sub(r"<[^>]+>", " ", made_up).split())
    assert "This page lists 32 of 1,000 answers" in text


def test_figures_stand_in_their_groups(made_up: str) -> None:
    groups = re.findall(r'rowgroup"><bdi>(.+?)</bdi>', made_up)
    assert groups == ["trust", "refusal", "lists", "other"]


def test_sentences_citations_and_passages(make_run: MakeRun, made_up: str) -> None:
    answer = made_up.split('id="a1"')[1].split('id="a2"', 1)[0]
    for mark in (
        "✓</span> supported<",
        "supported, but a citation is not needed or incorrect",
        "✕</span> not supported<",
        "not supported: no citation",
        "○</span> not judged",
    ):
        assert mark in answer
    for verdict in (
        "supports alone",
        "needed",
        "covered",
        "redundant",
        "unsupported",
        "invalid",
        "beyond limit",
        "duplicate",
    ):
        assert f"<bdi>{verdict}</bdi>" in answer
        assert f"why it is {verdict}" in answer
    assert "could not find" in answer
    assert "from a later version" in answer
    links = {link for link in Outline(answer).values("href") if "-d" in link}
    assert links == {"#a1-d1", "#a1-d2", "#a1-d3"}  # not to documents 0 and 9
    assert {"#a1-r0-s1", "#a1-r0-s2", "#a1-r0-s3"} <= Outline(answer).values("href")
    assert re.search(r"<bdi>Asia</bdi> <span class=\"how\">by entailment", answer)


def test_a_label_is_shown_as_it_was_written(
    make_run: MakeRun, make_sample: MakeSample, tmp_path: Path
) -> None:
    labelled = [make_sample("one", 0.9, label="Fully supported"), make_sample("two", 0.9, label=4)]
    page = written(make_run(labelled), tmp_path)
    values = re.findall(r"<dt>human label</dt><dd[^>]*>(?:<bdi>)?([^<]*)", page)
    assert values == ["Fully supported", "4"]


def test_every_link_leads_somewhere_and_ids_are_unique(made_up: str) -> None:
    outline = Outline(made_up)
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {link.removeprefix("#") for link in outline.values("href")} <= set(ids)


def test_failed_unscored_and_missing(made_up: str) -> None:
    assert "the model could not be reached" in made_up
    assert "There is no response." in made_up
    assert "no score" in made_up
    assert "nothing to say of one sample alone" in made_up


def test_passages_of_a_failed_sample_are_not_called_uncited(
    make_run: MakeRun, make_sample: MakeSample, tmp_path: Path
) -> None:
    failed = make_sample("x", None, error="no reply", evidence=())
    assert "not cited" not in written(make_run([failed]), tmp_path)
    assert "not cited" in written(make_run([make_sample("x", 1.0)]), tmp_path)


@pytest.mark.parametrize(("record", "heading"), [({}, ""), ({"id": "leaflet"}, "leaflet")])
def test_the_number_of_a_passage_is_written_once(
    make_run: MakeRun, make_sample: MakeSample, tmp_path: Path, record: dict[str, str], heading: str
) -> None:
    sample = make_sample("x", 1.0, documents=[{"text": "Elephants live in Asia."} | record])
    [text] = re.findall(r"<h4>(.*?)</h4>", written(make_run([sample]), tmp_path))
    assert Outline(text).text.split() == ["[1]", *heading.split()]


def test_another_metrics_evidence_is_a_table(made_up: str) -> None:
    answer = made_up.split("<bdi>other-metric</bdi>")[1].split("</details>\n<details", 1)[0]
    assert re.search(r"<dt><bdi>gamma</bdi></dt><dd><bdi[^>]*>0.25</bdi>", answer)


@pytest.mark.parametrize("name", ["table", "../page", "generic", "page.html.jinja", "", "a" * 9999])
def test_a_metric_may_have_any_name(
    make_run: MakeRun, make_sample: MakeSample, tmp_path: Path, name: str
) -> None:
    page = written(make_run([make_sample("x", 1.0, metric=name)]), tmp_path)
    assert "Asian elephants live in Asia" in page


@pytest.mark.parametrize(
    "evidence",
    [
        [None, 3, "text", [], {}],
        [{"kind": "sentence"}, {"kind": "sentence", "text": 3}],
        [{"kind": "sentence", "text": "x", "supported": "yes", "citations": {"a": 1}}],
        [{"kind": "sentence", "text": "x", "citations": [None, {}, {"document": "1"}]}],
        [{"kind": "sentence", "text": "x", "citations": [{"document": True, "verdict": []}]}],
        [{"kind": "coverage", "document": 99, "supports": [1]}, {"kind": "coverage"}],
        [{"kind": "coverage", "document": 1, "supports": [1, 0, 1, 1]}],
        [{"kind": "gold", "text": "x", "aliases": 3, "correct": "?"}, {"kind": ["gold"]}],
        [{"kind": "refusal", "text": "x"}],
    ],
)
def test_odd_evidence_is_shown_all_the_same(
    make_run: MakeRun, make_sample: MakeSample, tmp_path: Path, evidence: list[object]
) -> None:
    assert "Evidence" in written(
        make_run([make_sample("x", 1.0, evidence=evidence)]), tmp_path
    ) or (all(isinstance(item, dict) and "kind" in item for item in evidence))


# Sizes: nothing, failures only, a stream


def test_no_metrics_and_no_samples(make_run: MakeRun, tmp_path: Path) -> None:
    page = written(make_run([], metrics=[], facts={}), tmp_path)
    assert "No metric was computed" in page
    assert "There are no answers to show." in page


def test_every_sample_failed(make_run: MakeRun, make_sample: MakeSample, tmp_path: Path) -> None:
    failed = [make_sample(str(n), None, error=f"broken {n}") for n in range(3)]
    summary = Summary({"trust_score": None}, 3, 3, not_applicable={"trust_score": "no scores"})
    figures = {"trust_score": Figure("trust_score", "the mean", headline=True)}
    histogram = Histogram()
    histogram.add(None, None)
    metric = ReportMetric("grounding", "Grounding", summary, figures, histogram)
    page = written(make_run(failed, metrics=[metric]), tmp_path)
    assert '<b class="number">3</b> failed' in page
    assert "No answer has a score" in page
    assert page.count("no scores") == 2
    assert all(f"broken {n}" in page for n in range(3))


def test_metric_without_histogram_or_figures(make_run: MakeRun, tmp_path: Path) -> None:
    metric = ReportMetric("bare", "Bare", Summary({}, 0, 0), {})
    assert "Bare" in written(make_run([], metrics=[metric]), tmp_path)


def test_samples_are_read_one_by_one(
    make_run: MakeRun, make_sample: MakeSample, tmp_path: Path
) -> None:
    """A draft has grown on disk long before the last sample is read."""
    sizes = []

    def stream() -> Iterator[ReportSample]:
        for index in range(401):
            if index % 200 == 0:
                sizes.append(sum(f.stat().st_size for f in tmp_path.iterdir()))
            yield make_sample(str(index), 0.5)

    write_page(make_run([], samples=stream()), tmp_path / "report.html")
    assert sizes[0] < sizes[1] < sizes[2]
    assert sizes[2] - sizes[1] > 200 * 1000


def test_written_whole_or_not_at_all(
    make_run: MakeRun, make_sample: MakeSample, tmp_path: Path
) -> None:
    path = tmp_path / "new" / "report.html"
    write_page(make_run([]), path)
    before = path.read_bytes()

    def broken() -> Iterator[ReportSample]:
        yield make_sample("x", 0.5)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_page(make_run([], samples=broken()), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


# Hostile texts


def test_hostile_texts_become_no_markup(
    make_run: MakeRun, make_hostile: MakeHostile, tmp_path: Path
) -> None:
    texts = [report.sample.question for report in make_hostile()]
    metrics = [
        ReportMetric(
            text,
            text,
            Summary(
                {text: 50.0, "none": None}, 1, 0, {text: (4, 5)}, {}, {"none": text}, {text: text}
            ),
            {text: Figure(text, text, "%" if n % 2 else text, text, headline=True)},
            _histogram_of(text),
        )
        for n, text in enumerate(texts)
    ]
    run = make_run(
        make_hostile(),
        metrics=metrics,
        title=texts[4],
        selection=selection(),
        facts={text: text for text in texts},
    )
    page = written(run, tmp_path)
    outline = Outline(page)
    plain = {tag for tag, _ in Outline(written(make_run([]), tmp_path)).tags}
    assert {tag for tag, _ in outline.tags} <= plain | ALLOWED_TAGS
    assert [tag for tag, _ in outline.tags].count("script") == 1
    names = {name for _, attributes in outline.tags for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in {"style", "src"}]
    assert all(re.fullmatch(rf"#{ID}", h) for h in outline.values("href"))
    assert all(re.fullmatch(ID, i) for i in outline.values("id"))
    assert all(re.fullmatch(r"[a-z0-9 -]*", value) for value in outline.values("class"))
    assert not HIDDEN.search(page)
    assert "49" not in re.findall(r"<h1>.*?</h1>", page, re.DOTALL)[0]


def _histogram_of(verdict: str) -> Histogram:
    histogram = Histogram()
    histogram.add(0.5, verdict)
    return histogram


def test_hostile_texts_stay_readable(
    make_run: MakeRun, make_hostile: MakeHostile, tmp_path: Path
) -> None:
    reports = make_hostile()
    text = Outline(written(make_run(reports), tmp_path)).text
    for report in reports[:-1]:
        assert report.sample.question in text
    assert "U+202E" in text


def test_policy_allows_the_own_style_and_script_alone(made_up: str) -> None:
    policy = re.search(r'Security-Policy" content="(.+?)"', made_up)
    assert policy
    rules = dict(rule.strip().split(" ", 1) for rule in unescape(policy[1]).split(";"))
    assert rules["default-src"] == "'none'"
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        content = made_up.split(f"<{tag}>")[1].split(f"</{tag}>", 1)[0]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


def test_long_texts_are_complete(made_up: str) -> None:
    text = Outline(made_up).text
    assert text.count("word ") >= 10_000
    assert made_up.count("more character") > 0
    assert "x" * 3000 in made_up
