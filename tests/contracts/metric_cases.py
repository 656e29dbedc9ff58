"""Typical input of every metric, and invalid variants of it."""

import numpy as np

from cardiobench.testing.metric import bad_inputs, spoiled

_rng = np.random.default_rng(0)
_n = 240  # The number of values is large enough that some are near each threshold of a formula.
_values = np.round(_rng.normal(55, 10, _n), 1)
_answers = np.round(_values + _rng.normal(0, 5, _n), 1)
_labels = _rng.integers(0, 3, _n)
_guesses = np.where(_rng.random(_n) < 0.6, _labels, _rng.integers(0, 3, _n))
_probabilities = _rng.dirichlet(np.ones(3), _n)
_halves = _rng.dirichlet(np.ones(2), _n)
_vectors = _rng.normal(size=(_n, 6)) + 1.5 * np.eye(6)[_labels]
_others = _vectors + _rng.normal(size=(_n, 6))
_texts = np.linspace(0, 1, 21)[:, None] * _rng.normal(size=6) + _rng.normal(size=6)

_masks = _rng.integers(0, 3, (6, 9, 8))
_points = _rng.uniform(0, 100, (60, 4, 2))
_errors = _rng.normal(0, 12, _points.shape)

NUMBERS = {"references": _values, "predictions": _answers}
CLASSES = {"references": _labels, "predictions": _guesses}
VECTORS = {"references": _labels, "predictions": _vectors}
PAIRS = {"references": _vectors, "predictions": _others}

_several = (_rng.random((_n, 3)) < (0.5, 0.3, 0.2)).astype(float)

CASES = {
    "mae": NUMBERS,
    "ejection_fraction_report": NUMBERS,
    "calibration_report": {"references": _labels % 2, "predictions": _halves},
    "regression_report": {**NUMBERS, "value_range": 60.0},
    "subgroup_gap": {**NUMBERS, "groups": np.array(["F", "M"] * (_n // 2))},
    "f1_macro": CLASSES,
    "ari": CLASSES,
    "auroc_macro": {"references": _several, "predictions": np.round(_several + _rng.normal(size=_several.shape), 1)},
    "multilabel_f1": {
        "references": _several,
        "predictions": np.where(np.arange(_n)[:, None] % 4, _several, 1 - _several),
    },
    "classification_report": {"references": _labels, "predictions": _probabilities},
    "knn_agreement": VECTORS,
    "centroid_separation": VECTORS,
    "silhouette": VECTORS,
    "linear_cka": PAIRS,
    "retrieval_recall": PAIRS,
    "text_axis_pearson": {"references": _values, "predictions": _vectors, "text_embeddings": _texts.tolist()},
    "shap_overlap": {"importances": _rng.gamma(1, size=(3, 160))},
    "dice": {"references": _masks, "predictions": np.roll(_masks, 1, axis=2)},
    "hausdorff95": {"references": _masks, "predictions": np.roll(_masks, 1, axis=2), "spacing": 0.5},
    "landmark_error": {"references": _points, "predictions": _points + _errors, "spacing": [0.5, 0.25]},
}

BAD = {name: bad_inputs(case) for name, case in CASES.items()}
BAD["f1_macro"]["probability"] = BAD["ari"]["probability"] = {"predictions": spoiled(_guesses, 0.7)}
for _name in ("auroc_macro", "multilabel_f1"):
    for _unmeasured in ("NaN in references", "None in references"):
        BAD[_name].pop(_unmeasured)
    BAD[_name] |= {
        "share": {"references": spoiled(_several, 0.7)},
        "other classes": {"predictions": CASES[_name]["predictions"][:, 1:]},
        "average": {"average": "micro"},
    }
BAD["multilabel_f1"]["probability"] = {"predictions": spoiled(_several, 0.7)}
BAD["classification_report"] |= {
    "not summing to 1": {"predictions": _probabilities * 0.9},
    "negative": {"predictions": _probabilities - 0.5},
    "label beyond the classes": {"references": spoiled(_labels, 3)},
    "negative label": {"references": spoiled(_labels, -1)},
    "other length": {"probabilities": _probabilities[1:], "predictions": _guesses},
}
BAD["calibration_report"] |= {
    "not summing to 1": {"predictions": _halves * 0.9},
    "negative": {"predictions": _halves - 0.5},
    "label beyond the classes": {"references": spoiled(_labels % 2, 2)},
    "negative label": {"references": spoiled(_labels % 2, -1)},
}
BAD["regression_report"]["range"] = {"value_range": 0.0}
BAD["subgroup_gap"] |= {
    "unknown metric": {"metric": "auroc"},
    "row without group": {"groups": [None, *["F"] * (_n - 1)]},
    "NaN as group": {"groups": [np.nan, *["F"] * (_n - 1)]},
    "fewer groups": {"groups": ["F"] * (_n - 1)},
    "fewer patients": {"patients": ["p"] * (_n - 1)},
    "codes": {"metric": "f1_macro"},
}
BAD["knn_agreement"] |= {"k": {"k": _n}, "no k": {"k": 0}, "metric": {"metric": "l1"}}
BAD["silhouette"]["metric"] = {"metric": "l1"}
BAD["knn_agreement"]["zero"] = {"predictions": [[0.0] * 6, *_vectors.tolist()[1:]], "metric": "cosine"}
BAD["retrieval_recall"] |= {
    "zero": {"predictions": [[0.0] * 6, *_others.tolist()[1:]]},
    "other width": {"predictions": _others[:, 1:]},
}
BAD["text_axis_pearson"] |= {
    "other width": {"predictions": _vectors[:, 1:]},
    "fewer numbers": {"text_values": [1.0, 2.0]},
    "zero text": {"text_embeddings": [[0.0] * 6, *_texts.tolist()[1:]]},
}
BAD["dice"] |= {"label beyond the structures": {"structures": 1}, "other size": {"predictions": _masks[:, 1:]}}
BAD["hausdorff95"] |= {
    "no spacing": {"spacing": 0},
    "endless": {"spacing": [1, np.inf]},
    "pairs": {"spacing": [[1, 1]] * 3},
}
BAD["landmark_error"] |= {"no spacing": {"spacing": [0, 1]}, "fewer points": {"predictions": _points[:, 1:]}}
BAD["shap_overlap"] |= {
    "one dataset": {"importances": [[0.1, 0.2]]},
    "signed": {"importances": -CASES["shap_overlap"]["importances"]},
    "no ranking": {"importances": [[0, 0, 1], [0, 1, 2]], "rankings": True},
}
