"""Dataset specs, rows and recordings. Heavy libraries are imported on first use."""

from importlib import import_module

from cardiobench.data.spec import AGE_GROUPS, SEX_GROUPS, VIEWS, DatasetSpec, Group, PromptGrid, Task

_LAZY = {
    "CardioBuilder": "cardiobench.data.builder",
    "Clip": "cardiobench.data.media",
    "Ecg": "cardiobench.data.media",
    "FrameSampling": "cardiobench.data.media",
    "decode": "cardiobench.data.media",
    "read_clip": "cardiobench.data.media",
    "read_ecg": "cardiobench.data.media",
    "OpenDataset": "cardiobench.data.dataset",
    "open_dataset": "cardiobench.data.open",
}

__all__ = ["AGE_GROUPS", "SEX_GROUPS", "VIEWS", "DatasetSpec", "Group", "PromptGrid", "Task", *_LAZY]


def __getattr__(name: str):
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'cardiobench.data' has no attribute '{name}'")
