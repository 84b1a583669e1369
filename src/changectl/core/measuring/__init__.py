"""From a generator's raw records to figures: what the metrics are."""
