"""Active evaluation: which answers to rate next, and what ratings say of all answers."""

from trustassay.workflows.label.figures import Figure, LabelFigure, Need
from trustassay.workflows.label.labelling import (
    PROPOSED,
    WIDTH,
    Labelling,
    default_plan,
    label,
)

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
