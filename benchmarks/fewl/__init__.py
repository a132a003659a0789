"""FEWL's forms side by side on data with labels: ``docs/fewl-figures.md`` says what came of it."""
