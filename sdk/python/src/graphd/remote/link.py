"""Links by which one person answers one question."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from graphd._gen.v1 import interrupt_service_pb2
from graphd.remote.fields import read_time


@dataclass(frozen=True)
class Link:
    """A link. A holder of it can answer as its person: send it to that person only."""

    url: str
    path: str
    """The path of the URL, for a server that is reached by another name."""
    expires_at: datetime.datetime | None

    def __repr__(self) -> str:
        """Hides the link, which is a credential."""
        return f"Link(expires_at={self.expires_at!r})"


def read_link(link: interrupt_service_pb2.Link) -> Link:
    """A link of the server."""
    return Link(url=link.url, path=link.path, expires_at=read_time(link, "expire_time"))


__all__ = ["Link", "read_link"]
