"""Pictures of graphs."""
