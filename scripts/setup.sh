#!/usr/bin/env bash
# Makes .venv with everything that `make demo` and `make test` need. Usage: scripts/setup.sh [PYTHON]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}

echo "setup: creating .venv with $("$python" --version)"
[ -x .venv/bin/python ] || "$python" -m venv .venv
echo "setup: installing pipeline and its pinned dependencies (constraints.txt) into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[compile,dev,docs]'
# On all processors, which pip does not do. A few packages carry templates that are no Python.
.venv/bin/python -m compileall -q -j 0 .venv/lib >/dev/null || true

# The tests of reports look at their pages in a browser. Without it they fail, nothing else does.
if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing chromium and chromium-driver (apt-get, about 130 MB): the browser that tests use"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null
  else
    echo "setup: no chromium found; for the tests of reports: sudo apt-get install chromium chromium-driver"
  fi
fi

# The tests of the target vulkan run on a Vulkan driver for CPUs. Without it they fail, nothing else does.
if ! ls /usr/share/vulkan/icd.d/*.json >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing mesa-vulkan-drivers and libvulkan1 (apt-get): the CPU Vulkan driver that tests use"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends mesa-vulkan-drivers libvulkan1 >/dev/null
  else
    echo "setup: no Vulkan driver found; for the tests of the target vulkan: sudo apt-get install mesa-vulkan-drivers libvulkan1"
  fi
fi

# The tests of code for AArch64 link it with Debian's cross compiler and run it in QEMU. Without them they fail, nothing
# else does.
if ! command -v qemu-aarch64 >/dev/null || ! command -v aarch64-linux-gnu-gcc >/dev/null; then
  arm="qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross libgomp1-arm64-cross"
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing $arm (apt-get): the emulator and the cross compiler that tests of AArch64 use"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $arm >/dev/null
  else
    echo "setup: no QEMU or cross compiler for AArch64 found; for its tests: sudo apt-get install $arm"
  fi
fi
