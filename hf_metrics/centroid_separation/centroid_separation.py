"""`centroid_separation` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Distance of two groups' centroids divided by their pooled root-mean-square radius, averaged over all pairs of groups:
|mu_a - mu_b| / sqrt((SS_a + SS_b) / (n_a + n_b)), where SS is the sum of squared distances of a group's vectors to
their centroid. 0 means the same centre; 1 means that the distance equals the radius of the groups.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of d floats): embeddings.
    references (list of int, length n): group of each embedding, such as diagnosis (high is good) or dataset (low is
        good).
    variant (str): divisor of the distance: pooled_radius (default), mean_distance, per_dimension or unscaled.
Returns:
    dict with `centroid_separation` (float): [0, inf), higher is better if the groups should be separated; NaN for a
        single group or a pair without spread.
Examples:
    >>> import evaluate
    >>> separation = evaluate.load("cardiobench/centroid_separation")
    >>> separation.compute(references=[0, 0, 1, 1], predictions=[[-1.0, 0.0], [1.0, 0.0], [-1.0, 3.0], [1.0, 3.0]])
    {'centroid_separation': 3.0}
"""

_CITATION = """
@article{fisher1936use, title={The use of multiple measurements in taxonomic problems}, author={Fisher, Ronald A.},
journal={Annals of Eugenics}, volume={7}, pages={179--188}, year={1936}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class CentroidSeparation(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": datasets.Sequence(number), "references": number}),
        )

    def _compute(self, predictions, references, variant="pooled_radius"):
        return compute(references, predictions, variant)
