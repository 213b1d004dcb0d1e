"""Programs for LangGraph Server, and what it has answered them."""
