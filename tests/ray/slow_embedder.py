"""An embedder that takes its time and notes in a file what it was asked, for workers on Ray."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.core.capabilities import BatchLimits

LOG = "TRUSTASSAY_TEST_ASKED"
"""The environment variable that names the file."""


class Slow:
    name = "slow"
    limits = BatchLimits(items=5)

    def vectors(self, texts: Sequence[str]) -> Any:
        with Path(os.environ[LOG]).open("a") as log:
            log.writelines(f"{text}\n" for text in texts)
        time.sleep(0.5)
        drawn = [np.random.default_rng(zlib.crc32(text.encode())).normal(size=8) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in drawn], dtype=np.float32)


embedder = Slow()
