"""The templates of both reports. Every word that comes from a table or schema is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

from understudy.reports.charts import decimal, percent, place, whole


def render(template: str, values: dict[str, Any]) -> str:
    """A page as one piece of HTML that fetches nothing."""
    return str(_environment().get_template(template).render(values))


@cache
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("understudy.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(place=place, decimal=decimal, percent=percent, whole=whole)
    return environment
