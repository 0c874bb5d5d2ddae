"""What figures depend on: what is installed, and what this machine can do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def installed(kind: str, contestant: str, python: str) -> dict[str, Any]:
    """The versions of what a contestant needs, and what of it is missing."""
    command = [python, str(FOLDER / "contestant_process.py"), "versions", kind, contestant]
    try:
        return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{contestant}: {python} does not run: {error}")


def machine(versions: dict[str, str]) -> dict[str, Any]:
    """What figures depend on: the processor, what it can do at most, versions, what else it does, the day."""
    from pipeline.runtime.report.machine_peak import measured_peak

    peak = measured_peak()
    names = [line.partition(":")[2] for line in Path("/proc/cpuinfo").read_text().split("\n") if "model name" in line]
    return {
        "cpu": names[0].strip() if names else "unknown",
        "flops": peak.operations,
        "bytes": peak.bytes,
        "versions": versions,
        "load": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d"),
    }
