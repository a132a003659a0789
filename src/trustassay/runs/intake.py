"""The options of a run, and the first pass over its input, before anything is started.

1. Read the records, check each sample, and give it a unique id.
2. Draw a part of them, if that is wanted.
3. Write them in canonical form and count their fields.
4. Refuse the input if a record is faulty, or if metrics need what no sample has.
"""

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

from trustassay.calls.backends import MODEL_ROLE, Backends
from trustassay.calls.client import CallOptions, build_cache_path
from trustassay.core.asked import ASKED_FIELD
from trustassay.core.files import name_in_errors, open_atomic, open_new
from trustassay.core.metric import Inventory, Metric
from trustassay.core.progress import Progress, tell
from trustassay.core.sample import LONGEST_LINE_MIB, Problem, Sample
from trustassay.errors import PortableError, UsageError
from trustassay.input.arrow import ArrowStream, find_frame_index
from trustassay.input.places import find_place, is_standard_input, name_of, store_standard_input
from trustassay.input.reading import ALL, LAST, LocatedSample, paths_of, read_samples
from trustassay.input.records import (
    FieldNames,
    InputError,
    InputFault,
    find_common_unknown_fields,
    summarise_faults,
)
from trustassay.judging.second_reader import SecondReaderOptions
from trustassay.runs.answering_models import ModelCensus
from trustassay.runs.calibrator import Calibrator, read_calibrator
from trustassay.runs.drawing import SampleDraw
from trustassay.runs.fill import FillOptions, Stage
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import HashSet, encode_sample, hash64
from trustassay.runs.needs import check_served
from trustassay.runs.options import check_bounds
from trustassay.runs.remarks import describe_draw
from trustassay.runs.units import ANSWER, QUESTION, read_unit
from trustassay.text.limits import MAX_ANSWER_CHARACTERS, TextLimits
from trustassay.text.numbers import amount

WHY = "why"
"""Key in ``run.json``: why the metric was chosen, if the user did not name one."""


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """How a file of samples is read, and models are asked.

    fields, limit, skip_bad, turns, unanswered, sheet, answer_span, longest_line: of the input.
    progress: show it. calls: as of a run.
    """

    fields: FieldNames = field(default_factory=dict)
    limit: int | None = None
    skip_bad: bool = False
    turns: str = LAST
    sheet: str | int | None = None
    unanswered: bool = False
    answer_span: str | None = None
    longest_line: int = LONGEST_LINE_MIB
    progress: bool | None = False
    calls: CallOptions = field(default_factory=CallOptions)


@dataclass(frozen=True, kw_only=True)
class RunOptions(InputOptions):
    """How a run is carried out; see :class:`~trustassay.runs.options.ScoreOptions`. Only
    ``fields``, ``sheet``, ``answer_span``, ``limit``, ``longest_answer``, ``sample``,
    ``sample_by``, ``seed``, ``unit``, ``pool``, ``filling`` and ``second`` can change a result.

    samples_at_once: per metric; ``None`` for 256, or for twice the calls that an endpoint takes at
        once if that is more.
    calibrator: one that will be applied to the run; other settings than its own are refused before
        any model is asked.
    first_verdict: show the first verdict beside the progress; not for one of many runs.
    """

    seed: int = 0
    unit: str | None = None
    longest_answer: int = MAX_ANSWER_CHARACTERS
    samples_at_once: int | None = None
    report: bool = True
    progress: bool | None = None
    first_verdict: bool = True
    calls_from: Path | None = None
    pool: str | os.PathLike[str] | None = None
    command: str | None = None
    why: str | None = None
    sample: str | int | None = None
    sample_by: str | None = None
    drawn: Mapping[str, Any] | None = None
    append: bool = False
    calibrator: Calibrator | None = None
    filling: FillOptions = field(default_factory=FillOptions)
    second: SecondReaderOptions = field(default_factory=SecondReaderOptions)

    def __post_init__(self) -> None:
        check_bounds(vars(self))
        if self.sample is not None and self.limit is not None:
            raise UsageError("sample: cannot be used with limit, which takes the first records")
        if self.sample is None and self.sample_by:
            raise UsageError("sample_by: needs sample, the number or share of answers to draw")
        # A fixed number, or strata, would draw other answers from a larger input; a share does not.
        if self.append and (self.sample_by or "%" not in str(self.sample or "%")):
            raise UsageError("append: with sample, expected a share such as 1%, and no sample_by")
        # The turns of a chat are alike; as single units they would make intervals too narrow.
        if self.turns == ALL and self.unit is None:
            object.__setattr__(self, "unit", CHAT)

    @property
    def is_part(self) -> bool:
        """Whether a part of the input is scored."""
        return self.limit is not None or self.sample is not None

    @property
    def limits(self) -> TextLimits:
        """How much text of a sample is assessed."""
        return TextLimits(self.longest_answer)

    def stores(self, folder: RunFolder) -> tuple[Path | None, ...]:
        """Return the files that may hold replies for the run of a folder."""
        return folder.calls_path, self.calls_from, build_cache_path(self.calls.cache)


def build_run_options(**options: Any) -> RunOptions:
    """Return the options of a run from keywords, those of ``filling``, ``calls`` and ``second``
    among them; ``calibrator`` is the path of its file.

    Raises:
        ValueError: a value that an option cannot have.
        InputError, OSError: as :func:`~trustassay.runs.calibrator.read_calibrator`.
    """
    if (path := options.get("calibrator")) is not None:
        options["calibrator"] = read_calibrator(Path(path))
    # Python users give all options flat; each dataclass of options takes its own fields.
    filling, calls, second = (
        {f.name: options.pop(f.name) for f in dataclasses.fields(kind) if f.name in options}
        for kind in (FillOptions, CallOptions, SecondReaderOptions)
    )
    return RunOptions(
        **options,
        filling=FillOptions(**filling),
        calls=CallOptions.of(**calls),
        second=SecondReaderOptions(**second),
    )


PathText = str | os.PathLike[str]
Source = PathText | ArrowStream | Iterable[Mapping[str, Any] | Sample | PathText]
MAX_FAULTS_KEPT = 1000
"""Faults that are kept in memory; more are only counted."""
CHAT = "conversation"
"""Field of samples that are turns of a chat: those with the same value are one unit."""
SHARD = "trustassay_shard"
"""Field of samples that belong to a shard of an input; holds a :class:`ShardMark`."""
YIELD_EVERY = 256
"""Samples after which the event loop may do something else."""
Check = Callable[[Sample], list[Problem]]


@dataclass(frozen=True, slots=True)
class ShardMark:
    """The shard and the input to which a sample belongs."""

    of: str
    """SHA-256 of all samples of the input, in canonical form."""
    samples: int
    """The number of samples of the input."""
    skipped: int
    """Records of the input that were left out as faulty."""
    into: int
    """The number of shards."""
    number: int
    """The sample's shard, from 0."""
    order: int
    """The sample's place in the input, from 0."""

    @classmethod
    def take(cls, record: dict[str, Any]) -> Self | None:
        """Remove the mark from a stored sample and return it; ``None`` if it has no valid one."""
        result = record.pop(SHARD, None)
        kinds = {"of": str, **dict.fromkeys(("samples", "skipped", "into", "number", "order"), int)}
        if not isinstance(result, Mapping) or result.keys() != kinds.keys():
            return None
        sound = all(isinstance(result[name], kind) for name, kind in kinds.items())
        return cls(**result) if sound else None


class BadInputError(PortableError, UsageError):
    """The input has faults.

    ``faults`` holds the first thousand of them, ``count`` their number, and ``records`` that of all
    records that were read, or 0 if it is not known.
    """

    def __init__(self, faults: Sequence[InputFault], count: int, records: int = 0) -> None:
        lines = summarise_faults(faults, records)
        if untold_fields := find_common_unknown_fields(faults):
            lines.append(str(untold_fields))
        super().__init__("\n".join(lines))
        self.faults, self.count, self.records = tuple(faults), count, records


@dataclass(slots=True)
class Intake:
    """The result of the first pass over an input."""

    sha256: str = ""
    """Digest of the samples in canonical form."""
    inventory: Inventory = field(default_factory=Inventory)
    """How many samples have which fields."""
    faults: list[InputFault] = field(default_factory=list)
    """The first thousand faults."""
    faulty: int = 0
    """The number of faulty records."""
    records: int = 0
    """The number of all records."""
    drawn: Mapping[str, Any] | None = None
    """How a part of the input was drawn, for ``run.json``; ``None`` if all was taken."""
    census: ModelCensus = field(default_factory=ModelCensus)
    """The models that the samples name, as far as the run asks them."""

    def count(self, sample: Sample) -> None:
        """Count the fields of a sample, and its model."""
        self.inventory.add(sample)
        self.census.add(sample)

    def note(self, fault: InputFault) -> None:
        """Count a fault, and keep it if it is among the first thousand."""
        self.faulty += 1
        if len(self.faults) < MAX_FAULTS_KEPT:
            self.faults.append(fault)

    def describe_samples(self) -> dict[str, Any]:
        """Return the field ``samples`` of ``run.json``."""
        return {"sha256": self.sha256, **dataclasses.asdict(self.inventory)}


async def take_in(
    source: Source,
    target: Path,
    options: InputOptions,
    check: Check = lambda _: [],
    what: str = "the input",
    drawing: SampleDraw | None = None,
    census: ModelCensus | None = None,
) -> Intake:
    """Read and check all samples and write them, in canonical form, to ``target``.

    Args:
        check: returns the problems of a well-formed sample.
        what: how the progress names the input.
        drawing: draws a part of the samples; only these are written.
        census: counts the models of the samples.

    Raises:
        BadInputError: samples have faults, and ``skip_bad`` is off. ``target`` does not exist then.
        InputError: the input cannot be read at all, or holds no usable sample.
    """
    intake = Intake(census=census or ModelCensus())
    digest = hashlib.sha256()
    samples = read_samples(
        source,
        fields=options.fields,
        turns=options.turns,
        sheet=options.sheet,
        unanswered=options.unanswered,
        answer_span=options.answer_span,
        longest_line=options.longest_line,
    )
    records: Iterable[LocatedSample | InputFault] = islice(samples, options.limit)
    if not _is_written_by_run(source):
        records = map(remove_outcomes, records)
    try:
        with (
            Progress(f"checking {what}", visible=options.progress) as progress,
            name_in_errors(target),
            open_new(target) as file,
        ):
            async for sample in _yield_sound_samples(records, check, intake, progress.step):
                # Samples that cannot be drawn any more are not written; of the others some are
                # dropped below.
                if drawing and not drawing.may_draw(sample):
                    continue
                line = encode_sample(sample)
                if not drawing:
                    intake.count(sample)
                    digest.update(line)
                file.write(line)
        # After all records: the user sees all faults at once.
        if intake.faulty and not options.skip_bad:
            raise BadInputError(intake.faults, intake.faulty, intake.records)
        if drawing:
            _write_drawn_lines(target, drawing.select(), intake, digest)
            intake.drawn = drawing.settings
            if options.progress:
                tell(describe_draw(intake.drawn))
        if not intake.inventory.samples:
            raise InputError(_describe_no_sample(intake))
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    # The digest is of the written samples: the same content gives it from CSV, JSON or a frame.
    intake.sha256 = digest.hexdigest()
    return intake


def _is_written_by_run(source: Source) -> bool:
    """Whether a source is a file of a run, which has the outcomes of the run's own requests."""
    paths = [Path(path) for path in paths_of(source)]
    folders = [RunFolder(path.parent) for path in paths]
    return bool(paths) and all(
        path in (folder.samples_path, folder.pool_path) and folder.read_run() is not None
        for path, folder in zip(paths, folders, strict=True)
    )


def remove_outcomes(record: LocatedSample | InputFault) -> LocatedSample | InputFault:
    """Return a record without outcomes of requests: nobody but a run may say who did not answer.

    A shard keeps them, as it may be a part of a run.
    """
    if isinstance(record, InputFault):
        return record
    metadata = dict(record.sample.metadata)
    if SHARD in metadata or metadata.pop(ASKED_FIELD, None) is None:
        return record
    return record._replace(sample=replace(record.sample, metadata=metadata))


def _describe_no_sample(intake: Intake) -> str:
    """Return why nothing can be scored; of faulty records that were skipped, with a first fault."""
    message = "no usable sample in the input"
    if not intake.faulty:
        return message
    first = summarise_faults(intake.faults, intake.records)[0]
    return f"{message}: {amount(intake.faulty, 'faulty record')} skipped; {first}"


def _write_drawn_lines(path: Path, is_drawn: Iterable[bool], intake: Intake, digest: Any) -> None:
    """Rewrite a file of samples with some of its lines; add them to inventory and digest."""
    with path.open("rb") as lines, open_atomic(path) as file:
        for line in compress(lines, is_drawn):
            intake.count(Sample.parse(json.loads(line)))
            digest.update(line)
            file.write(line)


async def admit_samples(
    source: Source,
    target: Path,
    metrics: Sequence[Metric],
    backends: Backends,
    stages: Sequence[Stage],
    options: RunOptions,
    also: Check = lambda _: [],
) -> Intake:
    """Take in the samples of a run, and refuse all that can be refused before a call.

    Args:
        stages: they fill samples before these are scored.
        also: returns further problems of a sample.

    Raises:
        BadInputError, InputError: as :func:`take_in`; no sample has the field of ``options.unit``.
        ValueError: a metric needs a backend that the run lacks, or a field that no sample has.
    """
    has_model = bool(backends.names_of_role(MODEL_ROLE))
    census = ModelCensus()
    if has_model:
        fills = any(stage.field == "response" for stage in stages)
        census = ModelCensus(metrics, fills=fills)
    check = build_check(metrics, stages, has_model=has_model, pool=options.pool)
    check_all: Check = lambda sample: [*also(sample), *check(sample)]  # noqa: E731
    drawing = None
    if options.sample is not None:
        drawing = SampleDraw(options.sample, options.sample_by or "", options.unit, options.seed)
    intake = await take_in(source, target, options, check_all, drawing=drawing, census=census)
    try:
        # Only now is it known whether any sample brings the field that replaces a backend.
        check_served(metrics, backends, intake.inventory)
        _check_unit(target, options)
    except BaseException:
        target.unlink()
        raise
    return intake


def _check_unit(samples: Path, options: RunOptions) -> None:
    """Refuse the samples if none has the field of ``options.unit``."""
    if options.unit in (None, QUESTION, ANSWER):
        return
    with samples.open("rb") as file:
        if any(read_unit(json.loads(line), options.unit) is not None for line in file):
            return
    message = (
        f"unit: no sample has the field {options.unit!r}; expected question, answer, or a field of "
        "the samples (dots lead into nested fields)"
    )
    if options.turns == ALL and options.unit == CHAT:
        message = "turns: no record is a chat log, with its messages under `messages`"
    raise InputError(message)


def find_row_index(source: Source, intake: Intake, limit: int | None) -> Any:
    """Return the index of the rows of a pandas frame that were taken in.

    ``None`` for other sources, after a draw, and if more rows were faulty than faults are kept:
    which rows are left is not known then.
    """
    is_complete = len(intake.faults) == intake.faulty and not intake.drawn
    return find_frame_index(source, intake.faults, limit) if is_complete else None


def build_check(
    metrics: Sequence[Metric],
    stages: Sequence[Stage],
    *,
    has_model: bool,
    pool: str | os.PathLike[str] | None = None,
) -> Check:
    """Return a function that says why a sample cannot be filled, or cannot be scored.

    It raises :class:`ValueError` for a sample of a shard if a metric looks at other samples and
    ``pool`` is not the file of all samples.

    Args:
        has_model: whether the run has a model under assessment.
    """
    pool_metrics = [metric.name for metric in metrics if metric.pool]
    checked_inputs: set[Any] = set()

    def check(sample: Sample) -> list[Problem]:
        if pool_metrics and (mark := sample.metadata.get(SHARD)) is not None:
            digest = mark.get("of") if isinstance(mark, Mapping) else None
            # The file of the pool is hashed once for each input, not for each sample.
            if digest not in checked_inputs:
                _check_pool_digest(pool, digest, pool_metrics[0])
                checked_inputs.add(digest)
        result: list[Problem] = []
        as_filled = sample
        for stage in stages:
            if stage.lacks(sample):
                result += stage.problems(as_filled)
                # Metrics check the sample as it will be when it is filled.
                as_filled = stage.stand_in(as_filled)
        for metric in metrics:
            result += metric.problems(as_filled)
            if not has_model:
                # The sample as it came: a stand-in is no reply of the model.
                result += metric.problems_without_model(sample)
        return result

    return check


def _check_pool_digest(pool: str | os.PathLike[str] | None, input_digest: Any, metric: str) -> None:
    """Raise :class:`ValueError` unless a file holds all samples of the input of a shard."""
    message = f"{metric} compares each sample with all others, but the input is a shard"
    repair = "give --pool the file NAME.whole.jsonl that trustassay shard --whole writes"
    if pool is None:
        raise UsageError(f"{message}: {repair}")
    with Path(pool).open("rb") as file:
        result = hashlib.file_digest(file, "sha256").hexdigest()
    if result != input_digest:
        raise UsageError(
            f"{message}; {os.fspath(pool)} is not the file of all its samples (expected SHA-256 "
            f"{input_digest}, got {result}): {repair}"
        )


async def _yield_sound_samples(
    records: Iterable[LocatedSample | InputFault],
    check: Check,
    intake: Intake,
    step: Callable[[], None],
) -> AsyncIterator[Sample]:
    """Yield the samples without faults, each with a unique id; record the faults in ``intake``."""
    ids = HashSet()
    repeats: Counter[str] = Counter()
    for number, record in enumerate(records):
        step()
        intake.records = number + 1
        if number % YIELD_EVERY == 0:
            await asyncio.sleep(0)  # lets an interruption through
        if isinstance(record, InputFault):
            intake.note(record)
            continue
        sample = record.sample
        sample_problems = check(sample)
        problems = [record.use_original_names(problem) for problem in sample_problems]
        # Hashes and not the ids themselves: an input may have millions of samples.
        id_hash = hash64(sample.id)
        if id_hash in ids:
            # An id from the input that occurs twice is a fault; ids that were made from content get
            # a number.
            if record.has_id:
                message = (
                    f"{sample.id!r} is already used by an earlier record; expected a unique id"
                )
                problems.append(Problem("id", message))
            else:
                sample = replace(sample, id=_next_free(sample.id, ids, repeats))
                id_hash = hash64(sample.id)
        if problems:
            # Two metrics may have the same problem with a sample.
            distinct_problems = tuple(dict.fromkeys(problems))
            intake.note(
                InputFault(
                    record.where, distinct_problems, record.find_unknown_fields(sample_problems)
                )
            )
            continue
        ids.add(id_hash)
        yield sample


def _next_free(sample_id: str, ids: HashSet, repeats: Counter[str]) -> str:
    """Return the first of ``ID-2``, ``ID-3``, ... that is free.

    ``repeats`` holds how many were tried for each id, so that many equal records take linear time.
    """
    while True:
        repeats[sample_id] += 1
        name = f"{sample_id}-{repeats[sample_id] + 1}"
        if hash64(name) not in ids:
            return name


RUNS_FOLDER = "trustassay-runs"
MAX_STEM_CHARACTERS = 60
"""Characters of the input's name that are kept; a file system takes 255 bytes."""


def default_folder(source: PathText | Sequence[PathText], **settings: Any) -> Path:
    """Return the folder for these settings and this state of the input, one source or several.

    The same command finds its folder again; after a change of the file it gets a new one. Standard
    input is identified by its content.
    """
    paths = [source] if isinstance(source, str | os.PathLike) else source
    state = [part for path in paths for part in read_source_state(path)]
    content = json.dumps([state, settings], sort_keys=True)
    digest = hashlib.blake2b(content.encode(), digest_size=4).hexdigest()
    path_texts = ["stdin" if is_standard_input(path) else os.fspath(path) for path in paths]
    names = [name_of(path).split(".")[0] for path in path_texts]
    # Other characters of file names are awkward in a shell: "my data (1).csv" gives "my_data_1_".
    stem = re.sub(r"[^\w.-]+", "_", "-".join(names))[:MAX_STEM_CHARACTERS] or "run"
    return Path(RUNS_FOLDER) / f"{stem}-{digest}"


def read_source_state(source: PathText) -> list[str]:
    """Return texts that change when an input does: path, size and time of each file of it."""
    if is_standard_input(source):
        return [store_standard_input().digest]
    if (place := find_place(os.fspath(source))) is not None:
        return [os.fspath(source), *place.state()]
    path = Path(source)
    if not path.exists():
        return [str(path.resolve())]
    state = [str(path.resolve())]
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        stat, inside = file.stat(), [str(file.relative_to(path))] if file != path else []
        state += [*inside, str(stat.st_size), str(stat.st_mtime_ns)]
    return state


@asynccontextmanager
async def open_samples(
    source: Source,
    options: InputOptions,
    check: Check = lambda _: [],
    census: ModelCensus | None = None,
) -> AsyncIterator[tuple[RunFolder, Intake]]:
    """Read and check an input, and yield a folder that holds its samples until the block ends."""
    with TemporaryDirectory(prefix="trustassay-") as temporary_path:
        folder = RunFolder(Path(temporary_path))
        yield folder, await take_in(source, folder.samples_path, options, check, census=census)
