"""Reading input: files, folders and objects in the layouts of several tools."""

from trustassay.data.reading import Located, read_samples
from trustassay.data.records import Fault, InputError

__all__ = ["Fault", "InputError", "Located", "read_samples"]
