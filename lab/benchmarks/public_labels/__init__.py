"""Compares every metric that applies with the labels of eight public sets that others wrote."""
