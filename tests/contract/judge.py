"""A metric as a third party writes it: a judge is asked up to thirty times, and may stop early."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trustassay.core.metric import Assessment, Context, Figure, Mean, Metric, Need, Share
from trustassay.errors import AssessmentError

PROMPT = "Is the answer true? Reply with yes or no.\nQuestion: {}\nAnswer: {}"


@dataclass(frozen=True)
class ManyVotes(Metric):
    name: ClassVar[str] = "many_votes"
    title: ClassVar[str] = "A judge, asked again and again"
    verdicts: ClassVar[tuple[str, ...]] = ("true", "false")
    figures: ClassVar[Mapping[str, Figure]] = {
        "mean": Figure("mean", "mean share of yes", "", headline=True, statistic=Mean()),
        "true": Figure("true", "answers judged true", statistic=Share("true")),
        "votes": Figure("votes", "votes an answer", "", statistic=Mean("votes")),
    }
    evidence_template: ClassVar[str] = "judge.html.jinja"

    votes: int = 30
    threshold: float = 0.5

    def needs(self) -> Sequence[Need]:
        return (Need("chat", "judge"),)

    async def assess(self, context: Context) -> Assessment:
        sample = context.sample
        yes, replies = 0, list[str]()
        while len(replies) < self.votes:
            reply = await context.models.chat(
                PROMPT.format(sample.question, sample.response),
                role="judge",
                temperature=1.0,
                repeat=len(replies),
            )
            if not (found := re.match(r"\W*(yes|no)\b", reply.text, re.IGNORECASE)):
                raise AssessmentError(f"the judge said neither yes nor no: {reply.text!r:.40}")
            replies.append(reply.text)
            yes += found[1].lower() == "yes"
            if max(yes, len(replies) - yes) > self.votes / 2:
                break  # no vote to come can change the majority
        share = yes / len(replies)
        return Assessment(
            sample.id,
            self.name,
            share,
            verdict="true" if share >= self.threshold else "false",
            parts={"votes": len(replies)},
            evidence=[{"replies": replies}],
        )

    def problem(self, assessment: Assessment) -> str | None:
        return "most votes say no" if assessment.verdict == "false" else None
