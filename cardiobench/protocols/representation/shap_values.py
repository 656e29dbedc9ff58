"""SHAP values of each of the five classifiers, by the method that is exact for it, or close and affordable.

* XGBoost: the booster's own TreeSHAP (`pred_contribs`), of the logit.
* logistic regression: closed form, (x - mean of the background) x coefficient, of the logit.
* decision tree, random forest: `shap.TreeExplainer`, of the probability.
* MLP: `shap.DeepExplainer` on 100 records of the background, of the logit. KernelExplainer is not used: by default it
  keeps ten features, and a ranking of fifty of hundreds is then noise.
"""

from functools import singledispatch
from typing import Any

import numpy as np

from cardiobench.core.errors import MissingExtra
from cardiobench.protocols.cross_validation.classifiers.forest import Forest
from cardiobench.protocols.cross_validation.classifiers.logistic import Logistic
from cardiobench.protocols.cross_validation.classifiers.mlp import Network
from cardiobench.protocols.cross_validation.classifiers.tree import Tree
from cardiobench.protocols.cross_validation.classifiers.xgboost import Boosted

BACKGROUND = 100  # records that stand for "feature absent" in the MLP's explanation


def importance(model: Any, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    """|SHAP| of each feature for each record, mean over the model's outputs: (n, d).

    Args:
        model: a trained classifier (`cross_validation.classifiers`).
        features: records to explain, (n, d).
        background: records that the model was trained on, (m, d).
    """
    return np.abs(shap_values(model, features, background)).mean(axis=2)


@singledispatch
def shap_values(model: Any, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    """SHAP values (n, d, outputs); one output, of the positive class, where there are two classes."""
    raise TypeError(f"no SHAP values for a {type(model).__name__}")


@shap_values.register
def _(model: Boosted, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    import xgboost

    data = xgboost.DMatrix(features[:, model.kept].astype(np.float32), nthread=1)
    given = model.booster.predict(data, pred_contribs=True, strict_shape=True)[:, :, :-1]  # the last one is the offset
    values = np.zeros((len(features), model.count, given.shape[1]))
    values[:, model.kept] = given.transpose(0, 2, 1)
    return values


@shap_values.register
def _(model: Logistic, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    away = features - background.mean(axis=0)
    return away[:, :, None] * model.coefficients.T[None]


@shap_values.register
def _(model: Tree, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    given = _trees(model.model, features[:, model.kept])
    values = np.zeros((len(features), model.count, given.shape[2]))
    values[:, model.kept] = given
    return values


@shap_values.register
def _(model: Forest, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    return _trees(model.model, features)


@shap_values.register
def _(model: Network, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    import torch

    hidden, outputs = model.last.shape
    # Explained at the scale of the background, where float32 is precise; scaling a feature leaves its SHAP value alone.
    scale = np.maximum(np.abs(background).max(axis=0), 1e-12)
    net = torch.nn.Sequential(
        torch.nn.Linear(len(model.first), hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, outputs)
    )
    with torch.no_grad():
        for part, value in zip(
            net.parameters(),
            ((model.first * scale[:, None]).T, model.first_bias, model.last.T, model.last_bias),
            strict=True,
        ):
            part.copy_(torch.from_numpy(value.astype(np.float32)))
    few = background[np.linspace(0, len(background) - 1, min(BACKGROUND, len(background))).astype(int)]
    given = [torch.from_numpy((part / scale).astype(np.float32)) for part in (few, features)]
    values = _shap().DeepExplainer(net, given[0]).shap_values(given[1], check_additivity=False)
    return np.asarray(values, dtype=np.float64).reshape(len(features), len(model.first), outputs)


def _trees(model, features: np.ndarray) -> np.ndarray:
    values = _shap().TreeExplainer(model).shap_values(features.astype(np.float32))
    return values[:, :, 1:] if values.shape[2] == 2 else values


def _shap():
    try:
        import shap
    except ImportError:
        raise MissingExtra("SHAP values", "analysis", "shap") from None
    return shap
