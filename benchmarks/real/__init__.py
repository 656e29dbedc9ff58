"""Score published networks and published answers from clones of their repositories."""
