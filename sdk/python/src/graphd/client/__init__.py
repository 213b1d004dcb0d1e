"""The client: calls a server."""
