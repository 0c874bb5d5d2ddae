"""Two reports side by side: which kernels appeared, went, got faster or slower; the same by line and by module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

#: Times that differ by less are called equal: so much do calls vary by themselves.
_NOISE = 0.05

#: What kernels of two reports are told to be the same by, strictest first.
_KEYS: tuple[Callable[[Mapping[str, Any]], Any], ...] = (
    lambda kernel: (kernel["name"], kernel["words"], kernel["lines"], kernel["operations"]),
    lambda kernel: (kernel["words"], kernel["lines"], kernel["operations"]),
    lambda kernel: ([word for word in kernel["words"] if word != "cast"], kernel["lines"], kernel["operations"]),
    lambda kernel: (kernel["name"], kernel["words"], kernel["lines"]),
    lambda kernel: (kernel["name"], kernel["words"]),
)


def compare(before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, str]) -> dict[str, Any]:
    """What is different, as JSON values.

    Args:
        before, after: the parts `main` of two reports, see `pipeline.report.page.read`.
        names: what to call them.
    """
    return {
        "names": names,
        "sides": [_side(before), _side(after)],
        "measured": bool(before["profile"] and after["profile"]),
        "noise": _NOISE,
        "kernels": [
            _row(first, second, before, after) for first, second in _pairs(before["kernels"], after["kernels"])
        ],
        "lines": _by(before, after, lambda report, site: site["source"] or "unknown line"),
        "modules": _by(before, after, _module),
    }


def _side(report: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of one report."""
    summary, footprint, profile = report["summary"], report["memory"]["footprint"] or {}, report["profile"]
    imported = report["graphs"]["imported"]["nodes"]
    return {
        "title": summary["title"],
        "target": summary["target"],
        "options": summary["options"],
        "made": summary["made"],
        "seconds": profile and profile["seconds"],
        "kernels": len(report["kernels"]),
        "calls": sum(kernel["calls"] for kernel in report["kernels"]),
        "ops": sum(node["kind"] == "op" for node in imported) or None,
        "workspace": footprint.get("workspace"),
        "prepared": footprint.get("prepared"),
        "weights": footprint.get("weights"),
        "code": footprint.get("code"),
        "passes": sum(entry["seconds"] for entry in report["passes"]) or None,
    }


def _pairs(
    before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    """Kernels that are the same, then those of one side alone."""
    left, right = list(before), list(after)
    for key in _KEYS:
        for kernel in list(left):
            same = next((other for other in right if key(other) == key(kernel)), None)
            if same is not None:
                left.remove(kernel)
                right.remove(same)
                yield kernel, same
    yield from ((kernel, None) for kernel in left)
    yield from ((None, kernel) for kernel in right)


def _row(
    first: dict[str, Any] | None, second: dict[str, Any] | None, before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any]:
    known = second or first
    assert known is not None
    times = (_seconds(before, first), _seconds(after, second))
    single = (_seconds(before, first, single=True), _seconds(after, second, single=True))
    return {
        "name": known["name"],
        "was": first["name"] if first is not None and first["name"] != known["name"] else None,
        "kind": known["kind"],
        "source": (known["lines"] or [""])[0],
        "places": [kernel and kernel["calls"] for kernel in (first, second)],
        "seconds": times,
        "change": "appeared" if first is None else "went" if second is None else _change(*single),
    }


def _seconds(report: Mapping[str, Any], kernel: Mapping[str, Any] | None, *, single: bool = False) -> float | None:
    """What all runs of a kernel in a call take, or a single one; None where nothing was measured or nothing ran."""
    if kernel is None or report["profile"] is None:
        return None
    found = [site for site in report["profile"]["sites"] if site["name"] == kernel["name"] and site["runs"]]
    runs = sum(site["runs"] for site in found) if single else 1
    return sum(site["seconds"] for site in found) / runs if found else None


def _change(before: float | None, after: float | None) -> str:
    if before is None or after is None or abs(after - before) <= _NOISE * before:
        return "same"
    return "slower" if after > before else "faster"


def _by(
    before: Mapping[str, Any], after: Mapping[str, Any], key: Callable[[Mapping[str, Any], Mapping[str, Any]], str]
) -> list[dict[str, Any]]:
    """The time of both by what `key` gives for each place that was timed."""
    totals: dict[str, list[float]] = {}
    for number, report in enumerate((before, after)):
        for site in report["profile"]["sites"] if report["profile"] else ():
            totals.setdefault(key(report, site), [0.0, 0.0])[number] += site["seconds"]
    return [{"name": name, "seconds": times, "change": _change(*times)} for name, times in totals.items()]


def _module(report: Mapping[str, Any], site: Mapping[str, Any]) -> str:
    node = next((node for node in report["graphs"]["compiled"]["nodes"] if node["id"] == site["node"]), None)
    return "copies, and what is in no one place" if node is None else node["module"] or "the model itself"
