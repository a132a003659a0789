"""Calibration: from the scores of labelled runs to probabilities of being right."""

from trustassay.workflows.calibrate.command import Calibration, calibrate

__all__ = ["Calibration", "calibrate"]
