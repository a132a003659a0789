"""Fetching a recommended model from a server that drops connections and serves wrong files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.hub import Hub, model_of
from trustassay.backends import fetch_model as fetching
from trustassay.backends.fetch_model import MAX_TRIES_WITHOUT_PROGRESS, fetch_model
from trustassay.backends.recommended import RecommendedModel
from trustassay.core.files import open_locked
from trustassay.errors import BackendError

CONTENT = bytes(range(256)) * 9000  # 2.3 MB
HALF = len(CONTENT) // 2


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    monkeypatch.setenv("TRUSTASSAY_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(fetching, "WAIT_S", 0.0)
    with Hub(CONTENT) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"{server.url}/")
        yield server


@pytest.fixture
def model() -> RecommendedModel:
    return model_of(CONTENT)


def part_of(model: RecommendedModel, content: bytes | None = None) -> Path:
    """Return the path of an unfinished file, with what is there of it."""
    part = model.path.with_name(f"{model.path.name}.part")
    if content is not None:
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
    return part


def test_a_file_is_fetched_once_and_sends_nothing_about_the_user(
    hub: Hub, model: RecommendedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert fetch_model(model)
    assert model.path.read_bytes() == CONTENT
    assert not part_of(model).exists()
    assert not fetch_model(model, check=True)
    assert hub.asked == [""]
    assert set(hub.headers) == {"Host", "User-Agent", "Accept", "Accept-Encoding"}
    assert hub.headers["User-Agent"] == "trustassay"
    assert hub.headers["Accept-Encoding"] == "identity"


def test_a_dropped_connection_goes_on_where_it_stopped(hub: Hub, model: RecommendedModel) -> None:
    hub.replies = ["drop", "drop"]
    fetch_model(model)
    assert model.path.read_bytes() == CONTENT
    assert hub.asked == ["", f"bytes={HALF}-", f"bytes={HALF + HALF // 2}-"]
    assert hub.sent == len(CONTENT)


def test_more_tries_than_a_few_where_each_brings_something(
    hub: Hub, model: RecommendedModel
) -> None:
    hub.replies = ["drop"] * (MAX_TRIES_WITHOUT_PROGRESS + 3)
    fetch_model(model)
    assert model.path.read_bytes() == CONTENT


def test_a_server_that_ignores_the_range_starts_over(hub: Hub, model: RecommendedModel) -> None:
    hub.replies = ["drop", "whole"]
    fetch_model(model)
    assert model.path.read_bytes() == CONTENT
    assert hub.sent == HALF + len(CONTENT)


def test_a_server_that_always_drops_is_given_up(hub: Hub, model: RecommendedModel) -> None:
    hub.always = "again"
    with pytest.raises(BackendError, match=rf"{HALF:,} of {len(CONTENT):,} bytes are downloaded"):
        fetch_model(model)
    assert len(hub.asked) == MAX_TRIES_WITHOUT_PROGRESS
    assert part_of(model).stat().st_size == HALF


def test_a_server_that_cannot_go_on_starts_over(hub: Hub, model: RecommendedModel) -> None:
    part_of(model, CONTENT[:100])
    hub.replies = [416]
    fetch_model(model)
    assert model.path.read_bytes() == CONTENT
    assert hub.asked == ["bytes=100-", ""]


def test_an_unfinished_file_that_is_too_long_starts_over(hub: Hub, model: RecommendedModel) -> None:
    part_of(model, CONTENT + b"more")
    fetch_model(model)
    assert model.path.read_bytes() == CONTENT
    assert hub.asked == [""]


def test_a_complete_unfinished_file_is_only_checked(hub: Hub, model: RecommendedModel) -> None:
    part_of(model, CONTENT)
    assert fetch_model(model)
    assert hub.asked == []


def test_a_wrong_file_is_removed_and_named(hub: Hub, model: RecommendedModel) -> None:
    hub.content = CONTENT[:-1] + b"!"
    with pytest.raises(BackendError) as error:
        fetch_model(model)
    assert model.sha256 in str(error.value)
    assert re.search(r"SHA-256 [0-9a-f]{64}, expected", str(error.value))
    assert not model.path.exists()
    assert not part_of(model).exists()
    hub.content = CONTENT
    assert fetch_model(model)


def test_a_file_of_another_length_is_refused_and_what_is_here_stays(
    hub: Hub, model: RecommendedModel
) -> None:
    """As the page of a hotel's network that wants a login first."""
    part_of(model, CONTENT[:HALF])
    hub.content = b"<html>log in first</html>"
    hub.replies = ["whole"]
    with pytest.raises(
        BackendError, match=rf"expected a file of {len(CONTENT):,} bytes, got 25 bytes"
    ):
        fetch_model(model)
    assert part_of(model).read_bytes() == CONTENT[:HALF]


def test_a_part_of_another_file_is_refused(hub: Hub, model: RecommendedModel) -> None:
    part_of(model, CONTENT[:100])
    hub.content = CONTENT + b"!"
    with pytest.raises(BackendError, match=f"bytes, got {len(CONTENT) + 1:,} bytes"):
        fetch_model(model)


def test_another_range_than_was_asked_for_is_refused(hub: Hub, model: RecommendedModel) -> None:
    part_of(model, CONTENT[:100])
    hub.replies = ["other"]
    with pytest.raises(BackendError, match="expected the file, got 206 Partial Content"):
        fetch_model(model)


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusal_is_final(hub: Hub, model: RecommendedModel, status: int) -> None:
    hub.always = status
    with pytest.raises(BackendError, match=rf"expected the file, got {status} .*; set HF_ENDPOINT"):
        fetch_model(model)
    assert len(hub.asked) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again(
    hub: Hub, model: RecommendedModel, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.replies = [status, status]
    fetch_model(model)
    assert model.path.read_bytes() == CONTENT
    assert capsys.readouterr().err.count(f": {status} ") == 2


def test_no_connection_is_told_with_how_to_go_on(
    hub: Hub, model: RecommendedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(BackendError, match="run the same command again to continue"):
        fetch_model(model)


def test_redirects_are_followed_on_this_machine(hub: Hub, model: RecommendedModel) -> None:
    hub.replies = ["/moved", f"{hub.url}/signed?X=a%2Bb%7E"]
    fetch_model(model)
    assert hub.path == "/signed?X=a%2Bb%7E"
    assert model.path.read_bytes() == CONTENT


def test_redirects_go_to_https_alone(
    hub: Hub, model: RecommendedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.replies = ["http://example.com/model.gguf?signature=1"]
    with pytest.raises(
        BackendError, match=r"redirects to http://example\.com/model\.gguf, expected"
    ):
        fetch_model(model)
    monkeypatch.setenv("HF_ENDPOINT", "http://example.com")
    with pytest.raises(BackendError, match="expected https"):
        fetch_model(model)
    hub.always = "/round"
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    with pytest.raises(BackendError, match="more than 5 redirects"):
        fetch_model(model)


def test_a_disk_without_room_is_told_before(
    hub: Hub, model: RecommendedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    part_of(model, CONTENT[:1_000_000])
    needed = len(CONTENT) - 1_000_000
    usage = SimpleNamespace(free=needed - 1)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(BackendError, match="it needs 1 MB, but only 1 MB are free"):
        fetch_model(model)
    assert hub.asked == []
    usage.free = needed
    assert fetch_model(model)


def test_two_processes_do_not_fetch_the_same(hub: Hub, model: RecommendedModel) -> None:
    with (
        open_locked(part_of(model, b"")),
        pytest.raises(BackendError, match="another process is downloading tiny-1b"),
    ):
        fetch_model(model)
    assert fetch_model(model)


def test_what_another_process_completed_meanwhile_is_taken(
    hub: Hub, model: RecommendedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(part: Path, **options: bool) -> object:
        file = open_locked(part, **options)
        model.path.write_bytes(CONTENT)
        return file

    monkeypatch.setattr(fetching, "open_locked", slow)
    assert not fetch_model(model)
    assert hub.asked == []
    assert not part_of(model).exists()


def test_a_file_that_is_here_is_checked_by_size_and_by_its_sum_where_asked(
    hub: Hub, model: RecommendedModel
) -> None:
    model.path.parent.mkdir(parents=True)
    model.path.write_bytes(CONTENT[1:])
    with pytest.raises(BackendError, match=r"expected [\d,]+: remove it, then run trustassay mod"):
        fetch_model(model)
    model.path.write_bytes(CONTENT[:-1] + b"!")
    assert not fetch_model(model)
    with pytest.raises(BackendError, match=f"expected {model.sha256}: remove it"):
        fetch_model(model, check=True)


KILLED = """
from tests.hub import model_of
from trustassay.backends.fetch_model import fetch_model

fetch_model(model_of(bytes(range(256)) * 9000))
"""


@pytest.mark.slow
def test_after_a_kill_the_next_start_goes_on(hub: Hub, model: RecommendedModel) -> None:
    hub.replies = ["stall"]
    with subprocess.Popen([sys.executable, "-c", KILLED], env=os.environ) as process:
        assert hub.half_sent.wait(30)
        part = part_of(model)
        for _ in range(300):
            if part.exists() and part.stat().st_size >= fetching.CHUNK_BYTES:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    kept = part.stat().st_size
    assert 0 < kept <= HALF
    assert CONTENT.startswith(part.read_bytes())
    assert fetch_model(model)
    assert model.path.read_bytes() == CONTENT
    assert hub.asked == ["", f"bytes={kept}-"]
