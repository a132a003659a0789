"""Files that are written whole or not at all, whatever ends the process."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trustassay.core.files import (
    Appender,
    DiskFullError,
    create_private,
    cut_unfinished,
    lock_beside,
    make_private_folder,
    name_in_errors,
    open_atomic,
    resolve_output,
    write_atomic,
)


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
        Appender(Path("/dev/full"), private=False).append(b"line\n")
    assert caught.value.filename == "/dev/full"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_only_the_owner_reads_a_file_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    write_atomic(tmp_path / "new" / "deep" / "a.json", b"{}")
    Appender(tmp_path / "lines").close()
    create_private(tmp_path / "made")
    for path in (tmp_path / "new", tmp_path / "new" / "deep"):
        assert mode(path) == 0o700
    for path in (tmp_path / "new" / "deep" / "a.json", tmp_path / "lines", tmp_path / "made"):
        assert mode(path) == 0o600


def test_an_output_that_a_user_named_is_as_the_umask_says(tmp_path: Path, umask: int) -> None:
    write_atomic(tmp_path / "new" / "page.html", b"<p>", private=False)
    Appender(tmp_path / "events", private=False).close()
    assert mode(tmp_path / "new") == 0o777 & ~umask
    assert mode(tmp_path / "new" / "page.html") == mode(tmp_path / "events") == 0o666 & ~umask
    # Within a run's folder it is part of the run.
    (tmp_path / "new" / "run.json").touch()
    write_atomic(tmp_path / "new" / "page.html", b"<p>", private=False)
    assert mode(tmp_path / "new" / "page.html") == 0o600


def test_files_of_earlier_versions_are_tightened_and_folders_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o750)
    for name in ("lines", "made", "cut"):
        (folder / name).write_text("line\n")
        (folder / name).chmod(0o664)
    Appender(folder / "lines").close()
    create_private(folder / "made")
    cut_unfinished(folder / "cut")
    make_private_folder(folder)
    assert mode(folder) == 0o750
    assert {mode(path) for path in folder.iterdir()} == {0o600}


def test_no_file_is_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    for name in (".page.html.part", "lines", ".state.lock", "cut"):
        (tmp_path / name).symlink_to(victim)
    (tmp_path / "dangling").symlink_to(tmp_path / "not-there")
    for write in (
        lambda: write_atomic(tmp_path / "page.html", b"new"),
        lambda: write_atomic(tmp_path / "page.html", b"new", private=False),
        lambda: Appender(tmp_path / "lines"),
        lambda: Appender(tmp_path / "dangling"),
        lambda: lock_beside(tmp_path / "state"),
        lambda: cut_unfinished(tmp_path / "cut"),
    ):
        with pytest.raises(OSError, match="is a symbolic link, which is not followed"):
            write()
    assert victim.read_text() == "precious\n"
    assert not (tmp_path / "not-there").exists()


def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    for name in ("lines", ".page.html.part"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="lines"):
        Appender(tmp_path / "lines")
    with pytest.raises(OSError, match=r"page\.html"):
        write_atomic(tmp_path / "page.html", b"new")


def test_a_link_that_the_user_named_is_followed_but_not_in_a_run(tmp_path: Path) -> None:
    link = tmp_path / "ratings.jsonl"
    link.symlink_to("elsewhere.jsonl")
    assert resolve_output(link) == tmp_path.resolve() / "elsewhere.jsonl"
    (tmp_path / "run.json").touch()
    assert resolve_output(link) == link
