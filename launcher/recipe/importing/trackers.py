"""Trackers that other tools switch on one by one, or by naming a project: here they are one list."""

from collections.abc import Mapping

from launcher.recipe.importing.draft import MISSING, Draft
from launcher.recipe.importing.table import Nothing
from launcher.recipe.importing.values import is_on, trackers


def settle_trackers(draft: Draft, *, switches: Mapping[str, str], projects: Mapping[str, str]) -> None:
    """Take `switches` (their key: tracker) and `projects` (a key whose name switches its tracker on).

    A project of a tracker that only a switch turns on stands in both: alone it says nothing.
    """
    found: dict[str, str] = {}
    for name, tracker in switches.items():
        key, value = draft.find(name)
        if value is MISSING:
            continue
        if is_on(draft.take(name)):
            found[key] = tracker
        else:
            draft.quiet.append(key)
    for name, tracker in projects.items():
        key, value = draft.find(name)
        if value is MISSING:
            continue
        project = draft.take(name)
        needs_switch = tracker in switches.values()
        if not project or (needs_switch and tracker not in found.values()):
            draft.quiet.append(key)
            continue
        draft.put(key, project, {"tracking.project": str(project)})
        if not needs_switch:
            found[key] = tracker
    if found:
        _one_list(draft, found)


def _one_list(draft: Draft, found: Mapping[str, str]) -> None:
    """With what `report_to` names already."""
    key, _ = draft.find("report_to")
    try:
        named = [each for each in trackers(draft.peek("report_to")) if each != "none"]
        draft.take("report_to")
    except (Nothing, ValueError):  # its row tells
        named = []
    keys = [*([key] if named else ()), *found]
    listed = [*dict.fromkeys([*named, *found.values()])]
    draft.put(" + ".join(keys), ", ".join(listed), {"tracking.report_to": listed})
