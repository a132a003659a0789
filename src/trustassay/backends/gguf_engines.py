"""Which engine runs a GGUF file: llama.cpp, or OpenVINO where it is faster and can do the work.

The name of a loaded model says which one it is: ``gguf:FILE?file=IDENTITY&engine=openvino``, or
without ``engine=`` for llama.cpp.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from trustassay.backends.gguf import GgufChat, GgufFile
from trustassay.backends.gguf_openvino import OpenvinoReader, find_obstacle, is_installed
from trustassay.backends.recommended import locate_model
from trustassay.core.capabilities import LocalChatModel
from trustassay.errors import BackendError

ENGINES = ("llama.cpp", "openvino")
FAST_INSTRUCTIONS = "avx512_vnni"
"""The name, as in ``/proc/cpuinfo``, of the instructions for 8-bit integers with which OpenVINO was
measured to be faster than llama.cpp (``lab/results/gguf-engines.json``)."""
READER_OPTIONS = ("threads", "context", "file")
"""Options of a URI that :class:`OpenvinoReader` takes."""


def load_gguf(path: str, *, engine: str = ENGINES[0], **options: Any) -> LocalChatModel:
    """Load a model in a GGUF file with one of :data:`ENGINES`.

    Args:
        path: of the file.
        engine: ``openvino`` gives the first token of replies, and no more.
        options: of :class:`GgufChat` or :class:`OpenvinoReader`.

    Raises:
        BackendError: no such engine, an option that it does not take, or it cannot load the file.
    """
    if engine not in ENGINES:
        raise BackendError(f"gguf:{path}: engine={engine} is unknown; use {' or '.join(ENGINES)}")
    if engine == ENGINES[0]:
        return GgufChat(path, **options)
    for option in options.keys() - set(READER_OPTIONS):
        raise BackendError(f"gguf:{path}: engine={engine} has no option {option}")
    return OpenvinoReader(path, **options)


def choose_engine(uri: str) -> str:
    """Return the URI of a model that is asked for the first token of its replies, with its engine.

    It is OpenVINO for a ``gguf:`` URI without options of generation if OpenVINO is installed, the
    processor has instructions for 8-bit integers, and nothing about the file is an obstacle
    (:func:`find_obstacle`). Any other URI is returned as it is.
    """
    target, _, query = locate_model(uri).partition("?")
    options = query.split("&") if query else []
    names = {option.partition("=")[0] for option in options}
    # The name of a model in a record has ``file=``, and means llama.cpp if it has no engine.
    if not target.startswith("gguf:") or not names <= {*READER_OPTIONS} - {"file"}:
        return uri
    if not is_installed() or FAST_INSTRUCTIONS not in read_processor_flags():
        return uri
    # A file that cannot be read is reported when it is loaded.
    with suppress(BackendError):
        file = GgufFile.read(target.removeprefix("gguf:"))
        if find_obstacle(file) is None:
            return f"{target}?{'&'.join([*options, f'engine={ENGINES[1]}'])}"
    return uri


def read_processor_flags() -> frozenset[str]:
    """Return the names of the processor's instruction sets; empty if the system does not list them.

    The names are those of Linux, as ``avx512_vnni``.
    """
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("flags"):
                return frozenset(line.partition(":")[2].split())
    return frozenset()
