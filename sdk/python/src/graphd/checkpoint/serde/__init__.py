"""Serializers of LangGraph, for savers of LangGraph: ``graphd.checkpoint.langgraph.GraphdSaver`` calls them."""
