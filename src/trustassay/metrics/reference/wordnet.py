"""WordNet for METEOR: NLTK's data where they are installed, else Debian's package."""

from __future__ import annotations

import io
import warnings
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["ADVICE", "DEBIAN", "wordnet", "wordnet_folder"]

DEBIAN = Path("/usr/share/wordnet")
"""Where Debian's and Ubuntu's wordnet-base and wordnet-sense-index put WordNet 3.0."""
ADVICE = (
    "WordNet is not installed: python -m nltk.downloader wordnet, or on Debian and Ubuntu "
    "apt install --no-install-recommends wordnet-base wordnet-sense-index"
)
_LEXICOGRAPHER_FILES = 45


def wordnet_folder() -> Any | None:
    """Return NLTK's pointer to the folder or archive of WordNet, ``None`` where there is none."""
    import nltk

    for name in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):
        try:
            return nltk.data.find(name)
        except LookupError:
            continue
    if not (DEBIAN / "data.noun").is_file() or not (DEBIAN / "index.sense").is_file():
        return None
    if str(DEBIAN) not in nltk.data.path:  # NLTK reads no folder that is not named there
        nltk.data.path.append(str(DEBIAN))
    return nltk.data.FileSystemPathPointer(str(DEBIAN))


@cache
def wordnet() -> Any:
    """Return NLTK's reader of WordNet.

    Raises:
        LookupError: WordNet is not installed.
    """
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):  # type: ignore[misc]
        """Looks up synonyms alone: reads no names of lexicographer files, which Debian lacks."""

        def open(self, file: str) -> Any:
            if file != "lexnames":
                return super().open(file)
            rows = (f"{number:02d}\tfile{number}\t1\n" for number in range(_LEXICOGRAPHER_FILES))
            return io.StringIO("".join(rows))

        def map_wn(self, version: str = "wordnet") -> None:
            """Map to no other version: that serves other languages."""

    folder = wordnet_folder()
    if folder is None:
        raise LookupError(ADVICE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that other languages are not there
        return Reader(folder, None)
