"""Where the folders that are also Hub repositories lie: beside the package in a checkout, inside it in a wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """Folder of `hf_datasets`, `hf_metrics` or `model_cards` that belongs to this very copy of the package."""
    checkout = _PACKAGE.parent / name
    return checkout if checkout.is_dir() else _PACKAGE / f"_{name}"
