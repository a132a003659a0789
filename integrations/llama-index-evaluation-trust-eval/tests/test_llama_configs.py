"""The two configuration files: what is read, what is refused, what has no effect and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("llama_index.core", reason="needs llama-index-core: tox run")

from llama_index.evaluation.trust_eval.configs import eval_config, generator_config

from trustassay.errors import UnknownNameError


def test_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("model: openai:gpt-4o-mini\nndoc: 3\n")
    config = generator_config(path)
    assert (config.model, config.ndoc, config.max_new_tokens) == ("openai:gpt-4o-mini", 3, 300)
    assert generator_config({"ndoc": 4}).ndoc == 4
    path.write_text("")
    assert generator_config(path).ndoc == 5


def test_the_usual_file_may_be_missing_and_another_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert generator_config("generator_config.yaml") == generator_config(None)
    with pytest.raises(FileNotFoundError):
        generator_config("mine.yaml")
    Path("eval_config.yaml").write_text("at_most_citations: 2")
    assert eval_config("eval_config.yaml").at_most_citations == 2


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({}, "cm"),
        ({"data_type": "asqa"}, "em"),
        ({"data_type": "qampari"}, "em5"),
        ({"data_type": "mine"}, "cm"),
        ({"data_type": "eli5", "eval_type": "em"}, "em"),  # what is named wins
        ({"is_qampari": True}, "em5"),
        ({"compute_correctness": False, "eval_type": "em"}, "none"),
    ],
)
def test_the_kind_of_correctness(config: dict[str, object], kind: str) -> None:
    assert eval_config(config).correctness == kind


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"rejection_flag": "x"}, "unknown key 'rejection_flag'"),
        ({"refusal_threshold": 90}, "refusal_threshold: only 85 is available, got 90"),
        ({"calib": False}, "calib: only True is available"),
        ({"eval_type": "exact"}, "unknown eval_type 'exact'"),
    ],
)
def test_what_is_refused(config: dict[str, object], message: str) -> None:
    with pytest.raises((UnknownNameError, ValueError), match=message):
        eval_config(config)


def test_what_is_no_configuration(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    for text, message in (
        ("- a\n- b\n", "got list"),
        ("a: [", "is not YAML"),
        ("x" * 200_000, "larg"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            generator_config(path)
    with pytest.raises(ValueError, match="ndoc: expected 1 or more, got 0"):
        generator_config({"ndoc": 0})
    path.write_text("!!python/object/apply:os.system ['true']")
    with pytest.raises(ValueError, match="is not YAML"):
        generator_config(path)


def test_what_has_no_effect_says_so() -> None:
    with pytest.warns(UserWarning, match="without effect here: max_length, vllm"):
        generator_config({"vllm": True, "max_length": 8192})
