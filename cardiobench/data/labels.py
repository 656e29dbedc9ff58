"""Cells of several labels, for builders; the module of the tasks has everything on labels."""

from cardiobench.tasks.labels import label_set, split_labels

__all__ = ["label_set", "split_labels"]
