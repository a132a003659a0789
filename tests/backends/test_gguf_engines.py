"""Which engine runs a GGUF file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.hub import model_of
from tests.tiny_gguf import write_gguf
from trustassay.backends import gguf, gguf_engines, gguf_openvino, recommended
from trustassay.backends.chat_entailer import ChatEntailer
from trustassay.backends.gguf_engines import choose_engine, load_gguf, read_processor_flags
from trustassay.backends.gguf_openvino import GROUP_SIZE
from trustassay.backends.registry import load
from trustassay.errors import BackendError


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file that OpenVINO may read, where it is installed and fast."""
    monkeypatch.setattr(gguf_engines, "is_installed", lambda: True)
    monkeypatch.setattr(gguf_engines, "read_processor_flags", lambda: {"avx2", "avx512_vnni"})
    monkeypatch.setenv("TRUSTASSAY_MODELS", str(tmp_path))
    return write_gguf(tmp_path / "tiny.gguf", architecture="qwen2", width=GROUP_SIZE)


def test_openvino_is_chosen_where_it_is_installed_and_fast(file: Path) -> None:
    assert choose_engine(f"gguf:{file}") == f"gguf:{file}?engine=openvino"
    both = "threads=2&context=900"
    assert choose_engine(f"gguf:{file}?{both}") == f"gguf:{file}?{both}&engine=openvino"


@pytest.mark.parametrize(
    "options",
    ["engine=llama.cpp", "engine=openvino", "template=none", "parallel=2", "file=17-ab"],
)
def test_a_choice_an_option_of_llama_cpp_or_a_recorded_name_keeps_its_engine(
    file: Path, options: str
) -> None:
    assert choose_engine(f"gguf:{file}?{options}") == f"gguf:{file}?{options}"


def test_another_architecture_or_file_keeps_llama_cpp(file: Path, tmp_path: Path) -> None:
    other = write_gguf(tmp_path / "other.gguf", width=GROUP_SIZE)
    for uri in (f"gguf:{other}", f"gguf:{tmp_path}/none.gguf", "openai:any", "replay:a.jsonl"):
        assert choose_engine(uri) == uri


def test_without_its_package_or_the_instructions_llama_cpp_stays(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setattr(gguf_engines, "is_installed", lambda: False)
        assert choose_engine(f"gguf:{file}") == f"gguf:{file}"
    monkeypatch.setattr(gguf_engines, "read_processor_flags", lambda: {"avx2", "avx512f"})
    assert choose_engine(f"gguf:{file}") == f"gguf:{file}"


def test_the_name_of_a_recommended_model_gets_the_engine(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUSTASSAY_MODELS", str(file.parent))
    model = model_of(file.read_bytes(), name="tiny")
    monkeypatch.setattr(recommended, "load_recommended", lambda: {"tiny": model})
    assert choose_engine("tiny?threads=2") == f"gguf:{file}?threads=2&engine=openvino"


class Reader:
    """Stands for OpenVINO."""

    tells_first_token = True

    def __init__(self, path: str, **options: Any) -> None:
        self.name = f"gguf:{path}?engine=openvino"
        self.options = options


def test_only_odds_are_computed_by_openvino(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_engines, "OpenvinoReader", Reader)
    monkeypatch.setattr(gguf, "_load_server", lambda *_: None)
    for before in ("", "chat:"):
        entailer = load("entailer", f"{before}gguf:{file}?threads=2")
        assert isinstance(entailer, ChatEntailer)
        assert entailer.name == f"{before}gguf:{file}?engine=openvino"
        assert entailer.chat_model.options == {"threads": 2}  # type: ignore[union-attr]
    assert "engine" not in load("entailer", f"gguf:{file}?by=words").name
    assert "engine" not in load("entailer", f"gguf:{file}?engine=llama.cpp").name
    assert "engine" not in load("chat model", f"gguf:{file}").name


def test_what_an_engine_cannot_do_is_a_fault(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendError, match=r"engine=onnx is unknown; use llama.cpp or openvino"):
        load("chat model", f"gguf:{file}?engine=onnx")
    with pytest.raises(BackendError, match="engine=openvino has no option parallel"):
        load("chat model", f"gguf:{file}?engine=openvino&parallel=2")
    monkeypatch.setattr(gguf_openvino, "find_spec", lambda _: None)
    with pytest.raises(BackendError, match=r"missing: pip install '\.\[gguf-openvino\]'"):
        load_gguf(str(file), engine="openvino")


def test_the_processor_lists_its_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "processor : 0\nflags\t\t: fpu avx2 avx512_vnni\nbugs : none\nflags : sse\n"
    monkeypatch.setattr(Path, "read_text", lambda *_: listed)
    assert read_processor_flags() == {"fpu", "avx2", "avx512_vnni"}
    monkeypatch.setattr(Path, "read_text", lambda *_: "processor : 0\nFeatures : fp asimd\n")
    assert read_processor_flags() == frozenset()
