"""Cells with several labels, re-exported for builders; `cardiobench.tasks.labels` has all functions on labels."""

from cardiobench.tasks.labels import label_set, split_labels

__all__ = ["label_set", "split_labels"]
