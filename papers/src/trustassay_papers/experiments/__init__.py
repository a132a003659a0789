"""Experiments of papers as commands: what is asked is asked once, and every variant is scored."""
