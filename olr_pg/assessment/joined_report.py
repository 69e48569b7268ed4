"""Joins the assessments of several containers: each object's name includes its container."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from olr_pg.assessment.report import Report


def join_reports(reports: Mapping[str, Report]) -> Report:
    """Join the assessments of a source's containers. If there is only one, return it unchanged.

    The redo is that of the whole database, so it is the same in each report.

    Args:
        reports: the report of each container by the container's name, in the order of the
            containers.
    """
    first = next(iter(reports.values()))
    if len(reports) == 1:
        return first
    told = {name: _named(name, one) for name, one in reports.items()}.values()
    return first._replace(
        owners=[owner for one in told for owner in one.owners],
        items=[item for one in told for item in one.items],
        tables=[table for one in told for table in one.tables],
        others=[other for one in told for other in one.others],
        unread=[view for one in told for view in one.unread],
        redo=next((one.redo for one in told if one.redo), ()),
    )


def _named(container: str, report: Report) -> Report:
    def told(name: str) -> str:
        return f"{container}.{name}"

    return report._replace(
        owners=[told(owner) for owner in report.owners],
        items=[item._replace(name=told(item.name)) for item in report.items],
        tables=[table._replace(name=told(table.name)) for table in report.tables],
        others=[other.model_copy(update={"owner": told(other.owner)}) for other in report.others],
        unread=[f"{view} in {container}" for view in report.unread],
    )
