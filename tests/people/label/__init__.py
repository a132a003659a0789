"""Tests of trustassay.people.label."""
