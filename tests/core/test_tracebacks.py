"""What is written of a failure: no key, no path of this machine, and not without end."""

from pathlib import Path

import pytest

from trustassay.core import tracebacks
from trustassay.core.tracebacks import hide_key, redact, write_failure


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://host.example/v1/chat and a/b", "https://host.example/v1/chat and a/b"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("no /etc/some/file.txt: gone", "no file.txt: gone"),
        ('File "/opt/my code/own.py", line 3', 'File "own.py", line 3'),
        ("http://user:word@proxy:80/", "http://[key]@proxy:80/"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [key]"),
        ("sk-abcdefghijklmnopqrst was refused", "[key] was refused"),
        ("\x1b[2Jx\n", "<U+001B>[2Jx\n"),
        ("named-in-some-way", "[key]"),
        ("given-in-some-way", "[key]"),
        ("EMPTY", "EMPTY"),
    ],
)
def test_what_is_shown(text: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracebacks, "_hidden", set())
    monkeypatch.setenv("MY_TOKEN", "named-in-some-way")
    hide_key("given-in-some-way")
    hide_key("EMPTY")
    assert redact(text) == expected


def test_a_traceback_is_bounded_and_so_is_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracebacks, "MAX_TRACEBACKS", 2)
    for metric in ("one", "two", "three", "one"):
        write_failure(tmp_path, metric, ValueError("x" * 100_000))
    names = sorted(path.name for path in (tmp_path / "tracebacks").iterdir())
    assert names == ["one-an-unknown-place.txt", "two-an-unknown-place.txt"]
    assert (tmp_path / "tracebacks" / names[0]).stat().st_size < 20_000
    write_failure(tmp_path / "absent", "one", ValueError("no folder"))
