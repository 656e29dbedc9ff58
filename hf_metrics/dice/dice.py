"""`dice` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Dice coefficient of segmentations: 2 |A and B| / (|A| + |B|) of the true and the predicted pixels of a structure,
averaged over frames, then over structures. A structure in neither mask of a frame is left out for that frame; a
structure in only one mask counts as 0. 1 is perfect.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n masks, H lists of W ints each): predicted labels, 0 background, 1 to K the structures.
    references (list of n masks): true labels of the same frames.
    structures (int, optional): number of structures, K; default: the highest label in references and predictions.
Returns:
    dict with `dice` (float): mean over structures, in [0, 1], higher is better; `dice_1` to `dice_K` (float): value of
        each structure, NaN if no frame has it.
Examples:
    >>> import evaluate
    >>> dice = evaluate.load("cardiobench/dice")
    >>> dice.compute(references=[[[0, 1, 1, 0]]], predictions=[[[0, 1, 0, 0]]])
    {'dice': 0.6666666666666666, 'dice_1': 0.6666666666666666}
"""

_CITATION = """
@article{dice1945measures, title={Measures of the Amount of Ecologic Association Between Species}, author={Dice, Lee
R.}, journal={Ecology}, volume={26}, pages={297--302}, year={1945}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Dice(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        mask = datasets.Sequence(datasets.Sequence(datasets.Value("int64")))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": mask, "references": mask}),
        )

    def _compute(self, predictions, references, structures=None):
        return compute(references, predictions, structures=structures)
