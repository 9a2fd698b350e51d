"""Queries on a release, for ever at no further privacy cost."""

from understudy.queries.answers import Answer, Estimate
from understudy.queries.ask import Asker, ask
from understudy.queries.errors import QueryError

__all__ = ["Answer", "Asker", "Estimate", "QueryError", "ask"]
