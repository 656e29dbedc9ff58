"""Tasks and their kinds: labels, answers, floors, scores."""
