"""Statistics as pure functions on arrays."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Bools = NDArray[np.bool_]
