"""Tracebacks in files, without keys and without the paths of this machine.

A run's folder may be sent to others, and so may what is written here.
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

from trustassay.core.files import is_run_folder, make_private_folder, open_new

# Names in a run's folder.
TRACEBACKS, INTERNAL = "tracebacks", "internal-error.txt"
MAX_TRACEBACKS = 20
"""Maximum number of traceback files in a run's folder; further ones are not written."""
MAX_TRACEBACK_CHARS = 16_000
"""Characters of a traceback; the middle of a longer one is left out."""
MIN_SECRET_CHARS = 8
"""Minimum length of a key that is a secret; shorter ones ("EMPTY", "none") are placeholders."""

_hidden: set[str] = set()
# Environment variables with such a name hold a secret: OPENAI_API_KEY, HF_TOKEN.
_KEY_NAMES = re.compile("KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
# Keys by their form: "user:password" of "https://user:password@host", the word after "Bearer ", and
# "sk-...", "pk_...", "hf_..." with at least 16 characters.
_KEYS = re.compile(r"(?<=://)[^/\s@]+(?=@)|(?<=Bearer )\S+|\b(?:sk|pk|hf)[-_][\w-]{16,}")
# The folder in a line of a traceback: 'File "/home/me/app/x.py"' becomes 'File "x.py"'.
_FILE = re.compile(r'(?<=File ")/[^"\n]*/(?=[^"/\n]+")')
# An absolute path anywhere else, up to its last part: "/home/me/x.csv" becomes "x.csv". The first
# folder is a group, to check that it exists on this machine.
_PATH = re.compile(r"""(?<![\w:/.~-])/([^\s/'"<>:,;]+)/(?:[^\s/'"<>:,;]+/)*(?=[^\s/'"<>:,;]+)""")


def hide_key(key: str) -> None:
    """Leave a key out of everything that is written, whichever variable it was in."""
    if len(key) >= MIN_SECRET_CHARS:
        _hidden.add(key)


def redact(text: str) -> str:
    """Return a text for a file that people share: without keys, paths and control characters.

    Keys are those that were passed to :func:`hide_key`, the values of environment variables with
    the name of a key, and words that have the form of one.
    """
    secrets = (value.strip() for name, value in os.environ.items() if _KEY_NAMES.search(name))
    # The longest first: a key that contains another one must not leave its rest behind.
    for key in sorted(_hidden.union(secrets), key=len, reverse=True):
        if len(key) >= MIN_SECRET_CHARS:
            text = text.replace(key, "[key]")
    text = _KEYS.sub("[key]", text)
    # Known folders by their text first, since they may contain spaces, at which the pattern ends.
    for folder in _find_import_folders():
        text = text.replace(f"{folder}/", "")
    # "/v1/chat" of an address is no path: its first folder does not exist here.
    text = _PATH.sub(lambda m: "" if Path("/", m[1]).exists() else m[0], _FILE.sub("", text))
    return "".join(c if c.isprintable() or c in "\n\t" else f"<U+{ord(c):04X}>" for c in text)


def _find_import_folders() -> list[str]:
    """Return the folders that modules are imported from and the working folder, longest first."""
    folders = {folder for folder in sys.path if folder.startswith("/")} | {sys.prefix}
    with suppress(OSError):
        folders.add(str(Path.cwd()))
    # Not "/" or "/usr": too short to be a hint, and part of other words.
    return sorted((path for path in folders if path.count("/") > 1), key=len, reverse=True)


def locate_error(error: BaseException) -> str:
    """Return file and line of the last frame outside of libraries: ``trustassay/texts.py:12``."""
    places = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if not places:
        return "an unknown place"
    own_frames = [
        frame_place for frame_place in places if _is_own_or_user_file(frame_place[0])
    ] or places
    return f"{_redact_file(own_frames[-1][0])}:{own_frames[-1][1]}"


@cache
def _is_own_or_user_file(file: str) -> bool:
    """Whether a file belongs to this package or to the user, and not to a library.

    Compiled modules name files without their folder, for example ``numpy/random/mtrand.pyx``.
    """
    libraries = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    # "<string>" and "<frozen importlib>" are no files.
    outside = ("<", *(f"{folder}/" for folder in libraries))
    if file.startswith(f"{Path(__file__).parents[1]}/"):
        return True
    return file.endswith(".py") and not file.startswith(outside)


_redact_file = cache(redact)


def describe_error(error: BaseException) -> str:
    """Return kind, message and place of an error in one line, for a file that people share."""
    return f"{type(error).__name__}: {redact(str(error))} ({locate_error(error)})"


def write_failure(folder: Path, metric: str, error: BaseException) -> None:
    """Write the traceback of a metric's failure into a run's folder, one file for each place.

    A full disk does not end the run.
    """
    # The end of the name holds the place; no leading dot, which would hide the file.
    name = re.sub(r"[^\w.-]+", "-", f"{metric}-{locate_error(error)}")[-100:].lstrip(".")
    path = folder / TRACEBACKS / f"{name}.txt"
    with suppress(OSError):
        make_private_folder(path.parent)
        # A fault that hits every sample gives one file, not a million.
        if not path.exists() and len(list(path.parent.iterdir())) < MAX_TRACEBACKS:
            _write(path, error)


def write_internal_error(run: Path | None, error: BaseException) -> Path | None:
    """Write the traceback of a fault of the program, and return the file.

    It goes into the folder ``run`` if that holds a run, otherwise into the user's state folder,
    otherwise into the temporary folder; ``None`` if none of them can be written.
    """
    if run is not None and is_run_folder(run):
        with suppress(OSError):
            return _write(run / INTERNAL, error)
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home
        state = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
        make_private_folder(state / "trustassay")
        return _write(state / "trustassay" / INTERNAL, error)
    with suppress(OSError):
        number, name = tempfile.mkstemp(prefix="trustassay-", suffix=".txt")
        os.close(number)
        return _write(Path(name), error)
    return None


def _write(path: Path, error: BaseException) -> Path:
    """Write a traceback, readable by its owner only, and return the path."""
    text = redact("".join(traceback.format_exception(error)))
    # A deep recursion: its beginning and its end tell what happened.
    if len(text) > MAX_TRACEBACK_CHARS:
        dropped = len(text) - MAX_TRACEBACK_CHARS
        half = MAX_TRACEBACK_CHARS // 2
        text = f"{text[:half]}\n[{dropped} characters are left out]\n{text[-half:]}"
    # Not through a link: in a shared folder somebody else could have put one there.
    with open_new(path) as file:
        file.write(text.encode("utf-8", "replace"))
    return path
