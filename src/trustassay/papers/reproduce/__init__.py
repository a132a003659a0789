"""The main tables of five papers, computed again: ``trustassay papers reproduce``."""
