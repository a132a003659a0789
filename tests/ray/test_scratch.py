"""The folder of a job on a machine's disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trustassay.errors import RunFolderError
from trustassay.ray.worker import ScratchFolder, remove_stale_folders


def test_workers_share_a_private_folder_and_the_last_removes_it(tmp_path: Path) -> None:
    one, other = (ScratchFolder(str(tmp_path / "disk"), "job") for _ in range(2))
    one.enter()
    other.enter()
    assert one.path == other.path
    assert one.path.stat().st_mode & 0o777 == 0o700
    (one.path / "file").write_text("")
    one.leave()
    remove_stale_folders(str(tmp_path / "disk"))
    assert (other.path / "file").exists()
    other.leave()
    assert not list((tmp_path / "disk").iterdir())


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    left = ScratchFolder(str(tmp_path), "killed")
    left.enter()
    os.close(left._descriptor or 0)  # as by a signal
    (tmp_path / "another").mkdir()
    remove_stale_folders(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["another"]


def test_another_users_folder_and_a_link_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = ScratchFolder(str(tmp_path), "job")
    scratch.path.mkdir(mode=0o755)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: 10**6)
        with pytest.raises(RunFolderError, match="belongs to another user"):
            scratch.enter()
        remove_stale_folders(str(tmp_path))
    assert scratch.path.exists()
    scratch.path.rmdir()
    scratch.path.symlink_to(tmp_path)
    with pytest.raises(OSError, match="job"):
        scratch.enter()
