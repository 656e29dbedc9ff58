"""Scores of predictions: metrics, intervals, floors, verdicts."""

COMPONENT = "scoring"
VERSION = 8
"""Version of everything that turns predictions into a result except the formulas of the metrics. Unlike `rules` of a
result, it does not outdate published results."""
