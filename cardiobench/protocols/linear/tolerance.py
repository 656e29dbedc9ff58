"""Tolerances of a fit: the excess of its mean log loss over the minimum."""

TOLERANCE = 1e-8
SEARCH_TOLERANCE = 1e-6  # enough to choose a penalty by; scikit-learn's own default stops farther from the minimum
