"""The worker: runs nodes for a server."""
