"""``trustassay serve``: score answers over HTTP."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trustassay.cli import common
from trustassay.cli.interrupting import INTERRUPTED
from trustassay.cli.options import Only, with_options
from trustassay.errors import UsageError
from trustassay.report.terminal import say
from trustassay.runs.options import (
    BLOCKING,
    INTEGRATIONS,
    MODELS,
    OUTPUT,
    SERVER,
    AnswerSpan,
    BackendChoices,
    Fields,
    Flag,
    ScorerOptions,
    SpendingOptions,
    read_pairs,
)

if TYPE_CHECKING:
    from trustassay.live import Part, Service
    from trustassay.live.verdicts import BlockingRules


@dataclass(frozen=True)
class Integrations:
    """What is served besides ``/v1/score``, and which answers are withheld there."""

    upstream: Annotated[
        str | None,
        Flag(
            "--upstream",
            "Forward POST /v1/chat/completions to this OpenAI-compatible API, and add verdicts "
            "to its answers.",
            metavar="URL",
            group=INTEGRATIONS,
        ),
    ]
    upstream_key: Annotated[
        str,
        Flag(
            "--upstream-key",
            "The environment variable that holds the key for --upstream. Default: forward the "
            "key that the client sends.",
            metavar="NAME",
            group=INTEGRATIONS,
            default="",
            rare=True,
        ),
    ]
    upstream_timeout: Annotated[
        float,
        Flag(
            "--upstream-timeout",
            "Seconds to wait for an answer from --upstream.",
            group=INTEGRATIONS,
            default=600.0,
            least=0.1,
            rare=True,
        ),
    ]
    calibrator: Annotated[
        Path | None,
        Flag(
            "--calibrator",
            "Serve POST /v1/decide, which decides whether to accept an answer, with this file of "
            "trustassay calibrate. A request has a score, or a sample if the file calibrates a "
            "metric. The file is read again when it changes.",
            metavar="FILE",
            group=INTEGRATIONS,
        ),
    ]
    decisions: Annotated[
        str | None,
        Flag(
            "--decisions",
            "Serve a decision model at POST /v1/systemone and POST /v1/decisions. With "
            "--calibrator, answers to yes/no questions have calibrated probabilities.",
            metavar="URI",
            group=INTEGRATIONS,
        ),
    ]
    guardrail: Annotated[
        bool,
        Flag(
            "--guardrail", "Serve LiteLLM's generic guardrail API.", group=INTEGRATIONS, rare=True
        ),
    ]
    mcp: Annotated[
        bool,
        Flag(
            "--mcp",
            "Serve the tool check_answer to MCP clients at /mcp.",
            group=INTEGRATIONS,
            rare=True,
        ),
    ]
    otlp: Annotated[
        bool,
        Flag(
            "--otlp",
            "Receive OTLP traces at /v1/traces, and score each trace when it is complete.",
            group=INTEGRATIONS,
            rare=True,
        ),
    ]
    settle: Annotated[
        float,
        Flag(
            "--settle",
            "Seconds to wait after a trace's root span before the trace counts as complete.",
            group=INTEGRATIONS,
            default=5.0,
            least=0.0,
            rare=True,
        ),
    ]
    events: Annotated[
        str | None,
        Flag(
            "--events",
            "Send each score of --otlp as an event gen_ai.evaluation.result to this OTLP logs "
            "endpoint (http://127.0.0.1:4318/v1/logs), or append it to this file.",
            metavar="URL|FILE",
            group=INTEGRATIONS,
            rare=True,
        ),
    ]
    explanations: Annotated[
        bool,
        Flag(
            "--explanations",
            "Include the reasons of scores in --events. They may quote an answer.",
            group=INTEGRATIONS,
            rare=True,
        ),
    ]
    documents_in: Annotated[
        list[str],
        Flag(
            "--documents-in",
            "Read passages from chat messages of this role, besides `documents`: tool, system. May "
            "be given more than once.",
            metavar="ROLE",
            group=INTEGRATIONS,
            default=["tool"],
            rare=True,
        ),
    ]
    block_below: Annotated[
        list[str],
        Flag(
            "--block-below",
            "Withhold answers whose score of this metric is below this value.",
            metavar="METRIC=SCORE",
            group=BLOCKING,
        ),
    ]
    block_above: Annotated[
        list[str],
        Flag(
            "--block-above",
            "Withhold answers whose score is above this value; for metrics whose low scores are "
            "good.",
            metavar="METRIC=SCORE",
            group=BLOCKING,
        ),
    ]
    block_unscored: Annotated[
        bool,
        Flag(
            "--block-unscored",
            "Also withhold answers that could not be judged, or not within 60 seconds.",
            group=BLOCKING,
        ),
    ]
    block_message: Annotated[
        str | None,
        Flag(
            "--block-message",
            "The text that replaces a withheld answer. Default: a sentence with the reason.",
            group=BLOCKING,
        ),
    ]

    def build_parts(
        self, metrics: Sequence[str], tokens: Sequence[str], out: Path | None
    ) -> "list[Callable[[Service], Part]]":
        """Return a function for each requested part, which builds it for a service.

        Args:
            metrics: the metrics that are scored, for the thresholds.
            tokens: the tokens of the service itself, which are never passed on to an upstream.
            out: the run's folder, in which traces and events wait.

        Raises:
            ValueError: an option does not fit the others, or cannot be read.
            BackendError: the address cannot be used, or a package is missing.
        """
        from trustassay.core.registry import metric_from_text
        from trustassay.live.decide import decision_part
        from trustassay.live.decision_model import decision_model_part
        from trustassay.live.guardrail import guardrail_part
        from trustassay.live.proxy import proxy_part
        from trustassay.live.upstream import Upstream
        from trustassay.live.verdicts import DOCUMENT_ROLES, AnswerJudging

        if unknown_roles := sorted(set(self.documents_in) - set(DOCUMENT_ROLES)):
            roles = " or ".join(DOCUMENT_ROLES)
            raise UsageError(f"--documents-in: expected {roles}, got {unknown_roles[0]!r}")
        if self.upstream_key and not self.upstream:
            raise UsageError("--upstream-key: needs --upstream")
        blocking = self._read_blocking(metrics)
        # Only these two stand between a program and its model, and so can withhold an answer.
        if blocking and not (self.upstream or self.guardrail):
            raise UsageError("--block-...: these options need --upstream or --guardrail")
        judging = AnswerJudging(self.documents_in, blocking)
        result: list[Callable[[Service], Part]] = []
        if self.calibrator:
            names = [metric_from_text(metric).name for metric in metrics]
            result.append(decision_part(self.calibrator, names))
        if self.decisions:
            result.append(decision_model_part(self.calibrator))
        if self.guardrail:
            result.append(lambda service: guardrail_part(service, judging))
        # imported only here, since it needs a package that may be missing
        if self.mcp:
            from trustassay.live.mcp import mcp_part

            result.append(mcp_part)
        if self.otlp:
            result.append(self._build_traces_part(out))
        # Events belong to traces; without --otlp they would be ignored without a word.
        elif self.events or self.explanations:
            raise UsageError("--events and --explanations: these options need --otlp")
        # Last, since it answers for all paths below /v1 that no other part has.
        if self.upstream:
            upstream = Upstream(self.upstream, self.upstream_key, tokens, self.upstream_timeout)
            # The service does not exist yet: each part is a function that gets it when it serves.
            result.append(lambda service: proxy_part(service, upstream, judging))
        return result

    def _build_traces_part(self, out: Path | None) -> "Callable[[Service], Part]":
        from trustassay.live.evaluation_events import open_sink
        from trustassay.live.otlp import TraceReceiver, traces_part

        # The sink is opened here and not in the part: a wrong address ends the command before it
        # serves.
        sink = open_sink(self.events, say, out) if self.events else None

        def part(service: "Service") -> "Part":
            receiver = TraceReceiver(
                service, self.settle, sink, explanations=self.explanations, out=out, tell=say
            )
            return traces_part(service, receiver, sink)

        return part

    def _read_blocking(self, metrics: Sequence[str]) -> "BlockingRules":
        from trustassay.core.registry import metric_from_text
        from trustassay.live.verdicts import BlockingRules, read_thresholds

        scored_metrics = [metric_from_text(metric) for metric in metrics]
        expected = "METRIC=SCORE, for example faithfulness=0.5"
        below = read_pairs(self.block_below, "--block-below", expected)
        above = read_pairs(self.block_above, "--block-above", expected)
        # The metrics are built here only to check thresholds against their ranges.
        thresholds = read_thresholds(below, "below", scored_metrics) + read_thresholds(
            above, "above", scored_metrics
        )
        return BlockingRules(thresholds, self.block_unscored, self.block_message or "")


Metrics = Annotated[
    list[str],
    Flag(
        "--metric",
        "A metric with its options. May be given more than once.",
        metavar="NAME[:OPTION=VALUE,...]",
        group=MODELS,
        default=["faithfulness"],
    ),
]


Scoring = Annotated[ScorerOptions, Only("samples_at_once", "longest_answer")]


@with_options
def serve(  # noqa: PLR0913 - one argument an option
    *,
    metric: Metrics,
    backends: Annotated[BackendChoices, Only("model", "judge", "second", "entailer", "backends")],
    out: Annotated[
        Path | None,
        Flag("--out", "Add all samples and results to the run in this folder.", group=OUTPUT),
    ],
    host: common.Host,
    port: common.Port = 8770,
    capacity: Annotated[
        int,
        Flag(
            "--capacity",
            "The most samples in progress at once.",
            group=SERVER,
            default=4096,
            least=1,
        ),
    ],
    per_caller: Annotated[
        int | None,
        Flag(
            "--per-caller",
            "The most samples of one caller in progress at once. Callers are told apart by "
            "token, else by --caller-header, else by address. Default: a quarter of --capacity.",
            group=SERVER,
            least=1,
            rare=True,
        ),
    ],
    caller_header: Annotated[
        str,
        Flag(
            "--caller-header",
            "The header that names the caller of a request without a token. Use it only behind a "
            "proxy that sets the header.",
            metavar="NAME",
            group=SERVER,
            default="",
            rare=True,
        ),
    ],
    per_minute: Annotated[
        int,
        Flag(
            "--per-minute",
            "The most requests of one caller in a minute.",
            group=SERVER,
            default=6000,
            least=1,
        ),
    ],
    largest_body: Annotated[
        int,
        Flag(
            "--largest-body",
            "The most bytes in the body of a request.",
            group=SERVER,
            default=2**22,
            least=1,
        ),
    ],
    connections: Annotated[
        int,
        Flag(
            "--connections",
            "The most connections open at once.",
            group=SERVER,
            default=2048,
            least=1,
        ),
    ],
    slow: Annotated[
        float,
        Flag(
            "--slow",
            "Seconds that a client has to send a whole request.",
            group=SERVER,
            default=10.0,
            least=0.1,
        ),
    ],
    grace: Annotated[
        float,
        Flag(
            "--grace",
            "Seconds to finish accepted samples after SIGTERM or Ctrl-C. The rest is cancelled.",
            group=SERVER,
            default=20.0,
            # An end without any work takes half a second.
            least=1.0,
        ),
    ],
    integrations: Integrations,
    scoring: Scoring,
    fields: Fields,
    answer_span: AnswerSpan,
    spending: Annotated[SpendingOptions, Only("cache", "budget", "calls_at_once")],
) -> None:
    """Score answers over HTTP: POST /v1/score takes one sample or many.

    The service also has /health, /metrics for Prometheus, and /openapi.json. --upstream and
    --guardrail judge the answers of a model on their way to your program; --mcp serves a tool.

    If TRUSTASSAY_SERVE_TOKEN is set, each request needs this token (separate several with commas).
    A --host other than this machine requires a token.

    SIGTERM or Ctrl-C stops the service once all accepted samples are answered, or after --grace
    seconds. With --out, the next start scores accepted samples that are left, even after a kill.

    \b
    trustassay serve
    trustassay serve --metric faithfulness --metric grounding --out runs/live
    trustassay serve --metric harmonicity:perturbations=1 \\
        --model openai:gpt-4o-mini
    trustassay serve --calibrator calibrator.json
    trustassay serve --decisions systemone:jev-1.13.0 \\
        --calibrator calibrator.json
    trustassay serve --upstream https://api.openai.com/v1 \\
        --block-below faithfulness=0.5
    TRUSTASSAY_SERVE_TOKEN=... trustassay serve --host 0.0.0.0
    """
    import os

    from trustassay import api
    from trustassay.live.server import serve as serve_at
    from trustassay.live.service import TOKEN_VARIABLE, ServiceSettings, read_tokens
    from trustassay.report.serving import is_loopback, open_listener

    tokens = read_tokens(os.environ.get(TOKEN_VARIABLE, ""))
    # refused before any model is loaded
    if not tokens and not is_loopback(host):
        raise UsageError(
            f"--host {host}: other machines could send requests without a token; set one in "
            f"{TOKEN_VARIABLE} (16 characters or more), or leave --host out"
        )
    parts = integrations.build_parts(metric, tokens, out)
    settings = ServiceSettings(
        tokens=tokens,
        capacity=capacity,
        per_caller=per_caller,
        caller_header=caller_header,
        largest_body=largest_body,
        per_minute=per_minute,
        connections=connections,
        slow_s=slow,
    )
    options: ScorerOptions = {**scoring, "fields": fields, **spending, **backends}
    options["answer_span"] = answer_span
    decisions = integrations.decisions
    open_scorer = api.scorer(metrics=metric, out=out, decisions=decisions, **options)
    with open_listener(host, port) as at:
        if not is_loopback(host):
            # said after the port is bound, so that a port in use is the only message
            say("warning: connections are not encrypted; put a TLS proxy in front of the service")
        # Only a folder remembers accepted samples.
        again = "run the same command again to score the accepted samples"
        advice = "send requests without a reply again" if out is None else again
        finished = serve_at(open_scorer, settings, at, say, parts, grace_s=grace, advice=advice)
    if not finished:
        # Accepted samples are lost, or wait in the folder for the next start.
        raise typer.Exit(INTERRUPTED)
    if out is not None:
        say(f"run:    {out}")
