"""Reading input: files, folders and objects in the layouts of several tools."""

from trustassay.data.reading import Fault, InputError, Located, read_samples

__all__ = ["Fault", "InputError", "Located", "read_samples"]
