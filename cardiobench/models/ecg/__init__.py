"""ECG foundation models: what each does to a recording, and how its weights are read."""
