"""Verdicts afterwards: computed once more, under other limits, against other runs, and how often they were wrong."""
