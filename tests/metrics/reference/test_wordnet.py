"""WordNet as Debian installs it: the files of WordNet 3.0 without the names of their sources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trustassay.metrics.reference import measures as module

nltk = pytest.importorskip("nltk", reason="pip install 'trustassay[reference]'")


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write a WordNet of one synset, and make it the only one that there is."""
    for name in ("cntlist.rev", "index.sense", *(f"{p}.exc" for p in ("adj", "adv", "noun"))):
        (tmp_path / name).write_text("")
    for name in ("verb.exc", *(f"{k}.{p}" for k in ("index", "data") for p in ("adj", "adv"))):
        (tmp_path / name).write_text("")
    (tmp_path / "index.verb").write_text("")
    (tmp_path / "data.verb").write_text("")
    (tmp_path / "data.noun").write_text("00000000 05 n 02 dog 0 hound 0 000 | an animal\n")
    (tmp_path / "index.noun").write_text("dog n 1 0 1 0 00000000\nhound n 1 0 1 0 00000000\n")
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(module, "DEBIAN", tmp_path)
    module.wordnet.cache_clear()
    yield tmp_path
    module.wordnet.cache_clear()


def test_debians_files_are_read(debian: Path) -> None:
    [synset] = module.wordnet().synsets("hound")
    assert synset.lemma_names() == ["dog", "hound"]
    assert module.wordnet().synsets("cat") == []
    assert nltk.data.path == [str(debian)]


def test_without_wordnet_it_is_said_how_to_get_it(debian: Path) -> None:
    (debian / "index.sense").unlink()
    assert module.wordnet_folder() is None
    with pytest.raises(LookupError, match="wordnet-base wordnet-sense-index"):
        module.wordnet()
