"""Declaring graphs: what consists of what, checked, and as the server is told. No server is known here."""
