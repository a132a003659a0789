"""People: rating, labels, studies, calibration, agreement and audits of judges."""
