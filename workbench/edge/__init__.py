"""The edge dialect: decomposition, conversion, and the invariants of every stage."""
