"""`hausdorff95` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
95 % Hausdorff distance between the outlines of a true and a predicted structure: the larger of the two directed 95th
percentiles of the distance from a pixel of one outline to the other outline, in mm according to the pixel size,
averaged over frames, then over structures. 0 is perfect. A structure in only one mask counts as the diagonal of the
image.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n masks, H lists of W ints each): predicted labels, 0 background, 1 to K the structures.
    references (list of n masks): true labels of the same frames.
    spacing (float, pair or list of n pairs, optional): height and width of a pixel in mm; 1 gives pixels.
    structures (int, optional): number of structures, K; default: the highest label in references and predictions.
Returns:
    dict with `hausdorff95` (float): mean over structures in mm, lower is better; `hausdorff95_1` to `hausdorff95_K`
        (float): value of each structure, NaN if no frame has it.
Examples:
    >>> import evaluate
    >>> hausdorff95 = evaluate.load("cardiobench/hausdorff95")
    >>> hausdorff95.compute(references=[[[1, 0, 0, 0]]], predictions=[[[0, 0, 0, 1]]], spacing=0.5)
    {'hausdorff95': 1.5, 'hausdorff95_1': 1.5}
"""

_CITATION = """
@article{huttenlocher1993comparing, title={Comparing Images Using the Hausdorff Distance}, author={Huttenlocher, Daniel
P. and Klanderman, Gregory A. and Rucklidge, William J.}, journal={IEEE Transactions on Pattern Analysis and Machine
Intelligence}, volume={15}, pages={850--863}, year={1993}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Hausdorff95(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        mask = datasets.Sequence(datasets.Sequence(datasets.Value("int64")))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": mask, "references": mask}),
        )

    def _compute(self, predictions, references, spacing=1.0, structures=None):
        return compute(references, predictions, spacing=spacing, structures=structures)
