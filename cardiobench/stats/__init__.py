"""Statistics over patients: bootstrap, intervals, the information test."""
