"""The mark of tests that run the reference itself."""

import pytest

from tools.reference.client import find_reference

needs_reference = pytest.mark.skipif(
    find_reference() is None,
    reason="the reference is not installed: see tools/reference/environment.sh",
)
