"""Fine-tuning a local model on chosen answers, with TRL."""

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

from trustassay.backends.chat_text import plain
from trustassay.backends.hf_loading import config_of, libraries, load, longest_input, one_line
from trustassay.backends.telemetry import quiet_hub
from trustassay.capabilities import Message
from trustassay.data.records import Fault, InputError
from trustassay.errors import BackendError, RunFolderError, UsageError, install
from trustassay.files import Appender, whole
from trustassay.progress import Progress
from trustassay.runs.folder import RunFolder, check_settings
from trustassay.sample import Problem, clean

ROLES = ("system", "user", "assistant")
SHOWN = 20
"""Faulty lines that are listed."""
IGNORED = -100
"""The label of a token that is not learnt."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is said before, ending with the user, and the answer that is learnt."""

    before: tuple[Message, ...]
    answer: str


class Encoded(NamedTuple):
    """Tokens of a conversation, and how many of the first are not learnt."""

    tokens: list[int]
    prompt: int

    def columns(self) -> dict[str, list[int]]:
        """Return the columns that TRL trains on."""
        labels = [IGNORED] * self.prompt + self.tokens[self.prompt :]
        return {"input_ids": self.tokens, "labels": labels}


def read_conversations(path: Path) -> list[Conversation]:
    """Read JSON Lines of ``messages``, each with ``role`` and ``content``, the last an answer.

    Raises:
        InputError: lines have faults, or there is none.
        OSError: the file cannot be read.
    """
    found, faults = [], []
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            result = _read(line)
            if isinstance(result, Conversation):
                found.append(result)
            else:
                faults.append(Fault(f"{path}:{number}", tuple(result)))
    if faults:
        shown = "\n".join(map(str, faults[:SHOWN]))
        more = f"\n... and {len(faults) - SHOWN:,} more" if len(faults) > SHOWN else ""
        raise InputError(f"{path}: {len(faults):,} faulty lines\n{shown}{more}")
    if not found:
        raise InputError(f"{path}: holds no line; expected conversations, one a line")
    return found


def _read(line: str) -> Conversation | list[Problem]:
    try:
        record = json.loads(line.rstrip())
    except (ValueError, RecursionError) as error:
        return [Problem("line", f"is not JSON: {error}")]
    messages = record.get("messages") if isinstance(record, Mapping) else None
    if not isinstance(messages, list) or not messages:
        return [Problem("messages", "is missing (expected a list of role and content)")]
    turns, problems = [], []
    for place, item in enumerate(messages):
        role = item.get("role") if isinstance(item, Mapping) else None
        content = item.get("content") if isinstance(item, Mapping) else None
        if role not in ROLES:
            problems.append(Problem(f"messages[{place}].role", f"expected {' or '.join(ROLES)}"))
        elif not isinstance(content, str) or not content.strip():
            problems.append(Problem(f"messages[{place}].content", "expected text"))
        else:
            turns.append(Message(role, clean(content)))
    if not problems and [turn.role for turn in turns[-2:]] != ["user", "assistant"]:
        words = "expected the user's turn and the assistant's answer at the end"
        problems.append(Problem("messages", words))
    return problems or Conversation(tuple(turns[:-1]), turns[-1].content.strip())


def encode(conversations: Sequence[Conversation], tokenizer: Any) -> list[Encoded]:
    """Return the tokens of conversations, laid out as ``hf:`` models are asked.

    By the tokenizer's chat template where it has one, else as
    :func:`~trustassay.backends.chat_text.plain` says, with a space before the answer. The answer
    ends with the tokenizer's end token.

    Raises:
        BackendError: the chat template rejects a conversation.
    """
    if tokenizer.eos_token_id is None:
        raise BackendError("its tokenizer has no end token, so no end of an answer can be learnt")
    return [_encoded(one, tokenizer) for one in conversations]


def _encoded(one: Conversation, tokenizer: Any) -> Encoded:
    special = not getattr(tokenizer, "chat_template", None)
    if special:
        prompt, answer = plain(one.before), f" {one.answer}"
    else:
        prompt, answer = _by_template(one, tokenizer)
    before = _tokens(tokenizer, prompt, special)
    bare = _tokens(tokenizer, prompt, False)
    if special and before and bare and before[-1] != bare[-1]:
        before = before[:-1]  # the model is to go on, so no end token stands here
    whole = _tokens(tokenizer, prompt + answer, False)
    cut = whole[: len(bare)] == bare
    learnt = whole[len(bare) :] if cut else _tokens(tokenizer, answer, False)
    end = tokenizer.eos_token_id
    if end not in learnt:
        learnt = [*learnt, end]
    return Encoded([*before, *learnt], len(before))


def _by_template(one: Conversation, tokenizer: Any) -> tuple[str, str]:
    from jinja2 import TemplateError

    turns = [message._asdict() for message in one.before]
    answered = [*turns, {"role": "assistant", "content": one.answer}]
    try:
        prompt = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        whole = tokenizer.apply_chat_template(answered, tokenize=False)
    except TemplateError as error:
        raise BackendError(f"its chat template rejects a conversation: {error}") from error
    return prompt, whole[len(prompt) :] if whole.startswith(prompt) else one.answer


def _tokens(tokenizer: Any, text: str, special: bool) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
    return ids


SETTINGS, LOSSES, CHECKPOINTS = "tune", "loss.jsonl", "checkpoints"
STATE = "trainer_state.json"
"""What is written last into a checkpoint: without it, a checkpoint is not whole."""
RATES = {False: 2e-4, True: 2e-5}
"""Learning rates of LoRA and of all weights."""
SAVED = 10
"""Checkpoints of a whole training."""
RANK = 16


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
        return RATES[self.full] if self.learning_rate is None else self.learning_rate


@dataclass(frozen=True)
class Tuned:
    """A tuned model.

    conversations: that were learnt; too_long: that were left out. steps: of the optimizer; resumed:
    the step that this call went on from. first_loss, last_loss: means of the first and the last
    tenth of the steps, per token of the answers.
    """

    path: Path
    conversations: int
    too_long: int
    steps: int
    resumed: int
    first_loss: float
    last_loss: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "path": str(self.path)}


def tune(
    data: str | os.PathLike[str],
    model: str,
    out: str | os.PathLike[str],
    options: TuneOptions | None = None,
) -> Tuned:
    """Tune a model on conversations, and write it into the folder ``out``, as ``hf:`` loads it.

    Only the answers are learnt. Adapters are merged into the weights. The same call after a kill
    goes on from the last checkpoint; ``loss.jsonl`` has the loss of every step.

    Args:
        data: JSON Lines in the chat format. model: ``hf:ID`` or a folder.

    Raises:
        InputError, ValueError, OSError: the data cannot be used.
        BackendError: TRL is not installed, or the model cannot be loaded or trained.
        RunFolderError: ``out`` holds something else, or another process works in it.
    """
    chosen, path, folder = options or TuneOptions(), Path(data), RunFolder(Path(out))
    conversations = read_conversations(path)
    name = model.removeprefix("hf:")
    if not model.startswith("hf:") and not Path(model).expanduser().is_dir():
        raise BackendError(f"{model}: there is no such folder; expected one, or hf:ID")
    _import_training()
    settings = {
        "model": name,
        "data": hashlib.sha256(path.read_bytes()).hexdigest(),
        **{key: value for key, value in asdict(chosen).items() if key != "progress"},
    }
    with folder.claimed():
        if found := _claimed(folder, settings):
            return found
        with one_line(f"hf:{name}", Exception), _quiet():
            network, tokenizer = _opened(name)
            encoded = encode(conversations, tokenizer)
            longest = min(longest_input(network, tokenizer) or chosen.max_length, chosen.max_length)
            fitting = [one for one in encoded if len(one.tokens) <= longest]
            if not fitting:
                shortest = min(len(one.tokens) for one in encoded)
                raise BackendError(
                    f"all conversations are longer than {longest} tokens (the shortest has "
                    f"{shortest}); raise --max-length, up to what the model reads"
                )
            folder.write_json(SETTINGS, {"settings": settings})
            resumed, steps = _train(folder, network, tokenizer, fitting, chosen)
        losses = _losses(folder.path / LOSSES)
        tenth = math.ceil(len(losses) / 10)
        done = Tuned(
            folder.path,
            len(fitting),
            len(encoded) - len(fitting),
            steps,
            resumed,
            math.fsum(losses[:tenth]) / tenth,
            math.fsum(losses[-tenth:]) / tenth,
        )
        folder.write_json(SETTINGS, {"settings": settings, "tuned": done.to_dict()})
        shutil.rmtree(folder.path / CHECKPOINTS, ignore_errors=True)
        return done


def _claimed(folder: RunFolder, settings: Mapping[str, Any]) -> Tuned | None:
    """Check the settings of the folder, if it has any; return what is finished there."""
    before = folder.read_json(SETTINGS)
    if before is None:
        if any(not found.name.startswith(".") for found in folder.path.iterdir()):
            words = "is not empty and holds no tuned model; choose another --out"
            raise RunFolderError(f"{folder.path}: {words}")
        return None
    check_settings(folder.path, before.get("settings", {}), settings, "another training")
    if "tuned" not in before:
        return None
    return Tuned(**{**before["tuned"], "path": folder.path})


def _opened(name: str) -> tuple[Any, Any]:
    """Return the model, its weights in single precision, and its tokenizer."""
    _, transformers = libraries()
    where, config = config_of(name)
    if config.is_encoder_decoder:
        raise BackendError("is an encoder-decoder model; expected a decoder-only one")
    auto = transformers.AutoModelForCausalLM
    return load(where, auto, None, "float32", pad_with_end=True)


def _train(
    folder: RunFolder,
    network: Any,
    tokenizer: Any,
    encoded: Sequence[Encoded],
    options: TuneOptions,
) -> tuple[int, int]:
    """Train and save; return the step that it went on from, and the last step."""
    import datasets
    import peft
    import trl

    torch, transformers = libraries()
    transformers.set_seed(options.seed)
    steps = options.steps or math.ceil(math.ceil(len(encoded) / options.batch) * options.epochs)
    checkpoints = folder.path / CHECKPOINTS
    last = _last_checkpoint(checkpoints)
    resumed = 0 if last is None else int(last.name.rpartition("-")[2])
    kept = [line for line in _log(folder.path / LOSSES) if line["step"] <= resumed]
    with whole(folder.path / LOSSES) as file:
        file.writelines(_line(line) for line in kept)
    fast = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    arguments = trl.SFTConfig(
        output_dir=str(checkpoints),
        max_steps=steps,
        per_device_train_batch_size=options.batch,
        learning_rate=options.rate,
        lr_scheduler_type="linear",
        seed=options.seed,
        data_seed=options.seed,
        max_length=None,
        gradient_checkpointing=False,
        bf16=fast,
        save_strategy="steps",
        save_steps=math.ceil(steps / SAVED),
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
            r=RANK,
            lora_alpha=2 * RANK,
            lora_dropout=0.05,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )
    network.train()
    log = Appender(folder.path / LOSSES)
    try:
        with Progress("tuning", steps, shown=options.progress) as progress:
            progress.step(resumed)
            trainer = trl.SFTTrainer(
                model=network,
                args=arguments,
                train_dataset=datasets.Dataset.from_list([one.columns() for one in encoded]),
                processing_class=tokenizer,
                peft_config=adapters,
                callbacks=[_follower(transformers, log, progress)],
            )
            trainer.remove_callback(transformers.PrinterCallback)  # which prints what is logged
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
    finally:
        log.close()
    found = trainer.model
    if adapters is not None:
        found = found.merge_and_unload()
    found.to("cpu").save_pretrained(folder.path, safe_serialization=True)
    tokenizer.save_pretrained(folder.path)
    return resumed, int(trainer.state.global_step)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back the libraries' bars and their warnings of what later versions will rename."""
    _, transformers = libraries()
    told = transformers.utils.logging
    shown, level = told.is_progress_bar_enabled(), told.get_verbosity()
    told.disable_progress_bar()
    told.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            warnings.filterwarnings("ignore", message="fan_in_fan_out")  # which peft sets itself
            yield
    finally:
        told.set_verbosity(level)
        if shown:
            told.enable_progress_bar()


def _follower(transformers: Any, log: Appender, progress: Progress) -> Any:
    """Return what notes the loss of every step, and shows how far the training is."""

    class Follower(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            progress.step()

        def on_log(self, _: Any, state: Any, __: Any, logs: Any = None, **___: Any) -> None:
            if not logs or "loss" not in logs:
                return
            loss = float(logs["loss"])
            if not math.isfinite(loss):
                raise BackendError(
                    f"the loss of step {state.global_step} is {loss}; try a lower --learning-rate"
                )
            names = ("loss", "learning_rate", "epoch")
            own = {name: float(logs[name]) for name in names if name in logs}
            log.append(_line({"step": state.global_step, **own}))

    return Follower()


def _last_checkpoint(checkpoints: Path) -> Path | None:
    """Return the last checkpoint that is whole; what a kill left of another one is removed."""
    found: list[tuple[int, Path]] = []
    for path in checkpoints.glob("checkpoint-*"):
        number = path.name.rpartition("-")[2]
        if number.isdigit() and _is_json(path / STATE):
            found.append((int(number), path))
        else:
            shutil.rmtree(path, ignore_errors=True)
    return max(found)[1] if found else None


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return True


def _log(path: Path) -> list[dict[str, Any]]:
    """Return the lines of the loss log; one that a kill cut short is left out."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines[:-1]]


def _losses(path: Path) -> list[float]:
    return [line["loss"] for line in _log(path)]


def _line(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content) + "\n").encode()


def _import_training() -> None:
    """Import what fine-tuning takes; raises :class:`BackendError` where it is missing."""
    quiet_hub()
    try:
        for name in ("torch", "transformers", "datasets", "peft", "trl"):
            import_module(name)
    except ImportError as error:
        words = f"fine-tuning takes it: {install('papers')}"
        raise BackendError(f"{error.name or error} is missing, and {words}") from error
