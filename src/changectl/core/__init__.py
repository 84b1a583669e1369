"""The pure heart: no files, no network, no clock, no randomness. Everything here can be tested with plain values."""
