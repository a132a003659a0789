"""Imports libraries that report to their makers, with the reporting switched off.

onnxruntime from 1.29 on looks up a host of its maker, and writes a device id and a database of
events below the user's home. Its function ``disable_telemetry_events`` comes too late: the host is
looked up all the same. The variable works, but only before the first import in a process. openvino
sends an event to a service of Google at each import, with an id that it writes below the user's
home.

transformers and huggingface_hub ask the hub for more than the model that the user named: for a list
of agent programs to put into the ``User-Agent``, and, if a model has only pickled weights, for a
conversion by another host. Both are switched off; the model itself is downloaded as before. TRL
reports every training to the hub by the same function of huggingface_hub, which is off as well. Ray
is only imported by ``ray/cluster.py``, which does the same for it.
"""

import os
import sys
from typing import Any

ONNXRUNTIME = "ORT_DISABLE_TELEMETRY"
HUB = ("HF_HUB_DISABLE_TELEMETRY", "DISABLE_SAFETENSORS_CONVERSION")


def import_onnxruntime() -> Any:
    """Return the module ``onnxruntime``; raises :class:`ImportError` if it is missing.

    If other code has imported it before, the report of that import cannot be taken back; reports
    about our own sessions are switched off.
    """
    os.environ[ONNXRUNTIME] = "1"
    is_loaded = "onnxruntime" in sys.modules
    import onnxruntime

    if is_loaded:
        onnxruntime.disable_telemetry_events()
    return onnxruntime


def import_openvino() -> tuple[Any, Any]:
    """Return the modules ``openvino`` and ``openvino_genai``.

    openvino reports every import, by a package of its own that it does without if it is missing. If
    other code has imported openvino before, its report cannot be taken back.

    Raises:
        ImportError: one of them is missing.
    """
    # ``None`` makes Python treat the package as missing.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino
    import openvino_genai

    return openvino, openvino_genai


def quiet_hub() -> None:
    """Make transformers and huggingface_hub ask the hub only for the named model.

    To be called before they are imported; it also works if other code has imported them.
    """
    for name in HUB:
        os.environ[name] = "1"
    # Once imported, the library no longer reads the variables.
    if constants := sys.modules.get("huggingface_hub.constants"):
        constants.HF_HUB_DISABLE_TELEMETRY = True  # type: ignore[attr-defined]
