"""Fine-tune a local model on chosen answers, with TRL.

1. Read the conversations, and encode them as ``hf:`` models are prompted.
2. Train with TRL, from the last checkpoint if there is one; log the loss of every step.
3. Merge the adapters into the weights, and write the model.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.backends.chat_text import chat_to_text
from trustassay.backends.hf_loading import (
    errors_in_one_line,
    find_max_input_tokens,
    import_libraries,
    load,
    load_config,
)
from trustassay.backends.telemetry import quiet_hub
from trustassay.core.capabilities import Message
from trustassay.core.files import Appender, open_atomic
from trustassay.core.progress import Progress
from trustassay.core.sample import Problem, clean
from trustassay.errors import BackendError, RunFolderError, UsageError, install_command
from trustassay.input.records import InputError, InputFault
from trustassay.runs.folder import RunFolder, check_settings
from trustassay.text.numbers import amount

ROLES = ("system", "user", "assistant")
MAX_FAULTS_SHOWN = 20
"""Number of faulty lines that a message lists."""
IGNORED_LABEL = -100
"""Label of a token that is not learnt; the cross entropy of PyTorch skips it."""
SETTINGS, LOSSES, CHECKPOINTS = "tune", "loss.jsonl", "checkpoints"
TRAINER_STATE = "trainer_state.json"
"""The file that is written last: a checkpoint without it is incomplete."""
LEARNING_RATES = {False: 2e-4, True: 2e-5}
"""Default learning rate, by whether all weights are trained."""
CHECKPOINTS_PER_TRAINING = 10
"""Number of checkpoints that a training writes."""
LORA_RANK = 16
"""Rank of the LoRA adapters."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns before an answer, ending with the user's, and the answer that is learnt."""

    before: tuple[Message, ...]
    answer: str


class EncodedConversation(NamedTuple):
    """The tokens of a conversation."""

    tokens: list[int]
    prompt_length: int
    """The number of leading tokens that are not learnt."""

    def columns(self) -> dict[str, list[int]]:
        """Return the columns that TRL trains on."""
        labels = [IGNORED_LABEL] * self.prompt_length + self.tokens[self.prompt_length :]
        return {"input_ids": self.tokens, "labels": labels}


def read_conversations(path: Path) -> list[Conversation]:
    """Read JSON Lines of ``messages``: lists of ``role`` and ``content`` that end with an answer.

    Raises:
        InputError: lines have faults, or the file is empty.
        OSError: the file cannot be read.
    """
    conversations, faults = [], []
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            result = _parse_conversation(line)
            if isinstance(result, Conversation):
                conversations.append(result)
            else:
                faults.append(InputFault(f"{path}:{number}", tuple(result)))
    if faults:
        listing = "\n".join(map(str, faults[:MAX_FAULTS_SHOWN]))
        remainder = (
            f"\n... and {len(faults) - MAX_FAULTS_SHOWN:,} more"
            if len(faults) > MAX_FAULTS_SHOWN
            else ""
        )
        raise InputError(f"{path}: {amount(len(faults), 'faulty line')}\n{listing}{remainder}")
    if not conversations:
        raise InputError(f"{path}: is empty; expected conversations, one per line")
    return conversations


def _parse_conversation(line: str) -> Conversation | list[Problem]:
    try:
        record = json.loads(line.rstrip())
    except (ValueError, RecursionError) as error:
        return [Problem("line", f"is not JSON: {error}")]
    messages = record.get("messages") if isinstance(record, Mapping) else None
    if not isinstance(messages, list) or not messages:
        return [Problem("messages", "is missing (expected a list of role and content)")]
    turns, problems = [], []
    for index, item in enumerate(messages):
        role = item.get("role") if isinstance(item, Mapping) else None
        content = item.get("content") if isinstance(item, Mapping) else None
        if role not in ROLES:
            problems.append(Problem(f"messages[{index}].role", f"expected {' or '.join(ROLES)}"))
        elif not isinstance(content, str) or not content.strip():
            problems.append(Problem(f"messages[{index}].content", "expected text"))
        else:
            turns.append(Message(role, clean(content)))
    if not problems and [turn.role for turn in turns[-2:]] != ["user", "assistant"]:
        message = "expected a user's turn and an assistant's answer as the last two"
        problems.append(Problem("messages", message))
    return problems or Conversation(tuple(turns[:-1]), turns[-1].content.strip())


def encode(conversations: Sequence[Conversation], tokenizer: Any) -> list[EncodedConversation]:
    """Return the tokens of conversations, in the layout in which ``hf:`` models are prompted.

    The layout is the tokenizer's chat template if it has one, else that of
    :func:`~trustassay.backends.chat_text.chat_to_text`, with a space before the answer. The answer
    ends with the tokenizer's end token.

    Raises:
        BackendError: the chat template rejects a conversation.
    """
    # Without an end the model would never stop.
    if tokenizer.eos_token_id is None:
        raise BackendError(
            "its tokenizer has no end token, so the model cannot learn where an answer ends"
        )
    return [_encode_conversation(conversation, tokenizer) for conversation in conversations]


def _encode_conversation(conversation: Conversation, tokenizer: Any) -> EncodedConversation:
    # A chat template writes the special tokens itself.
    special = not getattr(tokenizer, "chat_template", None)
    if special:
        prompt, answer = chat_to_text(conversation.before), f" {conversation.answer}"
    else:
        prompt, answer = _apply_template(conversation, tokenizer)
    before = _tokenize(tokenizer, prompt, special)
    bare = _tokenize(tokenizer, prompt, False)
    if special and before and bare and before[-1] != bare[-1]:
        # Some tokenizers add an end token; the model has to continue behind the prompt.
        before = before[:-1]
    all_tokens = _tokenize(tokenizer, prompt + answer, False)
    # Tokens may merge across the border of prompt and answer, as " a" + "b"; then the answer is
    # encoded by itself, as the model sees it after the prompt.
    starts_alike = all_tokens[: len(bare)] == bare
    learnt = all_tokens[len(bare) :] if starts_alike else _tokenize(tokenizer, answer, False)
    end = tokenizer.eos_token_id
    # Some templates end the answer themselves.
    if end not in learnt:
        learnt = [*learnt, end]
    return EncodedConversation([*before, *learnt], len(before))


def _apply_template(conversation: Conversation, tokenizer: Any) -> tuple[str, str]:
    from jinja2 import TemplateError

    turns = [message._asdict() for message in conversation.before]
    answered = [*turns, {"role": "assistant", "content": conversation.answer}]
    try:
        prompt = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        rendered = tokenizer.apply_chat_template(answered, tokenize=False)
    except TemplateError as error:
        raise BackendError(f"its chat template rejects a conversation: {error}") from error
    # A template may drop or change earlier turns when an answer follows.
    return prompt, rendered[len(prompt) :] if rendered.startswith(prompt) else conversation.answer


def _tokenize(tokenizer: Any, text: str, special: bool) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
    return ids


@dataclass(frozen=True)
class TuneOptions:
    """How a model is tuned.

    full: train all weights in place of LoRA adapters. epochs: passes over the data; steps: of the
    optimizer, in place of epochs. batch: conversations of a step. learning_rate: ``None`` for 2e-4,
    or 2e-5 of all weights; it falls to 0 in a straight line. max_length: tokens of a conversation;
    longer ones are left out.
    """

    full: bool = False
    epochs: float = 3.0
    steps: int | None = None
    batch: int = 8
    learning_rate: float | None = None
    max_length: int = 1024
    seed: int = 0
    progress: bool = False

    def __post_init__(self) -> None:
        for option in ("epochs", "steps", "batch", "learning_rate", "max_length"):
            value = getattr(self, option)
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"{option}: expected more than 0, got {value}")
        if self.seed < 0:
            raise UsageError(f"seed: expected 0 or more, got {self.seed}")

    @property
    def rate(self) -> float:
        """The learning rate."""
        return LEARNING_RATES[self.full] if self.learning_rate is None else self.learning_rate


@dataclass(frozen=True)
class TuneResult:
    """A tuned model."""

    path: Path
    """The folder of the model."""
    conversations: int
    """Conversations that were learnt."""
    too_long: int
    """Conversations that were left out."""
    steps: int
    """Steps of the optimizer."""
    resumed: int
    """The step from which this call continued."""
    first_loss: float
    """Mean loss per token of the answers over the first tenth of the steps."""
    last_loss: float
    """The same over the last tenth."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "path": str(self.path)}


def tune(
    data: str | os.PathLike[str],
    model: str,
    out: str | os.PathLike[str],
    options: TuneOptions | None = None,
) -> TuneResult:
    """Tune a model on conversations, and write it into the folder ``out``, as ``hf:`` loads it.

    Only the answers are learnt. Adapters are merged into the weights. After an interruption the
    same call continues from the last checkpoint; ``loss.jsonl`` has the loss of every step.

    Args:
        data: JSON Lines in the chat format. model: ``hf:ID`` or a folder.

    Raises:
        InputError, ValueError, OSError: the data cannot be used.
        BackendError: TRL is not installed, or the model cannot be loaded or trained.
        RunFolderError: ``out`` holds something else, or another process works in it.
    """
    chosen, path, folder = options or TuneOptions(), Path(data), RunFolder(Path(out))
    # Everything that can be wrong is checked before the model is loaded.
    conversations = read_conversations(path)
    name = model.removeprefix("hf:")
    if not model.startswith("hf:") and not Path(model).expanduser().is_dir():
        raise BackendError(f"{model}: there is no such folder; expected a folder or hf:ID")
    _import_training()
    settings = {
        "model": name,
        # By content: a moved file is the same data.
        "data": hashlib.sha256(path.read_bytes()).hexdigest(),
        **{key: value for key, value in asdict(chosen).items() if key != "progress"},
    }
    with folder.claim():
        if earlier := _read_finished(folder, settings):
            return earlier
        # Errors of the libraries become one line that names the model.
        with errors_in_one_line(f"hf:{name}", Exception), _silence_libraries():
            network, tokenizer = _load_model(name)
            encoded = encode(conversations, tokenizer)
            # Not beyond what the model can read.
            longest = min(
                find_max_input_tokens(network, tokenizer) or chosen.max_length, chosen.max_length
            )
            fitting = [
                conversation for conversation in encoded if len(conversation.tokens) <= longest
            ]
            # Name the shortest, so that the user can choose a limit.
            if not fitting:
                shortest = min(len(conversation.tokens) for conversation in encoded)
                raise BackendError(
                    f"all conversations are longer than {longest} tokens (the shortest has "
                    f"{shortest}); raise --max-length, up to the model's limit"
                )
            # Before the first checkpoint, so that a folder is never continued with other settings.
            folder.write_json(SETTINGS, {"settings": settings})
            resumed, steps = _train(folder, network, tokenizer, fitting, chosen)
        losses = [line["loss"] for line in _read_log(folder.path / LOSSES)]
        # Single steps are noisy; a tenth of all steps is not.
        tenth = math.ceil(len(losses) / 10)
        result = TuneResult(
            folder.path,
            len(fitting),
            len(encoded) - len(fitting),
            steps,
            resumed,
            math.fsum(losses[:tenth]) / tenth,
            math.fsum(losses[-tenth:]) / tenth,
        )
        # The result marks the folder as finished; only then may the checkpoints go.
        folder.write_json(SETTINGS, {"settings": settings, "tuned": result.to_dict()})
        shutil.rmtree(folder.path / CHECKPOINTS, ignore_errors=True)
        return result


def _read_finished(folder: RunFolder, settings: Mapping[str, Any]) -> TuneResult | None:
    """Check that the folder has the same settings; return its result if it is finished."""
    before = folder.read_json(SETTINGS)
    if before is None:
        # The lock of the folder is a hidden file.
        if any(not path.name.startswith(".") for path in folder.path.iterdir()):
            message = "is not empty and holds no tuned model; choose another --out"
            raise RunFolderError(f"{folder.path}: {message}")
        return None
    check_settings(folder.path, before.get("settings", {}), settings, "another training")
    if "tuned" not in before:
        return None
    return TuneResult(**{**before["tuned"], "path": folder.path})


def _load_model(name: str) -> tuple[Any, Any]:
    """Return the model, in single precision, and its tokenizer."""
    _, transformers = import_libraries()
    location, config = load_config(name)
    # TRL trains on one sequence of prompt and answer.
    if config.is_encoder_decoder:
        raise BackendError("is an encoder-decoder model; expected a decoder-only one")
    auto = transformers.AutoModelForCausalLM
    return load(location, auto, None, "float32", pad_with_end=True)


def _train(
    folder: RunFolder,
    network: Any,
    tokenizer: Any,
    encoded: Sequence[EncodedConversation],
    options: TuneOptions,
) -> tuple[int, int]:
    """Train and save; return the step from which training continued, and the last step."""
    import datasets
    import peft
    import trl

    torch, transformers = import_libraries()
    # 1. Seeds, and the number of steps.
    transformers.set_seed(options.seed)
    steps = options.steps or math.ceil(math.ceil(len(encoded) / options.batch) * options.epochs)
    checkpoints = folder.path / CHECKPOINTS
    # 2. Continue from the last checkpoint: losses logged after it are logged again.
    last = _find_last_checkpoint(checkpoints)
    resumed = 0 if last is None else int(last.name.rpartition("-")[2])
    log_lines = [line for line in _read_log(folder.path / LOSSES) if line["step"] <= resumed]
    with open_atomic(folder.path / LOSSES) as file:
        file.writelines(_encode_line(line) for line in log_lines)
    # 3. The settings of the trainer.
    use_bf16 = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    arguments = trl.SFTConfig(
        output_dir=str(checkpoints),
        max_steps=steps,
        per_device_train_batch_size=options.batch,
        learning_rate=options.rate,
        lr_scheduler_type="linear",
        seed=options.seed,
        data_seed=options.seed,
        # Conversations that are too long were left out; TRL must not cut any.
        max_length=None,
        gradient_checkpointing=False,
        bf16=use_bf16,
        save_strategy="steps",
        save_steps=math.ceil(steps / CHECKPOINTS_PER_TRAINING),
        # If the last checkpoint was not completed, the one before it is still there.
        save_total_limit=2,
        logging_strategy="steps",
        logging_steps=1,
        report_to="none",
        push_to_hub=False,
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    adapters = None
    if not options.full:
        adapters = peft.LoraConfig(
            r=LORA_RANK,
            lora_alpha=2 * LORA_RANK,
            lora_dropout=0.05,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )
    # 4. Train.
    network.train()
    log = Appender(folder.path / LOSSES)
    try:
        with Progress("tuning", steps, visible=options.progress) as progress:
            progress.resume(resumed)
            trainer = trl.SFTTrainer(
                model=network,
                args=arguments,
                train_dataset=datasets.Dataset.from_list(
                    [conversation.columns() for conversation in encoded]
                ),
                processing_class=tokenizer,
                peft_config=adapters,
                callbacks=[_build_callback(transformers, log, progress)],
            )
            # It prints every logged value to standard output.
            trainer.remove_callback(transformers.PrinterCallback)
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
    finally:
        log.close()
    # 5. Merge the adapters and save in the format that `hf:` loads.
    trained = trainer.model
    if adapters is not None:
        trained = trained.merge_and_unload()
    trained.to("cpu").save_pretrained(folder.path, safe_serialization=True)
    tokenizer.save_pretrained(folder.path)
    return resumed, int(trainer.state.global_step)


@contextmanager
def _silence_libraries() -> Iterator[None]:
    """Silence the libraries' progress bars and deprecation warnings."""
    _, transformers = import_libraries()
    hf_logging = transformers.utils.logging
    bars_enabled, level = hf_logging.is_progress_bar_enabled(), hf_logging.get_verbosity()
    hf_logging.disable_progress_bar()
    hf_logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            warnings.filterwarnings("ignore", message="fan_in_fan_out")  # peft sets it itself
            yield
    finally:
        hf_logging.set_verbosity(level)
        if bars_enabled:
            hf_logging.enable_progress_bar()


def _build_callback(transformers: Any, log: Appender, progress: Progress) -> Any:
    """Return a trainer callback that logs the loss of every step and updates the progress bar."""

    class LossRecorder(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            progress.step()

        def on_log(self, _: Any, state: Any, __: Any, logs: Any = None, **___: Any) -> None:
            if not logs or "loss" not in logs:
                return
            loss = float(logs["loss"])
            # It does not recover: stop now rather than after hours.
            if not math.isfinite(loss):
                raise BackendError(
                    f"the loss at step {state.global_step} is {loss}; try a lower --learning-rate"
                )
            names = ("loss", "learning_rate", "epoch")
            numbers = {name: float(logs[name]) for name in names if name in logs}
            log.append(_encode_line({"step": state.global_step, **numbers}))

    return LossRecorder()


def _find_last_checkpoint(checkpoints: Path) -> Path | None:
    """Return the last complete checkpoint; remove those that a killed process left incomplete."""
    complete: list[tuple[int, Path]] = []
    for path in checkpoints.glob("checkpoint-*"):
        number = path.name.rpartition("-")[2]
        if number.isdigit() and _is_json(path / TRAINER_STATE):
            complete.append((int(number), path))
        else:
            shutil.rmtree(path, ignore_errors=True)
    return max(complete)[1] if complete else None


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return True


def _read_log(path: Path) -> list[dict[str, Any]]:
    """Return the lines of the loss log, without an incomplete last line."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines[:-1]]


def _encode_line(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content) + "\n").encode()


def _import_training() -> None:
    """Import what fine-tuning needs; raise :class:`BackendError` if something is missing."""
    quiet_hub()
    try:
        for name in ("torch", "transformers", "datasets", "peft", "trl"):
            import_module(name)
    except ImportError as error:
        message = f"fine-tuning needs it: {install_command('papers')}"
        raise BackendError(f"{error.name or error} is missing; {message}") from error
