"""The pictures of the page: pure functions from numbers and words to self-contained SVG."""

from __future__ import annotations

from lasca.reproduce.svg_charts import dots, line_chart
from lasca.reproduce.svg_heat import heat_map, heat_maps
from lasca.reproduce.svg_tokens import tagged_sequences

__all__ = ["dots", "heat_map", "heat_maps", "line_chart", "tagged_sequences"]
