"""Runs drivers that are to fail."""

from __future__ import annotations

import re


def fails(capsys, driver, *argv):
    """Runs a driver that is to fail; returns the one line that it says."""
    try:
        code = driver.main(list(map(str, argv)))
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert code == 1
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert re.match(r"pipeline-(compile|run): error: ", said.err)
    return said.err
