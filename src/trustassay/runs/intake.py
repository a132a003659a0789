"""How a run is carried out, and the first pass over its input, before anything is started."""

import asyncio
import dataclasses
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import compress, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from trustassay.calls.backends import MODEL, Backends
from trustassay.calls.client import CallOptions, shared_file
from trustassay.data.arrow import ArrowStream, frame_index
from trustassay.data.places import name_of, place_of
from trustassay.data.reading import ALL, LAST, Located, read_samples
from trustassay.data.records import Fault, InputError, summarised, untold_of
from trustassay.data.source_files import is_standard_input, kept_input
from trustassay.errors import Portable, UsageError
from trustassay.files import named, whole
from trustassay.judging.second_reader import SecondOptions
from trustassay.metric import Inventory, Metric
from trustassay.options import check_bounds
from trustassay.progress import Progress, tell
from trustassay.runs.calibrator import Calibrator, read_calibrator
from trustassay.runs.counts import ANSWER, QUESTION, domain_of, drawn_sentence
from trustassay.runs.drawing import Drawing
from trustassay.runs.fill import Filling, Stage
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import HashSet, encoded_sample, hash64
from trustassay.runs.needs import check_served
from trustassay.sample import Problem, Sample
from trustassay.text.limits import LONGEST_ANSWER, TextLimits

WHY = "why"
"""Key in ``run.json`` of why the metric was chosen, where nobody named it."""


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """How a file of samples is read, and models are asked.

    fields, limit, skip_bad, turns: of the input. progress: show it. calls: as of a run.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    skip_bad: bool = False
    turns: str = LAST
    progress: bool | None = False
    calls: CallOptions = field(default_factory=CallOptions)


@dataclass(frozen=True, kw_only=True)
class RunOptions(InputOptions):
    """How a run is carried out; see :class:`~trustassay.options.ScoreOptions`. Only ``fields``,
    ``limit``, ``longest_answer``, ``sample``, ``sample_by``, ``seed``, ``unit``, ``pool``,
    ``filling`` and ``second`` can change a result.

    samples_at_once: per metric; ``None`` for 256, or for twice the calls that an endpoint takes at
        once if that is more.
    calibrator: one that will be applied to the run; other settings than its own are refused before
        any model is asked.
    """

    seed: int = 0
    unit: str | None = None
    longest_answer: int = LONGEST_ANSWER
    samples_at_once: int | None = None
    report: bool = True
    progress: bool | None = None
    calls_from: Path | None = None
    pool: str | os.PathLike[str] | None = None
    command: str | None = None
    why: str | None = None
    sample: str | int | None = None
    sample_by: str | None = None
    drawn: Mapping[str, Any] | None = None
    append: bool = False
    calibrator: Calibrator | None = None
    filling: Filling = field(default_factory=Filling)
    second: SecondOptions = field(default_factory=SecondOptions)

    def __post_init__(self) -> None:
        check_bounds(vars(self))
        if self.sample is not None and self.limit is not None:
            raise UsageError("sample: not with limit, which takes the first records")
        if self.sample is None and self.sample_by:
            raise UsageError("sample_by: needs sample, how many answers are drawn")
        if self.append and (self.sample_by or "%" not in str(self.sample or "%")):
            raise UsageError("append: of samples only a share without strata grows (sample 1%)")
        if self.turns == ALL and self.unit is None:
            object.__setattr__(self, "unit", CHAT)

    @property
    def limits(self) -> TextLimits:
        """How much text of a sample is assessed."""
        return TextLimits(self.longest_answer)

    def stores(self, folder: RunFolder) -> tuple[Path | None, ...]:
        """Return the files that may hold replies for the run of a folder."""
        return folder.calls_path, self.calls_from, shared_file(self.calls.cache)


def run_options(**options: Any) -> RunOptions:
    """Return the options of a run from keywords, those of ``filling``, ``calls`` and ``second``
    among them; ``calibrator`` is the path of its file.

    Raises:
        ValueError: a value that an option cannot have.
        InputError, OSError: as :func:`~trustassay.runs.calibrator.read_calibrator`.
    """
    if (path := options.get("calibrator")) is not None:
        options["calibrator"] = read_calibrator(Path(path))
    filling, calls, second = (
        {f.name: options.pop(f.name) for f in dataclasses.fields(kind) if f.name in options}
        for kind in (Filling, CallOptions, SecondOptions)
    )
    return RunOptions(
        **options,
        filling=Filling(**filling),
        calls=CallOptions.of(**calls),
        second=SecondOptions(**second),
    )


PathText = str | os.PathLike[str]
Source = PathText | ArrowStream | Iterable[Mapping[str, Any] | Sample | PathText]
FAULTS_KEPT = 1000
CHAT = "conversation"
"""The field by which the turns of a chat are one unit."""
SHARD = "trustassay_shard"
"""The field by which a sample says that it belongs to a shard of an input."""
YIELD_EVERY = 256
"""Samples after which the event loop may do something else."""
Check = Callable[[Sample], list[Problem]]


@dataclass(frozen=True, slots=True)
class ShardMark:
    """To what a sample belongs.

    of: SHA-256 of all samples of the input, in canonical form. samples: how many there are.
    skipped: records that were left out as faulty. into: the number of shards. number: the sample's
    shard, from 0. order: its place in the input, from 0.
    """

    of: str
    samples: int
    skipped: int
    into: int
    number: int
    order: int

    @classmethod
    def take(cls, record: dict[str, Any]) -> Self | None:
        """Take the mark out of a stored sample; ``None`` if there is none that can be read."""
        result = record.pop(SHARD, None)
        kinds = {"of": str, **dict.fromkeys(("samples", "skipped", "into", "number", "order"), int)}
        if not isinstance(result, Mapping) or result.keys() != kinds.keys():
            return None
        sound = all(isinstance(result[name], kind) for name, kind in kinds.items())
        return cls(**result) if sound else None


class BadInputError(Portable, UsageError):
    """The input has faults: the first thousand in ``faults``, ``count`` of them in all."""

    def __init__(self, faults: Sequence[Fault], count: int) -> None:
        told = summarised(faults)
        if untold := untold_of(faults):
            told.append(str(untold))
        super().__init__("\n".join(told))
        self.faults, self.count = tuple(faults), count


@dataclass(slots=True)
class Intake:
    """The result of the first pass: the samples' digest, counts of fields, faults, the draw."""

    sha256: str = ""
    inventory: Inventory = field(default_factory=Inventory)
    faults: list[Fault] = field(default_factory=list)
    faulty: int = 0
    drawn: Mapping[str, Any] | None = None

    def note(self, fault: Fault) -> None:
        """Count a fault; the first thousand are kept."""
        self.faulty += 1
        if len(self.faults) < FAULTS_KEPT:
            self.faults.append(fault)

    def digested(self) -> dict[str, Any]:
        """Return the field ``samples`` of ``run.json``."""
        return {"sha256": self.sha256, **dataclasses.asdict(self.inventory)}


async def take_in(
    source: Source,
    target: Path,
    options: InputOptions,
    check: Check = lambda _: [],
    what: str = "the input",
    drawing: Drawing | None = None,
) -> Intake:
    """Read and check all samples and write them, in canonical form, to ``target``.

    ``check`` returns the problems of a well-formed sample. The progress is shown as one of
    checking ``what``. With a ``drawing`` the samples that it draws are written alone.

    Raises:
        BadInputError: samples have faults, and ``skip_bad`` is off; ``target`` is not there then.
        InputError: the input cannot be read at all, or holds no usable sample.
    """
    intake = Intake()
    digest = hashlib.sha256()
    read = read_samples(source, fields=options.fields, turns=options.turns)
    records = islice(read, options.limit)
    try:
        with (
            Progress(f"checking {what}", shown=options.progress) as progress,
            named(target),
            target.open("wb") as file,
        ):
            async for sample in _sound(records, check, intake, progress.step):
                if drawing and not drawing.takes(sample):
                    continue
                line = encoded_sample(sample)
                if not drawing:
                    intake.inventory.add(sample)
                    digest.update(line)
                file.write(line)
        if intake.faulty and not options.skip_bad:
            raise BadInputError(intake.faults, intake.faulty)
        if drawing:
            _keep(target, drawing.kept(), intake, digest)
            intake.drawn = drawing.told
            if options.progress:
                tell(drawn_sentence(intake.drawn))
        if not intake.inventory.samples:
            raise InputError("no usable sample in the input")
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    intake.sha256 = digest.hexdigest()
    return intake


def _keep(path: Path, kept: Iterable[bool], intake: Intake, digest: Any) -> None:
    """Leave some lines of a file of samples, and count them."""
    with path.open("rb") as lines, whole(path) as file:
        for line in compress(lines, kept):
            intake.inventory.add(Sample.parse(json.loads(line)))
            digest.update(line)
            file.write(line)


async def admit(
    source: Source,
    target: Path,
    metrics: Sequence[Metric],
    backends: Backends,
    stages: Sequence[Stage],
    options: RunOptions,
    also: Check = lambda _: [],
) -> Intake:
    """Take in the samples of a run: all that can be refused before anything is asked.

    ``stages`` fill samples before they are scored. ``also`` returns further problems of a sample.

    Raises:
        BadInputError, InputError: as :func:`take_in`; no sample has the field of ``options.unit``.
        ValueError: a metric needs a backend or a field that is not there.
    """
    asked = backends.find("chat", MODEL) is not None
    check = checks_of(metrics, stages, asked=asked, pool=options.pool)
    both: Check = lambda one: [*also(one), *check(one)]  # noqa: E731
    drawing = None
    if options.sample is not None:
        drawing = Drawing(options.sample, options.sample_by or "", options.unit, options.seed)
    intake = await take_in(source, target, options, both, drawing=drawing)
    try:
        check_served(metrics, backends, intake.inventory)
        _check_unit(target, options)
    except BaseException:
        target.unlink()
        raise
    return intake


def _check_unit(samples: Path, options: RunOptions) -> None:
    """Refuse samples of which none has the field that says what is independent."""
    if options.unit in (None, QUESTION, ANSWER):
        return
    with samples.open("rb") as file:
        if any(domain_of(json.loads(one), str(options.unit)) not in (None, "", []) for one in file):
            return
    message = (
        f"unit: no sample has the field {options.unit!r}; expected question, answer, or a field of "
        "the samples (dots descend into objects)"
    )
    if options.turns == ALL and options.unit == CHAT:
        message = "turns: no record is a chat log, with its messages under `messages`"
    raise InputError(message)


def row_index(source: Source, intake: Intake, limit: int | None) -> Any:
    """Return the index of the rows of a pandas frame that were taken in; ``None`` of all else.

    Drawn rows, and more faulty ones than are kept, are not known one by one: no index either.
    """
    known = len(intake.faults) == intake.faulty and not intake.drawn
    return frame_index(source, intake.faults, limit) if known else None


def checks_of(
    metrics: Sequence[Metric],
    stages: Sequence[Stage],
    *,
    asked: bool,
    pool: str | os.PathLike[str] | None = None,
) -> Check:
    """Return the check of a run's samples: why they cannot be filled, or cannot be scored.

    ``asked`` says whether the run has a model under assessment. The check raises
    :class:`ValueError` for a sample of a shard if a metric looks at other samples, and ``pool`` is
    not the file of all samples.
    """
    beyond = [metric.name for metric in metrics if metric.pool]
    known: set[Any] = set()

    def check(sample: Sample) -> list[Problem]:
        if beyond and (mark := sample.metadata.get(SHARD)) is not None:
            of = mark.get("of") if isinstance(mark, Mapping) else None
            if of not in known:
                _check_whole(pool, of, beyond[0])
                known.add(of)
        result: list[Problem] = []
        as_filled = sample
        for stage in stages:
            if stage.lacks(sample):
                result += stage.problems(as_filled)
                as_filled = stage.stand_in(as_filled)
        for metric in metrics:
            result += metric.problems(as_filled)
            if not asked:
                result += metric.problems_without_model(sample)
        return result

    return check


def _check_whole(pool: str | os.PathLike[str] | None, of: Any, metric: str) -> None:
    """Raise :class:`ValueError` unless a file holds all samples of the input of a shard."""
    message = f"{metric} compares a sample with all others, and the input is one shard of several"
    repair = "give --pool the file NAME.whole.jsonl that trustassay shard --whole writes"
    if pool is None:
        raise UsageError(f"{message}: {repair}")
    with Path(pool).open("rb") as file:
        result = hashlib.file_digest(file, "sha256").hexdigest()
    if result != of:
        raise UsageError(
            f"{message}, whose samples have the SHA-256 {of}; {os.fspath(pool)} has {result}: "
            f"{repair}"
        )


async def _sound(
    records: Iterable[Located | Fault], check: Check, intake: Intake, step: Callable[[], None]
) -> AsyncIterator[Sample]:
    """Yield the samples without fault, each with a unique id; record the faults of others."""
    ids = HashSet()
    repeats: Counter[str] = Counter()
    for number, record in enumerate(records):
        step()
        if number % YIELD_EVERY == 0:
            await asyncio.sleep(0)  # lets an interruption through
        if isinstance(record, Fault):
            intake.note(record)
            continue
        sample = record.sample
        lacking = check(sample)
        problems = [record.in_own_words(problem) for problem in lacking]
        known_as = hash64(sample.id)
        if known_as in ids:
            if record.has_id:
                message = f"{sample.id!r} is already used by an earlier record"
                problems.append(Problem("id", message))
            else:
                sample = replace(sample, id=_next_free(sample.id, ids, repeats))
                known_as = hash64(sample.id)
        if problems:
            shown = tuple(dict.fromkeys(problems))
            intake.note(Fault(record.where, shown, record.untold(lacking)))
            continue
        ids.add(known_as)
        yield sample


def _next_free(sample_id: str, ids: HashSet, repeats: Counter[str]) -> str:
    """Return the first of ``ID-2``, ``ID-3``, ... that is not taken; ``repeats`` says how far."""
    while True:
        repeats[sample_id] += 1
        name = f"{sample_id}-{repeats[sample_id] + 1}"
        if hash64(name) not in ids:
            return name


HOME = "trustassay-runs"
STEM = 60
"""Characters of the input's name that are kept; a file system takes 255 bytes."""


def default_folder(source: PathText | Sequence[PathText], **settings: Any) -> Path:
    """Return the folder for these settings and this state of the input, one source or several.

    The same command finds its folder again; a file that was changed since gets a new one. What
    comes on standard input is known by its content.
    """
    paths = [source] if isinstance(source, str | os.PathLike) else source
    state = [part for path in paths for part in state_of(path)]
    content = json.dumps([state, settings], sort_keys=True)
    digest = hashlib.blake2b(content.encode(), digest_size=4).hexdigest()
    given = ["stdin" if is_standard_input(path) else os.fspath(path) for path in paths]
    names = [name_of(path).split(".")[0] for path in given]
    stem = re.sub(r"[^\w.-]+", "_", "-".join(names))[:STEM] or "run"
    return Path(HOME) / f"{stem}-{digest}"


def state_of(source: PathText) -> list[str]:
    """Return what changes with an input: of a folder, the state of each file in it."""
    if is_standard_input(source):
        return [kept_input().digest]
    if (place := place_of(os.fspath(source))) is not None:
        return [os.fspath(source), *place.state()]
    path = Path(source)
    if not path.exists():
        return [str(path.resolve())]
    state = [str(path.resolve())]
    for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
        stat, inside = one.stat(), [str(one.relative_to(path))] if one != path else []
        state += [*inside, str(stat.st_size), str(stat.st_mtime_ns)]
    return state


@asynccontextmanager
async def samples_of(
    source: Source, options: InputOptions, check: Check = lambda _: []
) -> AsyncIterator[tuple[RunFolder, Intake]]:
    """Read and check an input, and yield a folder that holds its samples until the block ends."""
    with TemporaryDirectory(prefix="trustassay-") as place:
        folder = RunFolder(Path(place))
        yield folder, await take_in(source, folder.samples_path, options, check)
