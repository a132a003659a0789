"""The import path of the README of Trust-Eval; everything is in ``trust_eval``."""

from llama_index.evaluation.trust_eval import *  # noqa: F403
from llama_index.evaluation.trust_eval import __all__  # noqa: F401
