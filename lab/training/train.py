"""Trains the cross-encoder on one core: ``python -m lab.training.train OUT --seed 0 --pairs
56000``.

bf16 arithmetic, batches of like length, frozen word embeddings, a fixed number of steps. What a
run sees follows from its seed alone, so ``--resume`` needs the weights, the optimiser and the
step (there is no dropout and so no random state besides).
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from lab.training import augment, data, mixture
from lab.training.batches import alone, batches, groups
from lab.training.model import CrossEncoder, collate, encode, load

BF16 = torch.cpu.get_capabilities().get("avx512_bf16", False)
"""Whether this processor has bf16 arithmetic; emulated it is twenty times slower than fp32."""
SAVE_EVERY = 400
"""Steps between saves at most; a short run saves five times."""


@dataclass(frozen=True)
class Options:
    """What defines a run; all of it is written beside the weights."""

    seed: int = 0
    pairs: int = 56_000
    kinds: tuple[str, ...] = augment.KINDS
    share: float = 0.45
    rate: float = 1e-4
    head_rate: float = 5e-4
    warm_up: float = 0.06
    head: str = "segments"
    match: bool = True
    start: str = ""
    row_seed: int = -1
    skip: int = 0
    mixture: str = ""
    frozen: int = 0
    order: float = 0.0


def examples(options: Options) -> list[data.Pair]:
    """Return the run's pairs: rows as they are, and a share of augmented ones.

    A run that goes on from a trunk takes the rows that the trunk has not seen first: ``row_seed``
    is the trunk's seed, whose order of rows it follows, and ``skip`` how many the trunk took.
    With a ``mixture`` the run's pairs are its, and ``pairs``, ``kinds`` and ``share`` say nothing.
    """
    if options.mixture:
        return mixture.draw(mixture.parse(options.mixture), options.seed)
    rows, _ = data.split(data.training_rows())
    rng = np.random.default_rng([options.seed if options.row_seed < 0 else options.row_seed, 1])
    made = int(options.pairs * options.share) if options.kinds else 0
    end = options.skip + options.pairs - made
    order: list[int] = []
    while len(order) < end:
        order += rng.permutation(len(rows)).tolist()
    plain = [rows[i] for i in order[options.skip : end]]
    return plain + augment.build(rows, options.kinds, made, options.seed)


def loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean negative log-likelihood; NOT_ENTAILMENT is neutral or contradiction."""
    log = torch.log_softmax(logits.float(), 1)
    either = torch.logsumexp(log[:, 1:], 1, keepdim=True)
    return -torch.cat([log, either], 1).gather(1, labels[:, None]).mean()


def order_loss(logits: Tensor, labels: Tensor, premises: Tensor) -> Tensor:
    """Return how wrongly the supported statements of a premise stand among its others.

    The mean over all (supported, other) of one premise of log(1 + exp(other - supported)), of
    their log-odds of entailment; 0 where a batch has none.
    """
    value = logits.float()
    odds = value[:, 0] - torch.logsumexp(value[:, 1:], 1)
    both = (premises[:, None] == premises[None]) & (labels == 0)[:, None] & (labels != 0)[None]
    wrong = torch.nn.functional.softplus(odds[None] - odds[:, None])
    return (wrong * both).sum() / both.sum().clamp(min=1)


class Run:
    """Weights, optimiser and step of one training run, saved and taken up again."""

    def __init__(self, folder: Path, options: Options, steps: int, device: str = "cpu") -> None:
        self.device = device
        self.arithmetic = BF16 if device == "cpu" else torch.cuda.is_bf16_supported()
        self.folder, self.options, self.steps, self.step = folder, options, steps, 0
        torch.manual_seed(options.seed)
        if options.start:
            self.model = load(Path(options.start), options.head)
        else:
            self.model = CrossEncoder(options.head)
        self.model.to(device)
        if options.frozen:
            self.model.bert.embeddings.requires_grad_(False)
        for layer in self.model.bert.encoder.layer[: options.frozen]:
            layer.requires_grad_(False)
        groups = [
            {"params": list(self.model.head.parameters()), "lr": options.head_rate},
            {
                "params": [p for p in self.model.bert.parameters() if p.requires_grad],
                "lr": options.rate,
            },
        ]
        self.optimiser = torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
        self.peaks = [options.head_rate, options.rate]

    def _schedule(self) -> None:
        warm = max(1, int(self.steps * self.options.warm_up))
        left = (self.steps - self.step) / max(1, self.steps - warm)
        factor = min((self.step + 1) / warm, left)
        for group, peak in zip(self.optimiser.param_groups, self.peaks, strict=True):
            group["lr"] = peak * factor

    def learn(
        self, inputs: tuple[Tensor, Tensor, Tensor], labels: Tensor, premises: Tensor
    ) -> float:
        """Take one step; return the loss before it."""
        self._schedule()
        ids, kind, mask = (part.to(self.device) for part in inputs)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.arithmetic):
            logits, labels = self.model(ids, kind, mask), labels.to(self.device)
            value = loss(logits, labels)
            if self.options.order:
                value = value + self.options.order * order_loss(
                    logits, labels, premises.to(self.device)
                )
        value.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad()
        self.step += 1
        return float(value.detach())

    def save(self) -> None:
        """Write weights, optimiser and step; each file is replaced whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        moments = {
            f"{index}.{name}": value
            for index, state in self.optimiser.state_dict()["state"].items()
            for name, value in state.items()
        }
        for name, tensors in (("model", self.model.state_dict()), ("optimiser", moments)):
            part = self.folder / f"{name}.part"
            save_file({k: v.cpu().contiguous() for k, v in tensors.items()}, part)
            part.replace(self.folder / f"{name}.safetensors")
        note = {"step": self.step, "steps": self.steps, "options": asdict(self.options)}
        start = Path(self.options.start) / "run.json"
        if self.options.start and start.exists():
            note["began with"] = json.loads(start.read_text())
        (self.folder / "run.json").write_text(json.dumps(note, indent=1) + "\n")

    def resume(self) -> None:
        """Go on where ``save`` left off."""
        note = json.loads((self.folder / "run.json").read_text())
        self.step = note["step"]
        self.model.load_state_dict(load_file(self.folder / "model.safetensors"))
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in load_file(self.folder / "optimiser.safetensors").items():
            index, name = key.split(".", 1)
            state.setdefault(int(index), {})[name] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})


def train(folder: Path, options: Options, resume: bool = False, device: str = "cpu") -> None:
    """Train from the first step (or the saved one) to the last; print pairs a second."""
    rows = examples(options)
    encoded = encode([(r.premise, r.hypothesis) for r in rows], options.match)
    labels = np.array([r.label for r in rows])
    lengths = [len(ids) for ids, _ in encoded]
    together = groups(rows) if options.order else alone(len(rows))
    plan = batches(lengths, options.seed, together)
    number = {premise: n for n, premise in enumerate(dict.fromkeys(r.premise for r in rows))}
    premises = np.array([number[r.premise] for r in rows])
    run = Run(folder, options, len(plan), device)
    every = max(1, min(SAVE_EVERY, len(plan) // 5))
    if resume and (folder / "run.json").exists():
        run.resume()
    begun, seen, mean = time.monotonic(), 0, 0.0
    for picks in plan[run.step :]:
        value = run.learn(
            collate([encoded[i] for i in picks]),
            torch.from_numpy(labels[picks]),
            torch.from_numpy(premises[picks]),
        )
        seen += len(picks)
        mean = value if not mean else 0.98 * mean + 0.02 * value
        if run.step % 100 == 0:
            speed = seen / (time.monotonic() - begun)
            print(f"step {run.step}/{run.steps} loss {mean:.3f} pairs/s {speed:.1f}", flush=True)
        if run.step % every == 0:
            run.save()
    run.save()


def main() -> None:
    """Read the options and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--kinds", default=",".join(augment.KINDS))
    parser.add_argument("--no-match", dest="match", action="store_false")
    for name, kind in (
        ("seed", int), ("pairs", int), ("share", float), ("rate", float), ("head_rate", float),
        ("row_seed", int), ("skip", int), ("frozen", int), ("order", float),
    ):  # fmt: skip
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=kind, default=getattr(Options, name)
        )
    for name in ("head", "start", "mixture"):
        parser.add_argument(f"--{name}", default=getattr(Options, name))
    given = vars(parser.parse_args())
    folder, resume, device = (given.pop(name) for name in ("folder", "resume", "device"))
    given["kinds"] = tuple(k for k in given["kinds"].split(",") if k)
    torch.set_num_threads(1)
    train(folder, Options(**given), resume, device)


if __name__ == "__main__":
    main()
