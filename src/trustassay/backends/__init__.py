"""Implementations of the capabilities, one file each, named by URIs."""
