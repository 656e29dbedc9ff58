"""Cross-validate five classifiers on frozen embeddings with nested, patient-grouped folds (arXiv:2601.21830)."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"cross_validation": "cardiobench.extensions.cross_validation.protocol:CrossValidation"},
    commands={"subsets": "cardiobench.extensions.cross_validation.command"},
    hooks="cardiobench.extensions.cross_validation.hooks:CrossValidationHooks",
)
