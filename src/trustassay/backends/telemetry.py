"""Libraries that report to their makers, imported here alone, with the reporting switched off.

onnxruntime from 1.29 on looks up a host of its maker, and writes a device id and a database of
events below the user's home. Its function ``disable_telemetry_events`` comes too late: the host is
looked up all the same. The variable works, but only before the first import in a process.

transformers and huggingface_hub ask the hub for more than the model that the user named: for a
list of agent programs to put into the ``User-Agent``, and, where a model has pickled weights
alone, for a conversion by another host. Both are off; the model itself is fetched as before.
TRL tells the hub of every training, by the same function of huggingface_hub, which is off with it.
Ray is imported by trustassay-cluster alone, which does the same.
"""

import os
import sys
from typing import Any

ONNXRUNTIME = "ORT_DISABLE_TELEMETRY"
HUB = ("HF_HUB_DISABLE_TELEMETRY", "DISABLE_SAFETENSORS_CONVERSION")


def import_onnxruntime() -> Any:
    """Return the module ``onnxruntime``; raises :class:`ImportError` where it is missing.

    Where other code has imported it before, what it reports at its import cannot be taken back;
    what it would report of our sessions is switched off.
    """
    os.environ[ONNXRUNTIME] = "1"
    is_loaded = "onnxruntime" in sys.modules
    import onnxruntime

    if is_loaded:
        onnxruntime.disable_telemetry_events()
    return onnxruntime


def quiet_hub() -> None:
    """Have transformers and huggingface_hub ask the hub for the named model alone.

    To be called before they are imported; works also where other code has imported them.
    """
    for name in HUB:
        os.environ[name] = "1"
    if constants := sys.modules.get("huggingface_hub.constants"):
        constants.HF_HUB_DISABLE_TELEMETRY = True  # type: ignore[attr-defined]
