"""The list of recommended models, and their names as URIs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub import model_of
from tests.tiny_gguf import write_gguf
from trustassay.backends import gguf, recommended
from trustassay.backends.chat_entailer import ChatEntailer
from trustassay.backends.recommended import RecommendedModel, models_folder
from trustassay.backends.registry import check_loadable, find, find_fault, load, takes_time
from trustassay.errors import BackendError, FaultsError, UnknownNameError
from trustassay.judging.entailer_quality import LOCAL_SECOND_READER, METRICS_WITH_SECOND_READER
from trustassay.judging.second_reader import ROLE
from trustassay.metrics import Faithfulness, Grounding

ROOT = Path(__file__).parents[2]
EVERY = recommended.load_recommended().values()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RecommendedModel:
    """Return the only model of the list, whose file is not there."""
    monkeypatch.setenv("TRUSTASSAY_MODELS", str(tmp_path))
    model = model_of(b"")
    monkeypatch.setattr(recommended, "load_recommended", lambda: {model.name: model})
    return model


@pytest.mark.parametrize("model", EVERY, ids=lambda one: one.name)
def test_the_list_is_well_formed(model: RecommendedModel) -> None:
    assert re.fullmatch(r"[a-z0-9.-]+", model.name)
    assert re.fullmatch("[0-9a-f]{64}", model.sha256)
    assert re.fullmatch("[0-9a-f]{40}", model.revision)
    assert model.file.endswith(".gguf")
    assert 10**8 < model.bytes < 10**10
    assert model.licence


def test_a_file_is_known_by_its_size() -> None:
    for model in EVERY:
        assert recommended.find_languages(model.bytes) == tuple(model.languages)
        assert not model.languages or "en" in model.languages
    assert recommended.find_languages(5) == ()


def test_the_figures_by_language_are_the_measured_ones() -> None:
    """``lab/results/tongues.json``, statements across languages."""
    path = ROOT / "lab/results/tongues.json"
    figures = json.loads(path.read_text(encoding="utf-8"))["figures"]
    for model in EVERY:
        measured = {
            row["language"]: round(row["auc"]["value"], 2)
            for row in figures
            if (row["reader"], row["way"]) == (model.name, "across") and row["language"] != "others"
        }
        assert model.auc_by_language == measured
        assert not measured or set(model.languages) == {"en", *measured}
        assert bool(model.cost) == bool(measured)


def test_the_cost_of_a_sentence_is_the_measured_one() -> None:
    """``lab/results/gguf-engines.json``."""
    path = ROOT / "lab/results/gguf-engines.json"
    engines = json.loads(path.read_text(encoding="utf-8"))["figures"]["engines"]
    seconds = {name: round(value) for name, value in engines["median cpu seconds"].items()}
    assert recommended.find_recommended(LOCAL_SECOND_READER[0]).cost == (
        f"about {seconds['llama.cpp']} CPU seconds a sentence, {seconds['openvino']} with "
        "`.[gguf-openvino]`"
    )


def test_smaller_models_come_first() -> None:
    assert [one.bytes for one in EVERY] == sorted(one.bytes for one in EVERY)


def test_what_was_measured_is_on_the_page_of_entailers() -> None:
    page = (ROOT / "docs/models/entailers.md").read_text(encoding="utf-8")
    for model in EVERY:
        assert model.measured == "not measured here" or "AUC" in model.measured
        for figure in re.findall(r"\.\d+", model.measured):
            assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", page), model.name
        assert f"{model.name}`" in page


def test_the_model_that_the_reports_name_is_of_the_list_and_its_size() -> None:
    name, size = LOCAL_SECOND_READER
    assert recommended.find_recommended(name).size == size
    metrics = (Faithfulness(), Grounding())
    assert {one.name for one in metrics} == METRICS_WITH_SECOND_READER
    assert all(any(need.role == ROLE for need in one.needs()) for one in metrics)


def test_an_address_has_a_fixed_revision_and_a_mirror_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    model = recommended.find_recommended("qwen2.5-coder-0.5b")
    rest = f"{model.repository}/resolve/{model.revision}/{model.file}"
    assert model.address == f"https://huggingface.co/{rest}"
    monkeypatch.setenv("HF_ENDPOINT", "https://me:geheim@mirror.example")
    with pytest.raises(BackendError, match="HF_ENDPOINT: the address contains a password"):
        model.address  # noqa: B018
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/hub/")
    assert model.address == f"https://mirror.example/hub/{rest}"


def test_the_folder_is_among_the_user_s_data(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRUSTASSAY_MODELS", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert models_folder() == Path.home() / ".local/share/trustassay/models"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert models_folder() == Path("/data/trustassay/models")
    monkeypatch.setenv("TRUSTASSAY_MODELS", f"~{os.sep}own")
    assert models_folder() == Path.home() / "own"


WAYS: tuple[Callable[[str, str], object], ...] = (load, find, find_fault, takes_time)
NAMED = [(way, kind, "") for way in WAYS for kind in ("chat model", "entailer")]
NAMED += [(way, "entailer", "chat:") for way in WAYS if way is not find]


@pytest.mark.parametrize(("way", "kind", "before"), NAMED)
def test_a_model_that_is_not_here_is_named_with_its_command(
    tiny: RecommendedModel, way: Callable[[str, str], object], kind: str, before: str
) -> None:
    words = r"^tiny-1b is not on this machine: run trustassay models get tiny-1b \(0.0 GB\)$"
    with pytest.raises(BackendError, match=words):
        way(kind, f"{before}{tiny.name}?threads=2")


def test_a_name_is_the_file_that_was_fetched(
    tiny: RecommendedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a name and by the path a model has one name of its own, so that its replies are shared."""
    write_gguf(tiny.path)
    monkeypatch.setattr(gguf, "_load_server", lambda *_: None)
    named = load("chat model", f"{tiny.name}?max_tokens=7")
    assert named.name == load("chat model", f"gguf:{tiny.path}?max_tokens=7").name
    entailer = load("entailer", f"{tiny.name}?by=words")
    assert isinstance(entailer, ChatEntailer)
    assert entailer.name == load("entailer", f"gguf:{tiny.path}?by=words").name
    assert takes_time("chat model", tiny.name)
    # A chat model as an entailer is loaded last, too, and its options are the entailer's as well.
    assert takes_time("entailer", f"{tiny.name}?by=words&threads=2")


def test_without_its_package_the_name_says_what_to_install(
    tiny: RecommendedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gguf(tiny.path)
    monkeypatch.setattr("trustassay.backends.registry.find_spec", lambda _: None)
    for kind, choice in (("chat model", tiny.name), ("entailer", f"{tiny.name}?by=words")):
        fault = find_fault(kind, choice)
        assert fault is not None
        assert fault.startswith("tiny-1b: xllamacpp is missing: pip install ")


def test_all_faults_of_several_choices_are_reported_at_once(tmp_path: Path) -> None:
    check_loadable("chat model", ["openai:any", "replay:none.jsonl"])
    one, other = f"gguf:{tmp_path}/one.gguf", f"hf:{tmp_path}/other"
    with pytest.raises(BackendError, match=r"one\.gguf: there is no such file$"):
        check_loadable("chat model", ["openai:any", one])
    with pytest.raises(FaultsError) as error:
        check_loadable("chat model", [one, "openai:any", other])
    assert [fault.partition(": ")[0] for fault in error.value.faults] == [one, other]


def test_a_name_that_is_nearly_right_is_told(tiny: RecommendedModel) -> None:
    for kind in ("chat model", "entailer"):
        with pytest.raises(UnknownNameError, match="did you mean tiny-1b"):
            load(kind, "tiny-1")
    with pytest.raises(UnknownNameError, match="unknown embedder"):
        load("embedder", "tiny-1b")
