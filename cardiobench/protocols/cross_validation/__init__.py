"""Five classifiers on frozen embeddings, grid search nested inside patient-grouped folds (arXiv:2601.21830)."""
