"""Same conditions, harm and verdicts: what all efforts share, and the quick, the live and the watching one."""
