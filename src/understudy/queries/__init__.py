"""Questions that a release answers for ever after, at no further privacy cost."""

from understudy.queries.answers import Answer, Estimate
from understudy.queries.ask import Asker, ask
from understudy.queries.askable import Askable, what_can_be_asked
from understudy.queries.errors import CannotTellError, QueryError
from understudy.queries.expectations import expectation
from understudy.queries.from_points import Points
from understudy.queries.pushed import PushedForward, gaussian

__all__ = [
    "Answer",
    "Askable",
    "Asker",
    "CannotTellError",
    "Estimate",
    "Points",
    "PushedForward",
    "QueryError",
    "ask",
    "expectation",
    "gaussian",
    "what_can_be_asked",
]
