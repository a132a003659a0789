"""Supervised fine-tuning of a local model with TRL."""

from trustassay.workflows.tune.data import Conversation, read_conversations
from trustassay.workflows.tune.training import Tuned, TuneOptions, tune

__all__ = ["Conversation", "TuneOptions", "Tuned", "read_conversations", "tune"]
