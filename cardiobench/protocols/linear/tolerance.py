"""How far above its minimum the mean log loss of a fit may stay."""

TOLERANCE = 1e-8
SEARCH_TOLERANCE = 1e-6  # enough to choose a penalty by; scikit-learn's own default stops farther from the minimum
