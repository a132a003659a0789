"""A local page on which people rate answers, and what it stores."""

from trustassay.workflows.annotate.project import AnnotateOptions, Project, open_project

__all__ = ["AnnotateOptions", "Project", "open_project"]
