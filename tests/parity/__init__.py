"""Comparisons with the PyTorch reference: with kept outputs, and live where it is installed."""

import pytest

from tools.reference.client import find_reference

needs_reference = pytest.mark.skipif(
    find_reference() is None,
    reason="the reference is not installed: see tools/reference/environment.sh",
)
