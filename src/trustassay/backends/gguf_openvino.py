"""``gguf:FILE?engine=openvino``: the first token of a reply, computed by OpenVINO.

Entailment by odds only needs the probabilities of the first token of two replies. OpenVINO computes
them with the processor's instructions for 8-bit integers, which the wheel of llama.cpp does not
use: in less CPU time, with nearly the same odds (``lab/results/gguf-engines.json``).

1. Once for each file, OpenVINO GenAI builds the model's graph and its tokenizer from the file. It
   rounds weights of 4 bits once more, which changes them by 9 % (root mean square). They are
   replaced by 8-bit integers that are computed from the file, which changes them by 0.8 %. The
   result is stored in the folder of downloaded models.
2. What prompts have in common at their beginning is read once, and then the rest of each.
3. Only the last token of each prompt reaches the model's head, which computes in float32: a
   log-probability in bfloat16 would be rounded to sixteenths.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.chat_text import shorten
from trustassay.backends.gguf import DEFAULT_CONTEXT_TOKENS, GgufFile, read_free_memory
from trustassay.backends.recommended import find_languages, models_folder
from trustassay.backends.telemetry import import_openvino
from trustassay.core.capabilities import BatchLimits, ChatRequest, Reply, TokenLogprob
from trustassay.core.progress import tell
from trustassay.core.sample import clean
from trustassay.errors import BackendError, install_command
from trustassay.text.numbers import gigabytes_text

Floats = NDArray[np.float32]

EXTRA = "gguf-openvino"
ARCHITECTURES = ("qwen2",)
"""Architectures of models whose odds were compared with those of llama.cpp."""
GROUP_SIZE = 128
"""Neighbouring weights, and inputs of a layer, that share a scale.

Measured on three prompts of 180 to 348 tokens: 4.2 CPU seconds with 32, 3.1 with 128, and log-odds
that differ by 0.1 at the most from those in float32.
"""
LARGEST_INTEGER = 127
MAX_WEIGHT_DIFFERENCE = 0.3
"""Largest relative difference, as a root mean square, of the weights before and after replacement.

It is 0.09 for the right matrix; for an unrelated one it would be about 1.4.
"""
STORED_VERSION = 1
"""Part of the stored folder's name; to be raised whenever its content changes."""
STORED_SIZE_FACTOR = 1.6
"""Size of the stored folder relative to the file, from 4 to 8 bits for most weights."""
GRAPH_SIZE_FACTOR = 1.2
"""Size of the graph as OpenVINO writes it, relative to the file."""
MEMORY_FACTOR = 3.4
"""Memory of a loaded model relative to the file; preparing it takes as much.

Measured: 3.7 GB for a file of 1.1 GB, of which 1.6 GB are pages of the stored file that the system
may drop.
"""
BATCH_ITEMS = 16
MAX_REASON_CHARACTERS = 200
"""Characters of an error of OpenVINO that are shown: its end says what is wrong."""
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
"""Names of the matrices of a layer, in the order in which the graph uses them."""


def find_obstacle(file: GgufFile) -> str | None:
    """Return why a file cannot be read with OpenVINO here; ``None`` if it can."""
    architecture = file.values.get("general.architecture")
    if architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        return f"expected a model of architecture {known} for OpenVINO, got {architecture}"
    widths = [file.of_model(name) for name in ("embedding_length", "feed_forward_length")]
    if not all(isinstance(width, int) and width % GROUP_SIZE == 0 for width in widths):
        return f"OpenVINO needs layers with a multiple of {GROUP_SIZE} inputs"
    memory, free_memory = file.size * MEMORY_FACTOR, read_free_memory()
    if free_memory is not None and memory > free_memory:
        free_text = gigabytes_text(free_memory)
        return f"it needs about {gigabytes_text(memory)} of memory, but only {free_text} are free"
    folder = find_folder(file)
    if not folder.exists():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(folder.parent).free
        except OSError as error:
            return f"it cannot be prepared in {folder.parent}: {error.strerror}"
        # The graph as OpenVINO writes it is on the disk at the same time.
        needed = file.size * (STORED_SIZE_FACTOR + GRAPH_SIZE_FACTOR)
        if needed > free:
            sizes = f"it needs {gigabytes_text(needed)}, but only {gigabytes_text(free)} are free"
            return f"it cannot be prepared in {folder.parent}: {sizes}"
    return None


def find_folder(file: GgufFile) -> Path:
    """Return the folder of what is prepared from a file."""
    return models_folder() / "openvino" / f"{file.identity}-{STORED_VERSION}"


def is_installed() -> bool:
    """Whether the packages of the extra ``gguf-openvino`` are installed."""
    return all(find_spec(name) is not None for name in ("openvino_genai", "gguf"))


class OpenvinoReader:
    """Gives the probabilities of the first token of a reply, with a model in a GGUF file."""

    tells_first_token = True
    shared = True
    """Other runs may use its replies: its name has the identity of the file and the engine."""

    def __init__(
        self,
        path: str,
        *,
        threads: int | None = None,
        context: int | None = None,
        file: str | None = None,
    ) -> None:
        """Load a model, and prepare it if that was not done yet.

        Args:
            path: of the file.
            threads: that compute; by default one a processor.
            context: the largest number of tokens of a prompt; by default 4096.
            file: the identity that the file must have.

        Raises:
            BackendError: the model cannot be loaded, with a message of one line.
        """
        try:
            if not is_installed():
                message = f"openvino-genai or gguf is missing: {install_command(EXTRA)}"
                raise BackendError(message)
            result = GgufFile.read(path)
            if file not in (None, result.identity):
                message = f"expected the file {file}, got {result.identity}"
                raise BackendError(message)
            if obstacle := find_obstacle(result):
                raise BackendError(f"{obstacle}; try engine=llama.cpp")
            self.context = context or DEFAULT_CONTEXT_TOKENS
            self.memory = int(result.size * MEMORY_FACTOR)
            self.name = f"gguf:{path}?file={result.identity}&engine=openvino"
            self.limits = BatchLimits(items=BATCH_ITEMS, tokens=None, order="text")
            self.judges_in = find_languages(result.size)
            """Languages in which it judges well enough, if that was measured."""
            count = threads or len(os.sched_getaffinity(0))
            self._model = FirstTokenModel(prepare_model(result), count)
        except BackendError as error:
            raise BackendError(f"gguf:{path}: {error}") from None
        except (OSError, RuntimeError) as error:
            reason = " ".join(str(error).split())[-MAX_REASON_CHARACTERS:]
            message = f"gguf:{path}: OpenVINO cannot load it: {reason}; try engine=llama.cpp"
            raise BackendError(message) from None
        self._lock = threading.Lock()

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply | BackendError]:
        """Return the first token of the reply to each request, with its alternatives.

        Raises:
            BackendError: the only request asks for more than one token, or its prompt is too long.
        """
        with self._lock:
            result = self._reply_to_all(requests)
        # The batcher tries the requests of a failed batch one by one, and expects an exception
        # then.
        if len(result) == 1 and isinstance(result[0], BackendError):
            raise result[0]
        return result

    def _reply_to_all(self, requests: Sequence[ChatRequest]) -> list[Reply | BackendError]:
        result: list[Reply | BackendError] = []
        prompts: dict[int, list[int]] = {}
        for number, request in enumerate(requests):
            prompt = self._model.encode(
                [{"role": role, "content": clean(content)} for role, content in request.messages]
            )
            error = self._find_fault(request, len(prompt))
            result.append(BackendError(f"{self.name}: {error}"))
            if error is None:
                prompts[number] = prompt
        for group in group_prompts(prompts):
            logits = self._model.compute_logits([prompts[number] for number in group])
            for number, row in zip(group, logits, strict=True):
                count = max(1, requests[number].logprobs or 0)
                result[number] = self._build_reply(row, count, len(prompts[number]))
        return result

    def _find_fault(self, request: ChatRequest, tokens: int) -> str | None:
        """Return why a request cannot be answered; ``None`` if it can."""
        if request.max_tokens != 1 or request.logprobs is None or request.n != 1 or request.schema:
            return "engine=openvino only gives the first token of a reply; try engine=llama.cpp"
        if tokens > self.context:
            beginning = shorten(request.messages[-1].content)
            return (
                f"a prompt of {tokens} tokens does not fit the context of {self.context} tokens; "
                f"raise it with ?context=N: {beginning!r}"
            )
        return None

    def _build_reply(self, logits: Floats, count: int, prompt_tokens: int) -> Reply:
        shifted = logits.astype(float) - logits.max()
        logprobs = shifted - np.log(np.exp(shifted).sum())
        likeliest = np.argsort(-logprobs, kind="stable")[:count]
        alternatives = tuple(
            (self._model.decode(int(token)), float(logprobs[token])) for token in likeliest
        )
        text, logprob = alternatives[0]
        return Reply(
            text,
            finish="length",
            prompt_tokens=prompt_tokens,
            reply_tokens=1,
            logprobs=(TokenLogprob(text, logprob, alternatives),),
        )


def group_prompts(prompts: dict[int, list[int]]) -> Iterator[list[int]]:
    """Yield the keys of prompts that are read together, since they have half of them in common.

    Args:
        prompts: the tokens of each prompt.
    """
    group: list[int] = []
    # Sorted, prompts with a common beginning are neighbours.
    for key in sorted(prompts, key=lambda key: prompts[key]):
        members = [prompts[number] for number in [*group, key]]
        if group and count_common(members) < max(map(len, members)) // 2:
            yield group
            group = []
        group.append(key)
    if group:
        yield group


def count_common(prompts: Sequence[Sequence[int]]) -> int:
    """Return how many tokens all prompts begin with, at least one less than the shortest has."""
    most = min(map(len, prompts)) - 1
    for place in range(most):
        if any(prompt[place] != prompts[0][place] for prompt in prompts):
            return place
    return most


class FirstTokenModel:
    """A prepared model: its tokenizer, its layers, and its head."""

    def __init__(self, folder: Path, threads: int) -> None:
        """
        Args:
            folder: as :func:`prepare_model` returns it.
            threads: the number of threads that compute.
        """
        openvino, genai = import_openvino()
        operators = openvino.opset13
        core = openvino.Core()
        model = core.read_model(folder / "openvino_model.xml")
        # 1. Cut the graph before the head, so that the head only gets the last tokens.
        output = model.outputs[0].node
        head = output.input(0).get_source_output().get_node()
        states = head.input(0).get_source_output()
        width = states.get_partial_shape()[2].get_length()
        last_states = operators.parameter([-1, width], np.float32)
        head.input(0).replace_source_output(last_states.output(0))
        head_model = openvino.Model([operators.result(head)], [last_states])
        model.remove_result(output)
        model.add_results([operators.result(states)])
        # 2. The layers compute in 8-bit integers, and in bfloat16 where the processor has it.
        shared_options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        # Keys and values of earlier tokens would be 8-bit integers by default; log-odds then differ
        # by up to 0.13 between prompts that are read together and one by one, by 0.02 with float32.
        layers_options = {
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": GROUP_SIZE,
            "KV_CACHE_PRECISION": "f32",
        }
        head_options = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 0, "INFERENCE_PRECISION_HINT": "f32"}
        self._layers = core.compile_model(
            model, "CPU", shared_options | layers_options
        ).create_infer_request()
        self._head = core.compile_model(
            head_model, "CPU", shared_options | head_options
        ).create_infer_request()
        self._tokenizer = genai.Tokenizer(folder)
        self._texts: dict[int, str] = {}

    def encode(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Return the tokens of a chat, laid out by the model's template."""
        text = self._tokenizer.apply_chat_template(list(messages), add_generation_prompt=True)
        tokens = self._tokenizer.encode(text, add_special_tokens=False)
        return [int(token) for token in tokens.input_ids.data[0]]

    def decode(self, token: int) -> str:
        """Return the text of a token; empty for a special one."""
        if token not in self._texts:
            self._texts[token] = str(self._tokenizer.decode([token]))
        return self._texts[token]

    def compute_logits(self, prompts: Sequence[Sequence[int]]) -> Floats:
        """Return the logits of the token after each prompt, shape (n, vocabulary).

        Args:
            prompts: the tokens of n prompts; what all begin with is computed once.
        """
        common = count_common(prompts)
        self._layers.reset_state()
        if common:
            self._run_layers([prompts[0][:common]], 0)
        tails = [prompt[common:] for prompt in prompts]
        longest = max(map(len, tails))
        # Padding on the right changes nothing: no token sees the ones behind it.
        padded = [[*tail, *[0] * (longest - len(tail))] for tail in tails]
        states = self._run_layers(padded, common)
        last_states = np.stack([states[row, len(tail) - 1] for row, tail in enumerate(tails)])
        return np.asarray(self._head.infer([last_states])[0])

    def _run_layers(self, tokens: Sequence[Sequence[int]], start: int) -> Floats:
        """Return the states of the last layer, shape (n, tokens, width).

        Args:
            tokens: of n texts, all of the same length.
            start: how many tokens were read before; all texts continue the first one of them.
        """
        ids = np.array(tokens, np.int64)
        count, length = ids.shape
        places = np.arange(start, start + length, dtype=np.int64)
        outputs = self._layers.infer(
            {
                "input_ids": ids,
                "attention_mask": np.ones((count, start + length), np.int64),
                "position_ids": np.tile(places, (count, 1)),
                # The text before, for each of these.
                "beam_idx": np.zeros(count, np.int32),
            }
        )
        states = np.asarray(outputs[0])
        # Seen with ONEDNN_MAX_CPU_ISA: no error, and an empty result.
        if states.shape[:2] != ids.shape:
            raise BackendError("OpenVINO returned no result; try engine=llama.cpp")
        return states


def prepare_model(file: GgufFile) -> Path:
    """Return the folder with a file's graph, weights and tokenizer; make it if it is missing.

    Raises:
        BackendError: OpenVINO cannot read the file.
        OSError: the folder cannot be written.
        RuntimeError: OpenVINO cannot write it.
    """
    folder = find_folder(file)
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    size = gigabytes_text(file.size * STORED_SIZE_FACTOR)
    tell(f"preparing {file.path.name} for OpenVINO (only once): {size} in {folder.parent}")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        first, second = Path(scratch) / "first", Path(scratch) / "second"
        first.mkdir()
        second.mkdir()
        _write_graph(file, first)
        _write_with_exact_weights(file, first, second)
        for path in first.glob("openvino_*tokenizer.*"):
            path.rename(second / path.name)
        try:
            second.rename(folder)
        except OSError:
            # Another process may have finished first; its folder is the same.
            if not folder.exists():
                raise
    return folder


def _write_graph(file: GgufFile, folder: Path) -> None:
    """Write a file's graph and tokenizer as OpenVINO reads them."""
    _, genai = import_openvino()
    # The files are written beside the one that is read.
    link = folder / "model.gguf"
    link.symlink_to(file.path.resolve())
    try:
        genai.LLMPipeline(link, "CPU", enable_save_ov_model=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[-MAX_REASON_CHARACTERS:]
        raise BackendError(f"OpenVINO cannot read it: {reason}") from None


def _write_with_exact_weights(file: GgufFile, source: Path, folder: Path) -> None:
    """Write a graph whose layers have the weights of the file, as 8-bit integers."""
    openvino, _ = import_openvino()
    from gguf import GGUFReader
    from gguf.quants import dequantize

    model = openvino.Core().read_model(source / "openvino_model.xml")
    tensors = {tensor.name: tensor for tensor in GGUFReader(file.path).tensors}
    layers = file.of_model("block_count") or 0
    names = [f"blk.{layer}.{part}.weight" for layer in range(layers) for part in MATRICES]
    # The last matrix is the head, which OpenVINO reads exactly.
    matrices = _find_matrices(model)[:-1]
    if len(matrices) != len(names) or not tensors.keys() >= set(names):
        raise BackendError("OpenVINO builds a different graph from it than expected")
    for matrix, name in zip(matrices, names, strict=True):
        weights = dequantize(tensors[name].data, tensors[name].tensor_type)
        # The order within a layer is the same in all of them.
        if name.startswith("blk.0.") and not _is_same(matrix, weights):
            raise BackendError(f"OpenVINO uses a different matrix in place of {name}")
        matrix.input(1).replace_source_output(_build_weights(weights))
    model.validate_nodes_and_infer_types()
    openvino.save_model(model, folder / "openvino_model.xml", compress_to_fp16=False)


def _find_matrices(model: Any) -> list[Any]:
    """Return the products with constant matrices, in the order in which they were made."""
    result = []
    for node in model.get_ops():
        if node.get_type_name() != "MatMul":
            continue
        source = node.input(1).get_source_output().get_node()
        while source.inputs():
            source = source.input(0).get_source_output().get_node()
        if source.get_type_name() == "Constant":
            result.append(node)
    # MatMul_46 and the like: the numbers ascend.
    return sorted(result, key=lambda node: int(node.get_friendly_name().rpartition("_")[2]))


def _is_same(matrix: Any, weights: Floats) -> bool:
    """Whether a matrix of the graph has nearly these weights."""
    openvino, _ = import_openvino()
    constant = openvino.Model([matrix.input(1).get_source_output()], [])
    before = openvino.Core().compile_model(constant, "CPU")([])[0]
    if before.shape != weights.shape:
        return False
    difference = np.sqrt(np.mean((before - weights) ** 2)) / np.sqrt(np.mean(weights**2))
    return bool(difference <= MAX_WEIGHT_DIFFERENCE)


def _build_weights(weights: Floats) -> Any:
    """Return weights as 8-bit integers and their scales, as an output of a graph."""
    openvino, _ = import_openvino()
    operators = openvino.opset13
    integers, scales = quantise(weights)
    scaled = operators.multiply(
        operators.convert(operators.constant(integers), "f16"), operators.constant(scales)
    )
    shape = operators.constant(np.array(weights.shape, np.int64))
    return operators.convert(operators.reshape(scaled, shape, False), "f32").output(0)


def quantise(weights: Floats) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Return weights as integers with a scale for each :data:`GROUP_SIZE` neighbours.

    Args:
        weights: shape (n, k), where k is a multiple of the group's size.

    Returns:
        Integers from -127 to 127, shape (n, k / 128, 128), and scales, shape (n, k / 128, 1).
    """
    groups = weights.reshape(len(weights), -1, GROUP_SIZE)
    scales = (np.abs(groups).max(2, keepdims=True) / LARGEST_INTEGER).astype(np.float16)
    # A group of zeros, or of numbers that are too small for a scale in float16.
    scales[scales == 0] = 1
    integers = np.rint(groups / scales.astype(np.float32))
    clipped = np.clip(integers, -LARGEST_INTEGER, LARGEST_INTEGER)
    return clipped.astype(np.int8), scales
