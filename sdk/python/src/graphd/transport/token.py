"""The token of calls."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from graphd.errors import InvalidSecurityError, UnauthenticatedError
from graphd.security import FilePath, Security, check_token

log = logging.getLogger("graphd.security")

_LARGEST = 64 << 10  # characters of a file; a token is shorter, and may have space around it
_INTERVAL = 1.0  # seconds between two looks at a file

ReadToken = Callable[[], str]


def open_token(security: Security) -> ReadToken | None:
    """What returns the token of a call, and raises UnauthenticatedError when there
    is none; None for calls without one."""
    if security.token_file:
        return TokenFile(security.token_file).read
    token = security.token
    if not token:
        return None
    if isinstance(token, str):
        return lambda: token
    return lambda: _call_function(token)


def _call_function(function: Callable[[], str]) -> str:
    """Calls the function of a program. Its error is the cause and not in the text:
    it may name secrets."""
    try:
        token = function()
    except Exception as error:
        text = f"the function of the token has failed with {type(error).__name__}"
        raise UnauthenticatedError(text, code="UNAUTHENTICATED") from error
    if not isinstance(token, str) or not token:
        text = "the function of the token has returned none: want a str"
        raise UnauthenticatedError(text, code="UNAUTHENTICATED")
    _check(token)
    return token


def _check(token: str) -> None:
    try:
        check_token("token", token)
    except InvalidSecurityError as error:
        raise UnauthenticatedError(str(error), code="UNAUTHENTICATED") from None


class TokenFile:
    """A file with a token, which may change. Safe to use from several threads."""

    def __init__(self, path: FilePath) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._token, self._complaint = "", ""
        self._looked = 0.0

    def read(self) -> str:
        """The token that the file had a second ago at most. When it can't be read,
        the one before stays in use."""
        with self._lock:
            if self._token and time.monotonic() - self._looked < _INTERVAL:
                return self._token
            self._looked = time.monotonic()
            try:
                self._token, self._complaint = self._read_file(), ""
            except UnauthenticatedError as error:
                if not self._token:
                    raise
                if str(error) != self._complaint:
                    self._complaint = str(error)
                    log.error("the token before it stays in use: %s", error)
            return self._token

    def _read_file(self) -> str:
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                text = file.read(_LARGEST + 1).strip()
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise self._refuse(reason) from None
        if not text or len(text) > _LARGEST:
            raise self._refuse("the file is empty" if not text else f"the file has more than {_LARGEST} characters")
        try:
            check_token("the file", text)
        except InvalidSecurityError as error:
            raise self._refuse(str(error)) from None
        return text

    def _refuse(self, problem: str) -> UnauthenticatedError:
        return UnauthenticatedError(f"token_file {self._path}: {problem}", code="UNAUTHENTICATED")
