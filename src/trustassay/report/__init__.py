"""The report: one HTML file that shows a run's figures and the evidence behind every answer."""

