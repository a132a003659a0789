"""Tracebacks in files: without keys, and without the paths of this machine.

What is written here may be sent to somebody else, as the rest of a run's folder.
"""

import os
import re
import sys
import sysconfig
import tempfile
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path

TRACEBACKS, INTERNAL = "tracebacks", "internal-error.txt"
MOST = 20
"""Files of a run's folder; what fails at other places then is not kept."""
MAX_TRACEBACK_CHARS = 16_000
"""Characters of a traceback; of a longer one the middle is left out."""
SECRET = 8
"""Characters of a key that is a secret; shorter ones ("EMPTY", "none") are placeholders."""
OWNER_ONLY_MODE = 0o600

_hidden: set[str] = set()
_KEY_NAMES = re.compile("KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_KEYS = re.compile(r"(?<=://)[^/\s@]+(?=@)|(?<=Bearer )\S+|\b(?:sk|pk|hf)[-_][\w-]{16,}")
_FILE = re.compile(r'(?<=File ")/[^"\n]*/(?=[^"/\n]+")')
_PATH = re.compile(r"""(?<![\w:/.~-])/([^\s/'"<>:,;]+)/(?:[^\s/'"<>:,;]+/)*(?=[^\s/'"<>:,;]+)""")


def hide(key: str) -> None:
    """Leave a key out of all that is written, whatever variable it was in."""
    if len(key) >= SECRET:
        _hidden.add(key)


def shown(text: str) -> str:
    """Return text for a file that people share: without keys, paths and control characters.

    Keys are those that were given to :func:`hide`, the values of variables of the environment that
    are named like one, and what has the form of one.
    """
    secrets = (value.strip() for name, value in os.environ.items() if _KEY_NAMES.search(name))
    for key in sorted(_hidden.union(secrets), key=len, reverse=True):
        if len(key) >= SECRET:
            text = text.replace(key, "[key]")
    text = _KEYS.sub("[key]", text)
    for folder in _find_import_folders():
        text = text.replace(f"{folder}/", "")
    text = _PATH.sub(lambda m: "" if Path("/", m[1]).exists() else m[0], _FILE.sub("", text))
    return "".join(c if c.isprintable() or c in "\n\t" else f"<U+{ord(c):04X}>" for c in text)


def _find_import_folders() -> list[str]:
    """Return the folders from which modules are imported, and the working one, longest first."""
    folders = {folder for folder in sys.path if folder.startswith("/")} | {sys.prefix}
    with suppress(OSError):
        folders.add(str(Path.cwd()))
    return sorted((path for path in folders if path.count("/") > 1), key=len, reverse=True)


def place_of(error: BaseException) -> str:
    """Return file and line of the last frame outside of libraries: ``trustassay/texts.py:12``."""
    places = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if not places:
        return "an unknown place"
    last = [frame_place for frame_place in places if _is_own_or_user_file(frame_place[0])] or places
    return f"{_redact_file(last[-1][0])}:{last[-1][1]}"


@cache
def _is_own_or_user_file(file: str) -> bool:
    """Whether a file is of this package, or of the user, and not of a library; compiled ones name
    files without their folders, as ``numpy/random/mtrand.pyx``."""
    libraries = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    outside = ("<", *(f"{folder}/" for folder in libraries))
    if file.startswith(f"{Path(__file__).parent}/"):
        return True
    return file.endswith(".py") and not file.startswith(outside)


_redact_file = cache(shown)


def words_of(error: BaseException) -> str:
    """Return kind, message and place of an error in a line for a file that people share."""
    return f"{type(error).__name__}: {shown(str(error))} ({place_of(error)})"


def keep_failure(folder: Path, metric: str, error: BaseException) -> None:
    """Keep the traceback of a metric's failure in a run's folder: one for each place.

    A disk that has no room for it does not end the run.
    """
    name = re.sub(r"[^\w.-]+", "-", f"{metric}-{place_of(error)}")[-100:].lstrip(".")
    path = folder / TRACEBACKS / f"{name}.txt"
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        if not path.exists() and len(list(path.parent.iterdir())) < MOST:
            _write(path, error)


def keep_internal_error(run: Path | None, error: BaseException) -> Path | None:
    """Write the traceback of a fault of the program, and return the file.

    That is in the folder ``run`` if it holds one, else in the user's folder of states, else in the
    temporary one; ``None`` if none of them can be written.
    """
    if run is not None and (run / "run.json").exists():
        with suppress(OSError):
            return _write(run / INTERNAL, error)
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home
        state = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
        (state / "trustassay").mkdir(mode=0o700, parents=True, exist_ok=True)
        return _write(state / "trustassay" / INTERNAL, error)
    with suppress(OSError):
        number, name = tempfile.mkstemp(prefix="trustassay-", suffix=".txt")
        os.close(number)
        return _write(Path(name), error)
    return None


def _write(path: Path, error: BaseException) -> Path:
    text = shown("".join(traceback.format_exception(error)))
    if len(text) > MAX_TRACEBACK_CHARS:
        dropped = len(text) - MAX_TRACEBACK_CHARS
        half = MAX_TRACEBACK_CHARS // 2
        text = f"{text[:half]}\n[{dropped} characters are left out]\n{text[-half:]}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(
        os.open(path, flags, OWNER_ONLY_MODE), "w", encoding="utf-8", errors="replace"
    ) as file:
        os.fchmod(file.fileno(), OWNER_ONLY_MODE)
        file.write(text)
    return path
