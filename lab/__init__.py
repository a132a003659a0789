"""Measurements and training: nothing here ships."""
