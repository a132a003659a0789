"""A local model is loaded without a word of the library: our own progress is all that is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lazily import needed
from tests.tiny_chat import save_llama
from trustassay.backends.hf_chat import HuggingFaceChat
from trustassay.backends.hf_loading import silence_libraries

transformers = needed("transformers")

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def test_nothing_is_printed_while_a_model_is_loaded(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = save_llama(tmp_path / "model")
    capfd.readouterr()
    HuggingFaceChat(str(folder))
    assert capfd.readouterr() == ("", "")


def test_the_switches_stand_as_before_afterwards() -> None:
    logging = transformers.utils.logging
    before = transformers.logging.get_verbosity(), logging.is_progress_bar_enabled()
    with silence_libraries():
        assert transformers.logging.get_verbosity() == logging.ERROR
        assert not logging.is_progress_bar_enabled()
    assert (transformers.logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
