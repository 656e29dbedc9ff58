"""CardioBench: frozen cardiology foundation models on echocardiography and ECG; no score stands alone."""

from importlib import import_module

_LAZY = {
    "BaseEncoder": "cardiobench.models.custom",
    "evaluate": "cardiobench.api",
    "score": "cardiobench.api",
    "compare": "cardiobench.api",
    "load_dataset": "cardiobench.api",
    "load_references": "cardiobench.api",
    "load_metric": "cardiobench.metrics.load",
    "list_metrics": "cardiobench.metrics.load",
    "list_datasets": "cardiobench.data.catalog",
    "list_tasks": "cardiobench.data.catalog",
    "list_models": "cardiobench.models.cards",
    "list_protocols": "cardiobench.protocols",
}

__all__ = list(_LAZY)


def __getattr__(name: str):
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("cardiobench")
    raise AttributeError(f"module 'cardiobench' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
