"""Settings that all tests share."""

from __future__ import annotations

import functools
import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import typer.testing
from hypothesis import settings

from tests import encoded
from tests.support import FULL
from trustassay.core import registry

# Started in the background of a script, a process ignores interruptions, and so do its children;
# the tests interrupt theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

encoded.install()  # some encoders are loaded to collect the tests

# A busy machine is no failure, and neither is an example found by chance: the same change passes
# or fails each time. With FULL_TESTS=1 (make nightly) it looks at new examples, and more of them.
settings.register_profile("everywhere", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("search" if FULL else "everywhere")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep each file in one worker, and all files of torch or the browser: one import, one start.

    xdist's own groups (``--dist loadgroup``) have no effect with pytest 9.2, whose ids of tests
    cannot be changed.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    @functools.cache
    def group(file: str) -> str:
        text = (config.rootpath / file).read_text("utf-8")
        return next((mark for mark in ("torch", "browser") if f"mark.{mark}" in text), file)

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid.partition("::")[0])

    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is collected, millions of objects, from Python's search for circular garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def one_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    """Modules that are marked ``torch`` compute in one thread: tiny models lose by several."""
    if request.node.get_closest_marker("torch") is None:
        yield
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session", autouse=True)
def encoded_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Share what the embedded encoders return between the tests, their commands and the workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "encoded"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(encoded.FOLDER, str(folder))
        yield


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test a cache of its own, so that none reads or writes the user's."""
    folder = tmp_path_factory.getbasetemp() / "caches" / os.urandom(8).hex()
    monkeypatch.setenv("TRUSTASSAY_CACHE", str(folder))


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """Build the command line once; typer would for each command, and most take less time."""
    built = functools.cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", built)
        patch.setattr(typer.testing, "_get_command", built)
        yield


@pytest.fixture
def probe_installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Install ``tests.support:Probe`` as the metric ``probe``; return the folder for a path."""
    home = tmp_path_factory.mktemp("site")
    info = home / "probe-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: probe\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[trustassay.metrics]\nprobe = tests.support:Probe\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(home))
        registry._read_entry_points.cache_clear()
        yield home
    registry._read_entry_points.cache_clear()
