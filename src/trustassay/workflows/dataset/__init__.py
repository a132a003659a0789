"""Data sets of grounded questions: retrieval, gold claims, support labels, chosen documents."""

from trustassay.workflows.dataset.building import BuildOptions, Built, Claims, build
from trustassay.workflows.dataset.retrieving import bm25_retriever

__all__ = ["BuildOptions", "Built", "Claims", "bm25_retriever", "build"]
