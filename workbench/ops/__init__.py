"""The operator registry: one entry per operator of the edge dialect."""
