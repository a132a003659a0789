"""Reading input: files, folders and objects in the layouts of several tools."""

from trustassay.input.reading import LocatedSample, read_samples
from trustassay.input.records import InputError, InputFault

__all__ = ["InputError", "InputFault", "LocatedSample", "read_samples"]
