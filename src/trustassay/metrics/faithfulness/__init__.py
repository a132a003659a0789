"""The metric ``faithfulness``: is every sentence of an answer in the passages it was made from?"""

from trustassay.metrics.faithfulness.metric import Faithfulness

__all__ = ["Faithfulness"]
