"""Start processes that have imported the libraries, which takes longer than most tests, but nothing of this package."""

from multiprocessing import get_context
from multiprocessing.context import ForkServerContext

LIBRARIES = ["datasets", "matplotlib.pyplot", "nibabel", "pydicom", "pytest", "scipy.stats", "sklearn", "timm", "torch"]


def clean_processes() -> ForkServerContext:
    """Return a context whose processes are forked from one that has only imported `LIBRARIES`."""
    context = get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    return context
