"""Names of LangGraph that graphd does not have, and what programs use instead."""
