"""`retrieval_recall` as a module of the evaluate library; the formula is in formula.py."""

import datasets
import evaluate

from .formula import compute

_DESCRIPTION = """
Recall at 1, 5 and 10 of a cross-modal search by cosine similarity. Row i of the queries belongs to row i of the
targets; its rank is 1 plus the number of other targets that are at least as similar. Ties count against the query, so a
model that gives every target the same vector has a recall of 0.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of n lists of d floats): embeddings of the queries.
    references (list of n lists of d floats): embeddings of the targets; row i is the partner of query i.
Returns:
    dict of float: `recall_at_1`, `recall_at_5`, `recall_at_10`, shares of the queries in [0, 1], higher is better;
    `median_rank`, [1, n], lower is better. By chance recall at k is k / n.
Examples:
    >>> import evaluate
    >>> recall = evaluate.load("cardiobench/retrieval_recall")
    >>> result = recall.compute(references=[[1.0, 0.0], [0.0, 1.0]], predictions=[[2.0, 1.0], [3.0, 1.0]])
    >>> result["recall_at_1"], result["median_rank"]
    (0.5, 1.5)
"""

_CITATION = """
@inproceedings{radford2021clip, title={Learning Transferable Visual Models From Natural Language Supervision},
author={Radford, Alec and others}, booktitle={International Conference on Machine Learning}, year={2021}}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class RetrievalRecall(evaluate.Metric):
    """Module of the evaluate library that calls `compute` of the formula."""

    def _info(self):
        number = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {"predictions": datasets.Sequence(number), "references": datasets.Sequence(number)}
            ),
        )

    def _compute(self, predictions, references):
        return compute(references, predictions)
