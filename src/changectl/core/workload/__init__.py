"""The fixed requests of a service's measurements: read, sampled, made from logs."""
