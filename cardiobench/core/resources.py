"""Paths of the folders that are also Hub repositories: next to the package in a checkout, inside it in a wheel."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def folder(name: str) -> Path:
    """Return the folder `hf_datasets`, `hf_metrics` or `model_cards` of this copy of the package."""
    checkout = PACKAGE.parent / name
    return checkout if checkout.is_dir() else PACKAGE / f"_{name}"
