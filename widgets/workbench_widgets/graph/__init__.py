"""The graph of a stage."""
