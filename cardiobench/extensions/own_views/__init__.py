"""Predict studies from images selected by the model's own view predictions."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(conditions={"own_views": "cardiobench.extensions.own_views.condition"})
