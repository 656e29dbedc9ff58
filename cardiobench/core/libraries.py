"""Versions of the libraries that decode recordings or compute with their values."""

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

COMPUTING: Mapping[str, tuple[str, ...]] = {
    "PIL": ("pillow",),
    "cv2": ("opencv-python-headless", "opencv-python"),
    "jax": ("jax",),
    "numpy": ("numpy",),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "open_clip": ("open_clip_torch",),
    "scipy": ("scipy",),
    "sklearn": ("scikit-learn",),
    "tensorflow": ("tensorflow",),
    "timm": ("timm",),
    "tokenizers": ("tokenizers",),
    "torch": ("torch",),
    "torchvision": ("torchvision",),
    "transformers": ("transformers",),
}
"""Library by import name -> possible distribution names."""
DECODERS: Mapping[str, tuple[str, ...]] = {
    "video": ("av", "pillow", "pydicom", "pylibjpeg", "nibabel"),
    "image": ("pillow", "pydicom", "pylibjpeg", "nibabel"),
    "ecg": ("h5py",),
}
"""Media column -> distributions that decode it in worker processes, which this process does not import."""


def library_versions(media: str = "") -> dict[str, str]:
    """Return versions by distribution of the computing libraries that this process has imported, and of a medium's decoders."""
    imported = (names for library, names in COMPUTING.items() if library in sys.modules)
    found = {name: installed_version(name) for names in (*imported, DECODERS.get(media, ())) for name in names}
    return {name: installed for name, installed in sorted(found.items()) if installed}


def merged(sets: Iterable[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return a mapping from library to versions found in several sets, sorted."""
    versions: dict[str, set[str]] = {}
    for one in sets:
        for name, installed in one.items():
            versions.setdefault(name, set()).add(installed)
    return {name: tuple(sorted(found)) for name, found in sorted(versions.items())}


def as_text(versions: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return a mapping from library to versions as text, for stamps."""
    return {name: " and ".join(found) for name, found in versions.items()}


def library_warnings(versions: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return a sentence if the embeddings of one result were computed with several versions of a library, else an empty text."""
    found = [f"{name} {text}" for name, text in as_text(versions).items() if len(versions[name]) > 1]
    return [f"embeddings computed with {', '.join(found)}"] if found else []


@cache
def installed_version(distribution: str) -> str:
    """Return the version of an installed distribution; an empty text if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
