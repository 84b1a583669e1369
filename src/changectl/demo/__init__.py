"""A real inference server with a model of its own, small enough to run anywhere: `make demo` and the lab use it."""
