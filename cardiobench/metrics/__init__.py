"""Metrics: the formulas, and what each of their numbers is."""
