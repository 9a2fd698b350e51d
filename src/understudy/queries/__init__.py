"""Questions that a release answers for ever after, at no further privacy cost."""

from understudy.queries.answers import Answer, Estimate
from understudy.queries.ask import Asker, Catalogue, ask, catalogue
from understudy.queries.expectations import expectation
from understudy.queries.points import Points, PushedForward, gaussian
from understudy.queries.tokens import CannotTellError, QueryError

__all__ = [
    "Answer",
    "Asker",
    "CannotTellError",
    "Catalogue",
    "Estimate",
    "Points",
    "PushedForward",
    "QueryError",
    "ask",
    "catalogue",
    "expectation",
    "gaussian",
]
