"""Defects that were drawn by seed from small changes of lines (mutants.py), found by the tests that are named."""
from __future__ import annotations

from planting import Defect

DRAWN: list[Defect] = []
