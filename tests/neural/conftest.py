"""These tests need torch: `make test-torch` runs them (it sets LASCA_TORCH), the default run leaves them out."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("LASCA_TORCH") else ["test_*.py"]
