"""Experiments of papers as commands: models are asked once, and every variant is scored."""
