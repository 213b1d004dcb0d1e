"""The values that a program and the graph exchange. ``graphd.types`` hands them on."""
