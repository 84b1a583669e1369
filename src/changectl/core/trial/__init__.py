"""The trial: pairs of phases until the evidence decides."""
