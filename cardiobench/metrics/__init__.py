"""Metrics: the formulas, and the facts of each of their numbers."""
