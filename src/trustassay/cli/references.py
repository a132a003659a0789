"""The options of experiments on FEWL: who is asked, and by what answers are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from trustassay.runs.intake import RunOptions
    from trustassay.workflows.experiments.measuring import Setup

__all__ = ["References"]


@dataclass(frozen=True)
class References:
    """Who is asked, and by what answers are compared."""

    reference: Annotated[
        list[str],
        typer.Option(
            help="A model whose answers are compared, a URI as for score --model. May be given "
            "more than once. Without one the input has `references`.",
            metavar="[NAME=]URI",
            show_default=False,
        ),
    ] = field(default_factory=list)
    answers: Annotated[
        int, typer.Option(help="Different answers that each reference is asked for.", min=1)
    ] = 1
    generator: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="A model that writes wrong and corrected answers, where the input has none.",
            metavar="URI",
            show_default=False,
        ),
    ] = None
    pairs: Annotated[
        int, typer.Option(help="Wrong and corrected answers that count for a question.", min=1)
    ] = 25
    embedder: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="The embedding model by which neighbours are found: embedded (the default), "
            "openai:MODEL[@BASE_URL], hf:ID-or-path.",
            metavar="URI",
            show_default=False,
        ),
    ] = None
    similarity: Annotated[
        list[str],
        typer.Option(
            help="A similarity, as of score; each gives a block of rows. May be given more than "
            "once.",
            metavar="URI",
        ),
    ] = field(default_factory=lambda: ["cosine"])
    neighbours: Annotated[int, typer.Option(help="Questions behind a penalty.", min=1)] = 10
    max_similarity: Annotated[
        float, typer.Option(help="Cosine from which questions are too alike to be neighbours.")
    ] = 0.8
    weight_temperature: Annotated[
        float, typer.Option(help="Divides the expertise before its exponential is taken.")
    ] = 1.0
    single: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="The reference that counts where one alone does. Default: the first one.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None

    def setup(self, options: RunOptions) -> Setup:
        """Return them as an experiment uses them; raises ValueError for what cannot be."""
        from trustassay.metrics.fewl import Fewl
        from trustassay.workflows.experiments.measuring import Setup

        return Setup(
            references=self.reference,
            generator=self.generator,
            embedder=self.embedder,
            similarities=tuple(dict.fromkeys(self.similarity)),
            metric=Fewl(
                temperature=self.weight_temperature,
                neighbours=self.neighbours,
                max_similarity=self.max_similarity,
                pairs=self.pairs,
                answers=self.answers,
            ),
            single=self.single,
            options=options,
        )
