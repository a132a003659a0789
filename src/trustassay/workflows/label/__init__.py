"""Active evaluation: which answers to rate next, and what ratings say of all answers."""

from trustassay.workflows.label.command import (
    PROPOSED,
    WIDTH,
    Labelling,
    default_plan,
    label,
)
from trustassay.workflows.label.population import Figure, LabelFigure, Need

__all__ = [
    "PROPOSED",
    "WIDTH",
    "Figure",
    "LabelFigure",
    "Labelling",
    "Need",
    "default_plan",
    "label",
]
