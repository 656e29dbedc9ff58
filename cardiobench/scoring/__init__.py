"""Scores of predictions: metrics, intervals, floors, verdicts."""

COMPONENT = "scoring"
VERSION = 5
"""Covers all that turns predictions into a result but the formulas of the metrics. Unlike `rules` of a result, it does not
outdate published results."""
