"""Models and tokenizers of the Hugging Face hub, or of folders in its layout, ready for inference.

Only safetensors weights are read, and a model's own code is never run. torch and transformers are
imported when the first model is loaded.
"""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.telemetry import quiet_hub
from trustassay.core.capabilities import BatchLimits
from trustassay.errors import BackendError, install_command

Features = dict[str, list[int]]


def import_libraries() -> tuple[Any, Any]:
    """Return torch and transformers; raises :class:`BackendError` if one is missing."""
    quiet_hub()
    try:
        import torch
        import transformers
    except ImportError as error:
        raise BackendError(f"{error.name} is missing: {install_command('hf')}") from error
    return torch, transformers


def load_config(name: str) -> tuple[str, Any]:
    """Return a model's folder or ID, as transformers loads it, and its config.

    Raises:
        BackendError: there is no such folder; transformers' own errors for everything else.
    """
    _, transformers = import_libraries()
    folder = str(Path(name).expanduser()) if name.startswith("~") else name
    if folder.startswith(("/", ".")) and not Path(folder).is_dir():
        raise BackendError("there is no such folder")
    config = transformers.AutoConfig.from_pretrained(
        folder, trust_remote_code=False, **only_local(folder)
    )
    return folder, config


def only_local(folder: str) -> dict[str, bool]:
    """Return the option with which a folder is loaded without contacting the hub."""
    return {"local_files_only": True} if Path(folder).is_dir() else {}


def load(
    folder: str,
    auto: Any,
    device: str | None,
    dtype: str | None,
    check: bool = True,
    pad_with_end: bool = False,
    unused: tuple[str, ...] = (),
) -> tuple[Any, Any]:
    """Load a model of the class ``auto``, ready for inference, and its tokenizer.

    Args:
        folder: folder, or ID on the hub.
        auto: class of transformers.
        device: name of a torch device; ``None``: the best of this machine.
        dtype: name of a dtype; ``None``: the best for the device.
        check: raise if the files lack weights that the class needs: an untrained head.
        pad_with_end: let a tokenizer without a padding token pad with its end token.
        unused: beginnings of the names of weights that may be absent, as nothing reads their
            output.

    Raises:
        BackendError: there are no safetensors weights, or weights are missing.
    """
    _, transformers = import_libraries()
    where, options = dtype_options(device, dtype)
    local = only_local(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False, **local)
    # Decoder-only models often have none; what is padded is masked anyway.
    if tokenizer.pad_token_id is None and pad_with_end:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token_id is None:
        raise BackendError("its tokenizer has no padding token")
    with safetensors_only():
        model, report = auto.from_pretrained(
            folder,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            **local,
            **options,
        )
    missing = sorted(key for key in report["missing_keys"] if not key.startswith(unused))
    if missing and check:
        raise BackendError(f"its files lack weights that {type(model).__name__} needs: {missing}")
    return model.to(where).eval(), tokenizer


def dtype_options(device: str | None, dtype: str | None) -> tuple[Any, dict[str, Any]]:
    """Return the torch device, and the dtype as an option of ``from_pretrained``.

    By default the best device of this machine, and bfloat16 where CUDA computes in it, else
    float32.
    """
    torch, transformers = import_libraries()
    if device is None:
        otherwise = "mps" if torch.backends.mps.is_available() else "cpu"
        device = "cuda" if torch.cuda.is_available() else otherwise
    where = torch.device(device)
    if dtype is None:
        # From the compute capability 8 (Ampere) on.
        fast = where.type == "cuda" and torch.cuda.get_device_capability(where)[0] >= 8
        dtype = "bfloat16" if fast else "float32"
    if dtype not in ("float32", "bfloat16", "float16"):
        raise BackendError(f"dtype={dtype} is unknown; use float32, bfloat16 or float16")
    # transformers 5 has renamed the option.
    keyword = "dtype" if int(transformers.__version__.split(".")[0]) >= 5 else "torch_dtype"
    return where, {keyword: getattr(torch, dtype)}


@contextmanager
def safetensors_only() -> Iterator[None]:
    """Replace the error for a model without safetensors weights by a clear one."""
    try:
        yield
    except OSError as error:
        if "safetensors" not in str(error):
            raise
        raise BackendError(
            "it has no safetensors weights, and pickled ones (.bin) are not loaded because they "
            "can run code; save it again with save_pretrained(...) of a recent transformers"
        ) from error


def find_max_input_tokens(model: Any, tokenizer: Any) -> int | None:
    """Return the number of tokens that the model reads; ``None`` if there is no limit."""
    positions = getattr(model.config, "max_position_embeddings", None) or 0
    # RoBERTa and its kin count positions from behind the padding token's.
    offsets = [
        module.padding_idx + 1
        for name, module in model.named_modules()
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None
    ]
    limits = (positions - max(offsets, default=0), tokenizer.model_max_length)
    # A tokenizer without a limit says 10^30.
    return min((int(limit) for limit in limits if 0 < limit < 10**9), default=None)


@contextmanager
def silence_libraries() -> Iterator[None]:
    """Keep transformers from showing bars, reports and warnings, with its own switches.

    The bars of downloads are kept, since nothing else shows that one is running. Raises as
    :func:`import_libraries`.
    """
    _, transformers = import_libraries()
    from huggingface_hub.utils import (  # type: ignore[attr-defined]
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    verbosity, switches = transformers.logging.get_verbosity(), transformers.utils.logging
    bars_were_on, downloads = switches.is_progress_bar_enabled(), not are_progress_bars_disabled()
    # All switches are global, so they are restored at the end.
    transformers.logging.set_verbosity_error()
    switches.disable_progress_bar()  # those of downloads, too
    if downloads:
        enable_progress_bars()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(verbosity)
        if bars_were_on:
            switches.enable_progress_bar()
        if not downloads:
            disable_progress_bars()


@contextmanager
def errors_in_one_line(name: str, kind: type[Exception]) -> Iterator[None]:
    """Turn an exception of a library into a BackendError of one line, without the user's token.

    What the library would print meanwhile is not shown (:func:`silence_libraries`).
    """
    try:
        with silence_libraries():
            yield
    except BackendError as error:
        raise BackendError(f"{name}: {error}") from error
    except kind as error:
        # The first line says what is wrong. It may contain a token of the hub, which is removed.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        message = re.sub(r"\bhf_\w{8,}", "hf_***", (lines or [type(error).__name__])[0])[:300]
        if "trust_remote_code" in str(error):
            message = "it needs code from its repository, which trustassay does not run"
        hint = "; try a smaller ?batch_tokens=" if "out of memory" in message else ""
        raise BackendError(f"{name}: {message}{hint}") from error


class HubModel:
    """Common part of all models of the hub: options, batches up to a size, one thread at a time."""

    name: str

    def __init__(
        self, *, device: str | None = None, dtype: str | None = None, batch_tokens: int = 16_384
    ) -> None:
        """Take the options of all models.

        Args:
            device: torch's name of a device; by default the best of this machine.
            dtype: torch's name of a dtype; by default the best for the device.
            batch_tokens: size of a batch, including padding and the longest replies.
        """
        self.limits = BatchLimits(items=256, tokens=batch_tokens)
        self._device, self._dtype, self._batch_tokens = device, dtype, batch_tokens
        self._lock = threading.Lock()  # a fast tokenizer serves one thread at a time


def pad_inputs(inputs: Sequence[Features], tokenizer: Any, device: Any) -> dict[str, Any]:
    """Return the inputs as tensors (b, longest) on a device, padded on the tokenizer's side.

    This is what ``tokenizer.pad`` does, without its loop in Python over every number.
    """
    torch, _ = import_libraries()
    lengths = [len(features["input_ids"]) for features in inputs]
    # Everything else, such as the attention mask, is padded with 0.
    fills = {"input_ids": tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id}
    pads_left = tokenizer.padding_side == "left"
    tensors = {}
    for key in inputs[0]:
        array = np.full((len(inputs), max(lengths)), fills.get(key, 0), dtype=np.int64)
        for row, features, length in zip(array, inputs, lengths, strict=True):
            row[slice(-length, None) if pads_left else slice(length)] = features[key]
        tensors[key] = torch.from_numpy(array).to(device)
    return tensors


def split_in_batches(lengths: Sequence[int], tokens: int) -> Iterator[NDArray[np.intp]]:
    """Yield the indices of batches, longest first, whose size with padding is within ``tokens``.

    An item that is longer than that is a batch by itself.
    """
    # The longest first: if the memory is too small, it shows at once. Stable, for equal results.
    order = np.argsort(-np.asarray(lengths), kind="stable")
    start = 0
    while start < len(order):
        count = max(1, tokens // max(1, lengths[order[start]]))
        yield order[start : start + count]
        start += count


def build_uri(model: str, **options: str | int | None) -> str:
    """Return the URI of a model with the options that are set, which change its results."""
    options_set = [f"{name}={value}" for name, value in options.items() if value is not None]
    return f"hf:{model}" + ("?" + "&".join(options_set) if options_set else "")
