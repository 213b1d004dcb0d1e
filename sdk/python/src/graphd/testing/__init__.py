"""For the tests of programs: a server for each test, and answers to the questions of graphs.

``pytest_plugins = ["graphd.testing.plugin"]`` in a ``conftest.py`` makes fixtures of them.
"""

from graphd.testing.answers import AnswerPolicy, UnexpectedQuestionError, UnusedAnswerError
from graphd.testing.isolated_server import IsolatedServer, isolated_server

__all__ = ["AnswerPolicy", "IsolatedServer", "UnexpectedQuestionError", "UnusedAnswerError", "isolated_server"]
