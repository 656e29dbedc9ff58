"""Scores of predictions: metrics, intervals, floors, verdicts."""

COMPONENT = "scoring"
VERSION = 7
"""Version of everything that turns predictions into a result except the formulas of the metrics. Unlike `rules` of a
result, it does not outdate published results."""
