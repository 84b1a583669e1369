"""The version of the host program; hosts answer it in hello."""

from __future__ import annotations

VERSION = "0.1.0"
