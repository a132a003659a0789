"""The metric ``rag``: did the retriever fail, or what was made of its passages?"""

from trustassay.metrics.rag.metric import Rag

__all__ = ["Rag"]
