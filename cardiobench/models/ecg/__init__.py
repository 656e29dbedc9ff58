"""ECG foundation models: their preprocessing and the loading of their weights."""
