"""Change one thing on an AI inference service, judge it, and have the saved configuration back, proven."""

__version__ = "0.1.0"
