"""Compute SHAP values for each of the five classifiers.

Methods are exact where possible:

* XGBoost: TreeSHAP of the booster (`pred_contribs`), for the logit.
* Logistic regression: closed form (x - background mean) x coefficient, for the logit.
* Decision tree and random forest: `shap.TreeExplainer`, for the probability.
* MLP: `shap.DeepExplainer` with 100 background records, for the logit. KernelExplainer keeps ten features by default,
so a ranking of fifty features out of hundreds would be noise.
"""

from functools import singledispatch
from types import ModuleType
from typing import Any

import numpy as np

from cardiobench.core.errors import MissingExtra
from cardiobench.protocols.grid_search.classifiers.forest import Forest
from cardiobench.protocols.grid_search.classifiers.logistic import Logistic
from cardiobench.protocols.grid_search.classifiers.mlp import Network
from cardiobench.protocols.grid_search.classifiers.tree import Tree
from cardiobench.protocols.grid_search.classifiers.xgboost import Boosted

BACKGROUND = 100  # Number of background records, which represent absent features for the MLP.


def importance(model: Any, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Return mean |SHAP| over model outputs for each record and feature. The shape is (n, d).

    Args:
        model: Fitted classifier from `cross_validation.classifiers`.
        features: Records to explain, (n, d).
        background: Training records of the model, (m, d).
    """
    return np.abs(shap_values(model, features, background)).mean(axis=2)


@singledispatch
def shap_values(model: Any, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Return SHAP values (n, d, outputs), with one output for the positive class in binary tasks."""
    raise TypeError(f"no SHAP values for a {type(model).__name__}")


@shap_values.register
def _(model: Boosted, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    import xgboost

    data = xgboost.DMatrix(features[:, model.selected].astype(np.float32), nthread=1)
    # The last column is the offset.
    given = model.booster.predict(data, pred_contribs=True, strict_shape=True)[:, :, :-1]
    values = np.zeros((len(features), model.n_features, given.shape[1]))
    values[:, model.selected] = given.transpose(0, 2, 1)
    return values


@shap_values.register
def _(model: Logistic, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    away = features - background.mean(axis=0)
    return away[:, :, None] * model.coefficients.T[None]


@shap_values.register
def _(model: Tree, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    given = _trees(model.model, features[:, model.selected])
    values = np.zeros((len(features), model.n_features, given.shape[2]))
    values[:, model.selected] = given
    return values


@shap_values.register
def _(model: Forest, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    return _trees(model.model, features)


@shap_values.register
def _(model: Network, features: np.ndarray, background: np.ndarray) -> np.ndarray:
    import torch

    # Scaling a feature does not change its SHAP value, so explain the scaled input.
    layers: list[torch.nn.Module] = []
    for weights, bias in zip(model.model.coefs_, model.model.intercepts_, strict=True):
        layers += [torch.nn.ReLU()] if layers else []
        linear = torch.nn.Linear(*weights.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weights.T))
            linear.bias.copy_(torch.from_numpy(bias))
        layers.append(linear)
    chosen = background[np.linspace(0, len(background) - 1, min(BACKGROUND, len(background))).astype(int)]
    reference, explained = (torch.from_numpy(model.standardise(part)) for part in (chosen, features))
    explainer = _shap().DeepExplainer(torch.nn.Sequential(*layers), reference)
    values = explainer.shap_values(explained, check_additivity=False)
    return np.asarray(values, dtype=np.float64).reshape(*features.shape, -1)


def _trees(model: Any, features: np.ndarray) -> np.ndarray:
    values = _shap().TreeExplainer(model).shap_values(features.astype(np.float32))
    return values[:, :, 1:] if values.shape[2] == 2 else values


def _shap() -> ModuleType:
    try:
        import shap
    except ImportError:
        raise MissingExtra("SHAP values", "analysis", "shap") from None
    return shap
