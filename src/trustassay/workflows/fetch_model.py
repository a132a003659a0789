"""Fetches the file of a recommended model: goes on where it stopped, and checks the whole file."""

import asyncio
import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING

from trustassay.backends.http import LOOPBACK, environment_proxy
from trustassay.backends.recommended import Recommended
from trustassay.errors import BackendError
from trustassay.files import alone, named
from trustassay.progress import Progress, tell

if TYPE_CHECKING:
    import aiohttp

TRIES = 5
"""Tries in a row that bring nothing new."""
WAIT_S = 2.0
"""Before the second of them; before each of the next it is twice as long."""
SILENCE_S = 60.0
"""Without a byte the connection counts as broken."""
REDIRECTS = 5
PIECE = 1 << 20
MB = 1_000_000


class PassingError(Exception):
    """A try failed, and the next one may not."""


def fetch_model(model: Recommended, *, check: bool = False) -> bool:
    """Fetch a model's file unless it is there; return whether it was fetched.

    Until it is complete and checked it is ``NAME.gguf.part``, from whose end the next call goes on.
    check: compare the SHA-256 of a file that is there, too; else its size alone.

    Raises:
        BackendError: it cannot be fetched, is another file than expected, does not fit the disk, or
            another process fetches it.
        OSError: the folder or the file cannot be written.
    """
    path = model.path
    if path.exists():
        if fault := _fault(model, path, check=check):
            message = f"remove it, and run trustassay models get {model.name}"
            raise BackendError(f"{path} has {fault}: {message}")
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        file = alone(part, wait=False)
    except BlockingIOError:
        raise BackendError(f"another process is fetching {model.name} to {part}") from None
    with named(part), file:
        if path.exists():  # another process was faster
            part.unlink()
            return False
        needed, free = model.bytes - _size(file), shutil.disk_usage(path.parent).free
        if needed > free:
            sizes = f"{needed / MB:,.0f} MB are needed, and {free / MB:,.0f} MB are free"
            raise BackendError(f"{model.name} does not fit into {path.parent}: {sizes}")
        asyncio.run(_fetch(model, file))
        if fault := _fault(model, part):
            part.unlink()
            raise BackendError(f"{model.address} sent another file, which has {fault}; removed it")
        part.replace(path)
    return True


def _fault(model: Recommended, path: Path, *, check: bool = True) -> str | None:
    """Return in what a file differs from the expected one, if it does."""
    if (size := path.stat().st_size) != model.bytes:
        return f"{size:,} bytes, expected {model.bytes:,}"
    if check:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != model.sha256:
            return f"the SHA-256 {digest}, expected {model.sha256}"
    return None


def _size(file: IO[bytes]) -> int:
    file.flush()
    return os.fstat(file.fileno()).st_size


async def _fetch(model: Recommended, file: IO[bytes]) -> None:
    """Complete a file, with as many tries as bring something new."""
    import aiohttp

    failed, furthest = 0, _size(file)
    session = aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=SILENCE_S),
        headers={"User-Agent": "trustassay", "Accept-Encoding": "identity"},
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    with Progress(f"{model.name}, MB", model.bytes // MB) as progress:
        async with session:
            while _size(file) != model.bytes:
                try:
                    await _go_on(session, model, file, progress)
                except (aiohttp.ClientError, ConnectionError, TimeoutError, PassingError) as error:
                    size = _size(file)
                    failed = failed + 1 if size <= furthest else 1
                    furthest = max(furthest, size)
                    reason = f"{model.address}: {error or type(error).__name__}"
                    if failed == TRIES:
                        raise BackendError(
                            f"{reason}; {size:,} of {model.bytes:,} bytes are here: run the same "
                            "command again to go on"
                        ) from None
                    wait_s = WAIT_S * 2 ** (failed - 1)
                    tell(f"{reason}; trying again in {wait_s:g} s")
                    await asyncio.sleep(wait_s)


async def _go_on(
    session: "aiohttp.ClientSession", model: Recommended, file: IO[bytes], progress: Progress
) -> None:
    """Ask for what is missing at the end of a file, and write it as it comes.

    Raises:
        PassingError, aiohttp.ClientError: it stopped before the end.
        BackendError: the file is not there, or it is another one.
    """
    start = _size(file)
    if start > model.bytes:
        start = file.truncate(0)
    async with await _answer(session, model, start) as response:
        result = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
        if response.status == 200:
            total: int | None = response.content_length
        elif response.status == 206 and result and int(result[1]) == start:
            total = int(result[2])
        elif response.status == 416:
            file.truncate(0)
            raise PassingError(f"cannot go on from byte {start:,}, starting over")
        elif response.status in (408, 425, 429) or response.status >= 500:
            raise PassingError(f"{response.status} {response.reason}")
        else:
            message = f"{response.status} {response.reason}, expected the file"
            raise BackendError(f"{model.address}: {message}; HF_ENDPOINT may name a mirror")
        if total != model.bytes:
            length = "unknown length" if total is None else f"{total:,} bytes"
            message = f"a file of {length}, expected {model.bytes:,} bytes"
            raise BackendError(f"{model.address}: {message}")
        if response.status == 200:
            start = file.truncate(0)
        progress.step(start // MB - progress.done)
        async for piece in response.content.iter_chunked(PIECE):
            file.write(piece)
            start += len(piece)
            progress.step(start // MB - progress.done)


async def _answer(
    session: "aiohttp.ClientSession", model: Recommended, start: int
) -> "aiohttp.ClientResponse":
    """Return the response to a request for a file from a byte on, behind its redirects."""
    from yarl import URL

    url = URL(model.address)
    local = url.host in LOOPBACK
    for _ in range(REDIRECTS + 1):
        if url.scheme != "https" and not (local and url.host in LOOPBACK):
            shown = f"{url.scheme}://{url.host}{url.path}"  # without what may be a signature
            raise BackendError(f"{model.address}: leads to {shown}, expected https://...")
        response = await session.get(
            url,
            headers={"Range": f"bytes={start}-"} if start else {},
            allow_redirects=False,
            proxy=environment_proxy(str(url)),
        )
        target = response.headers.get("Location")
        if not (300 <= response.status < 400 and target):
            return response
        response.close()
        url = url.join(URL(target, encoded=True))  # a signature in it must stay as it is
    raise BackendError(f"{model.address}: more than {REDIRECTS} redirects")
