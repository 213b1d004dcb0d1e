"""Connections to servers, and their errors."""
