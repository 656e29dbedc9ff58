"""Predictions of fully grown trees at several depths: the node of a row at depth D is its leaf in a tree cut there."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def largest_depth(depths: Sequence[int | None]) -> int | None:
    """Return the largest depth, where None, a fully grown tree, is the largest of all."""
    return max((depth for depth in depths if depth is not None), default=None) if None not in depths else None


def predict_at_depths(trees: Sequence[Any], features: np.ndarray, depths: Sequence[int | None]) -> list[np.ndarray]:
    """Return the class shares of each row's node at each depth. Each has the shape (n, trees, classes).

    A tree cut at a depth has the same distribution as a tree grown to that depth: scikit-learn grows depth first, so
    only random choices between equally good splits, or of features, are made in another order.

    Args:
        trees: `tree_` attributes of scikit-learn trees.
        features: Float32, (n, d), preprocessed as in training.
        depths: Depths at which the trees are cut; None for fully grown trees.
    """
    starts = np.r_[0, np.cumsum([tree.node_count for tree in trees])]
    left, right = (
        np.concatenate(
            [np.where(child >= 0, child + start, -1) for child, start in zip(children, starts, strict=False)]
        )
        for children in ([t.children_left for t in trees], [t.children_right for t in trees])
    )
    column = np.concatenate([tree.feature for tree in trees])
    threshold = np.concatenate([tree.threshold for tree in trees])
    shares = np.concatenate([tree.value[:, 0, :] for tree in trees])
    shares = shares / shares.sum(axis=1, keepdims=True)
    nodes = np.broadcast_to(starts[:-1], (len(features), len(trees))).copy()
    at = dict(_descend(nodes, features, left, right, column, threshold, {d for d in depths if d is not None}))
    return [shares[at.get(depth, at[None])] for depth in depths]


def _descend(
    nodes: np.ndarray,
    features: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    column: np.ndarray,
    threshold: np.ndarray,
    depths: set[int],
) -> Iterator[tuple[int | None, np.ndarray]]:
    """Yield the nodes of all rows in all trees, (n, trees), at these depths, and the leaves for None."""
    depth, row = 0, np.arange(len(features))[:, None]
    while True:
        if depth in depths:
            yield depth, nodes.copy()
        inner = left[nodes] >= 0
        if not inner.any():
            yield None, nodes
            return
        goes_left = features[row, column[nodes]] <= threshold[nodes]
        nodes = np.where(inner, np.where(goes_left, left[nodes], right[nodes]), nodes)
        depth += 1
