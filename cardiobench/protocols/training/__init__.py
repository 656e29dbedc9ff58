"""Training of networks on the recordings of a task: a library for protocols."""
