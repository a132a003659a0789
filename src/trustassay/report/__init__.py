"""The report: one HTML file that shows a run's figures and the evidence behind every answer."""

from trustassay.report.chances import AnswerChance, ChancesTold
from trustassay.report.choice import Choice, Selection, finding_of
from trustassay.report.figures import Histogram
from trustassay.report.groups import Group, Groups, Name
from trustassay.report.look import Line, Looked, lines_of, problem_of
from trustassay.report.page import ReportMetric, ReportRun, ReportSample, write_page
from trustassay.report.ratings import AnswerRatings, RaterSaid, RatingsTold

__all__ = [
    "AnswerChance",
    "AnswerRatings",
    "ChancesTold",
    "Choice",
    "Group",
    "Groups",
    "Histogram",
    "Line",
    "Looked",
    "Name",
    "RaterSaid",
    "RatingsTold",
    "ReportMetric",
    "ReportRun",
    "ReportSample",
    "Selection",
    "finding_of",
    "lines_of",
    "problem_of",
    "write_page",
]
