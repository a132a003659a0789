"""Downloads the file of a recommended model: resumes partial downloads and checks the SHA-256."""

import asyncio
import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING

from trustassay.backends.http import LOOPBACK, environment_proxy
from trustassay.backends.recommended import RecommendedModel
from trustassay.core.files import name_in_errors, open_locked
from trustassay.core.progress import Progress, tell
from trustassay.errors import BackendError

if TYPE_CHECKING:
    import aiohttp

MAX_TRIES_WITHOUT_PROGRESS = 5
"""Give up after this many tries in a row that brought no new bytes."""
WAIT_S = 2.0
"""Pause before the second try; it doubles before each further try."""
READ_TIMEOUT_S = 60.0
"""Seconds without a byte after which a connection counts as broken."""
MAX_REDIRECTS = 5
CHUNK_BYTES = 1 << 20
BYTES_PER_MB = 1_000_000


class RetryableFetchError(Exception):
    """A try failed, but the next one may succeed."""


def fetch_model(model: RecommendedModel, *, check: bool = False) -> bool:
    """Download a model's file unless it exists; return whether it was downloaded.

    Until it is complete and checked, the file is called ``NAME.gguf.part``; the next call resumes
    at its end.

    Args:
        model: the model and its expected size and digest.
        check: compare the SHA-256 of an existing file as well, not only its size.

    Raises:
        BackendError: it cannot be downloaded, is not the expected file, does not fit on the disk,
            or another process is downloading it.
        OSError: the folder or the file cannot be written.
    """
    path = model.path
    if path.exists():
        if fault := _find_fault(model, path, check=check):
            message = f"remove it, then run trustassay models get {model.name}"
            raise BackendError(f"{path} has {fault}: {message}")
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        # The lock on the partial file keeps two processes from appending to it.
        file = open_locked(part, wait=False, private=False)
    except BlockingIOError:
        raise BackendError(
            f"another process is downloading {model.name} to {part}; wait until it has finished"
        ) from None
    with name_in_errors(part), file:
        # Another process may have finished while this one waited for the lock.
        if path.exists():
            part.unlink()
            return False
        # Check before the first byte: a full disk after an hour is worse.
        needed, free = model.bytes - _file_size(file), shutil.disk_usage(path.parent).free
        if needed > free:
            needed_mb, free_mb = needed / BYTES_PER_MB, free / BYTES_PER_MB
            sizes = f"it needs {needed_mb:,.0f} MB, but only {free_mb:,.0f} MB are free"
            raise BackendError(f"{model.name} does not fit into {path.parent}: {sizes}")
        # The digest is computed over the complete file, since parts may stem from several calls.
        asyncio.run(_fetch(model, file))
        if fault := _find_fault(model, part):
            part.unlink()
            raise BackendError(
                f"{model.address} sent a different file ({fault}); the download was removed"
            )
        # Renaming is atomic, so the final name never holds an incomplete file.
        part.replace(path)
    return True


def _find_fault(model: RecommendedModel, path: Path, *, check: bool = True) -> str | None:
    """Return how a file differs from the expected one; ``None`` if it does not."""
    if (size := path.stat().st_size) != model.bytes:
        return f"{size:,} bytes, expected {model.bytes:,}"
    if check:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != model.sha256:
            return f"the SHA-256 {digest}, expected {model.sha256}"
    return None


def _file_size(file: IO[bytes]) -> int:
    # Buffered bytes do not count in fstat.
    file.flush()
    return os.fstat(file.fileno()).st_size


async def _fetch(model: RecommendedModel, file: IO[bytes]) -> None:
    """Complete a file; tries that bring new bytes do not count towards the limit."""
    import aiohttp

    failed, furthest = 0, _file_size(file)
    session = aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=READ_TIMEOUT_S),
        # identity and auto_decompress=False: byte ranges refer to the file itself, not to a
        # compressed form.
        headers={"User-Agent": "trustassay", "Accept-Encoding": "identity"},
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    with Progress(f"{model.name}, MB", model.bytes // BYTES_PER_MB) as progress:
        async with session:
            while _file_size(file) != model.bytes:
                try:
                    await _resume(session, model, file, progress)
                except (
                    aiohttp.ClientError,
                    ConnectionError,
                    TimeoutError,
                    RetryableFetchError,
                ) as error:
                    size = _file_size(file)
                    # Only progress beyond the furthest point resets the count: a server may restart
                    # from 0.
                    failed = failed + 1 if size <= furthest else 1
                    furthest = max(furthest, size)
                    reason = f"{model.address}: {error or type(error).__name__}"
                    if failed == MAX_TRIES_WITHOUT_PROGRESS:
                        raise BackendError(
                            f"{reason}; {size:,} of {model.bytes:,} bytes are downloaded: run the "
                            "same command again to continue"
                        ) from None
                    wait_s = WAIT_S * 2 ** (failed - 1)
                    tell(f"{reason}; trying again in {wait_s:g} s")
                    await asyncio.sleep(wait_s)


async def _resume(
    session: "aiohttp.ClientSession", model: RecommendedModel, file: IO[bytes], progress: Progress
) -> None:
    """Request the missing end of a file, and write it as it arrives.

    Raises:
        RetryableFetchError, aiohttp.ClientError: the transfer stopped before the end.
        BackendError: the server does not have the file, or has another one.
    """
    start = _file_size(file)
    if start > model.bytes:
        start = file.truncate(0)
    async with await _request(session, model, start) as response:
        result = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
        if response.status == 200:
            total: int | None = response.content_length
        # A partial reply is only usable if it starts exactly where the file ends.
        elif response.status == 206 and result and int(result[1]) == start:
            total = int(result[2])
        # Range not satisfiable: the partial file does not belong to this file any more.
        elif response.status == 416:
            file.truncate(0)
            raise RetryableFetchError(f"cannot continue at byte {start:,}, starting over")
        # Timeouts, rate limits and server errors pass.
        elif response.status in (408, 425, 429) or response.status >= 500:
            raise RetryableFetchError(f"{response.status} {response.reason}")
        else:
            message = f"expected the file, got {response.status} {response.reason}"
            raise BackendError(f"{model.address}: {message}; set HF_ENDPOINT to use a mirror")
        if total != model.bytes:
            length = "one of unknown length" if total is None else f"{total:,} bytes"
            message = f"expected a file of {model.bytes:,} bytes, got {length}"
            raise BackendError(f"{model.address}: {message}")
        if response.status == 200:
            start = file.truncate(0)
        progress.resume(start // BYTES_PER_MB - progress.done)
        async for piece in response.content.iter_chunked(CHUNK_BYTES):
            file.write(piece)
            start += len(piece)
            progress.step(start // BYTES_PER_MB - progress.done)


async def _request(
    session: "aiohttp.ClientSession", model: RecommendedModel, start: int
) -> "aiohttp.ClientResponse":
    """Request a file from byte ``start`` on, and follow its redirects."""
    from yarl import URL

    url = URL(model.address)
    local = url.host in LOOPBACK
    for _ in range(MAX_REDIRECTS + 1):
        # Plain http is accepted within this machine only, as for a local mirror.
        if url.scheme != "https" and not (local and url.host in LOOPBACK):
            address_without_query = (
                f"{url.scheme}://{url.host}{url.path}"  # without what may be a signature
            )
            raise BackendError(
                f"{model.address}: redirects to {address_without_query}, expected https://..."
            )
        response = await session.get(
            url,
            headers={"Range": f"bytes={start}-"} if start else {},
            allow_redirects=False,
            # Chosen for each address: a redirect may lead to a host without a proxy.
            proxy=environment_proxy(str(url)),
        )
        target = response.headers.get("Location")
        if not (300 <= response.status < 400 and target):
            return response
        response.close()
        url = url.join(URL(target, encoded=True))  # a signature in it must stay as it is
    raise BackendError(f"{model.address}: more than {MAX_REDIRECTS} redirects")
