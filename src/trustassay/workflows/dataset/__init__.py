"""Data sets of grounded questions: retrieval, gold claims, support labels, chosen documents."""

from trustassay.retrieval.bm25 import bm25_retriever
from trustassay.workflows.dataset.building import BuildOptions, Built, Claims, build

__all__ = ["BuildOptions", "Built", "Claims", "bm25_retriever", "build"]
