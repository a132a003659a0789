"""Training of the small models that ship with trustassay; no part of the wheel."""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before onnxruntime is imported; it reports otherwise
