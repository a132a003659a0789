"""Files that are written whole or not at all, whatever ends the process."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trustassay.core.files import Appender, DiskFullError, name_in_errors, open_atomic


def test_nothing_is_seen_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    with open_atomic(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_an_error_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), open_atomic(path) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_what_a_kill_leaves_has_a_fixed_name_and_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    program = (
        "import os, pathlib, signal, trustassay.core.files as f\n"
        f"with f.open_atomic(pathlib.Path({str(path)!r})) as file:\n"
        "    file.write(b'x' * 100_000)\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program], check=False)
        assert [p.name for p in tmp_path.iterdir()] == [".page.html.part"]
    with open_atomic(path) as file:
        file.write(b"short")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "short"


def test_two_at_once_write_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "page.html"

    def write(letter: bytes) -> None:
        for _ in range(20):
            with open_atomic(path) as file:
                for _ in range(5):
                    file.write(letter * 10_000)
            assert path.read_bytes() in (b"a" * 50_000, b"b" * 50_000)

    failed: list[BaseException] = []

    def noted(letter: bytes) -> None:
        try:
            write(letter)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=noted, args=[letter]) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_an_error_of_the_system_names_the_file_and_not_its_part(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.mkdir()
    with pytest.raises(OSError, match=r"page\.html") as caught, open_atomic(path) as file:
        file.write(b"new")
    assert caught.value.filename == str(path)
    assert caught.value.errno == errno.EISDIR
    with pytest.raises(FileNotFoundError) as caught, name_in_errors(path):
        (tmp_path / "other").read_text()
    assert caught.value.filename == str(tmp_path / "other")


def test_writing_names_the_file() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with pytest.raises(DiskFullError, match="No space left") as caught:
        Appender(Path("/dev/full")).append(b"line\n")
    assert caught.value.filename == "/dev/full"
