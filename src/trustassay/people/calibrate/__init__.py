"""Calibration: from the scores of labelled runs to probabilities of being right."""
