"""Processes instead of threads: threads that wait for each other by spinning crawl on a busy machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

from understudy.errors import MissingExtraError


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for linear algebra and for boosted trees."""
    try:
        import sklearn.ensemble  # a limit holds for the libraries that are loaded by then
    except ModuleNotFoundError:
        raise MissingExtraError("scikit-learn", "evaluation") from None
    del sklearn
    with threadpool_limits(1):
        yield


def processes(num_jobs: int, **options: Any) -> Any:
    """Calls on several processes, to which rows are sent through pipes.

    By default large arrays would be files in shared memory or the temporary folder, where a run
    that is killed leaves the real rows behind.
    """
    from sklearn.utils.parallel import Parallel

    return Parallel(n_jobs=num_jobs, max_nbytes=None, **options)
