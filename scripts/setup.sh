#!/usr/bin/env bash
# Makes .venv with everything that `make demo` and `make test` need. Usage: scripts/setup.sh [PYTHON]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}

echo "setup: creating .venv with $("$python" --version)"
[ -x .venv/bin/python ] || "$python" -m venv .venv
echo "setup: installing pipeline and its pinned dependencies (constraints.txt) into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
