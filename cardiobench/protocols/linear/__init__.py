"""Linear models on frozen features for many penalties, equivalent to scikit-learn's: four solvers with one interface.

A solver takes features (N, d) of any float type, the indices of the training rows, their labels, and the penalties on
the squared coefficients of standardised features. It yields each penalty with its layer (`path.Path`), strongest first.
`model.linear_path` chooses the solver by the type of labels and yields models that predict; `model.fit_linear_models`
lists them in the order of the penalties.

| solver | labels | taken | why |
|---|---|---|---|
| `ridge.ridge_path` | numbers | always | one eigendecomposition serves every penalty |
| `streamed.logistic_path` | one class each | by default | rows pass by in blocks: memory does not grow with their number |
| `one_vs_rest.one_vs_rest_path` | several classes each | always | each class has an end of its own in shared products |
| `logistic.fold_logistic_path` | one class each | for a grid over folds | folds of few rows share products and curvature |

The last one has `folds` instead of `indices`, and returns all folds and penalties together (`logistic.LogisticPath`),
which are multiplied with held-out rows at once. It is 4 to 8 times as fast as scikit-learn's best solver, while the
solver in blocks is about as fast (`benchmarks/probe.py`).
"""
