"""Questions that a release answers for ever after, at no further privacy cost."""

from understudy.queries.answers import Answer, Estimate
from understudy.queries.ask import Asker, ask
from understudy.queries.catalogue import Askable, what_can_be_asked
from understudy.queries.expectations import expectation
from understudy.queries.grammar import CannotTellError, QueryError
from understudy.queries.points import Points, PushedForward, gaussian

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
