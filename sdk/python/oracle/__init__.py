"""Random graphs on LangGraph and on graphd, compared."""
