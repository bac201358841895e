"""Measurements of the workbench and its peers, side by side in one run: `python -m benchmarks`."""
