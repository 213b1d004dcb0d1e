"""A client of a Redis without the modules RedisJSON and RediSearch.

RedisSaver wants both. Here JSON documents become texts and no index is kept,
which is less work than the modules would have.
"""

from __future__ import annotations

import json
from typing import Any

import redis
from redis.client import Pipeline

# What JSON.MERGE of {"has_writes": true} does to such a text.
MERGE = """
local text = redis.call('GET', KEYS[1])
if not text then return false end
text = string.gsub(text, '"has_writes": false', '"has_writes": true', 1)
return redis.call('SET', KEYS[1], text)
"""


class Documents:
    """JSON.SET, JSON.GET and JSON.MERGE of a client or a pipeline."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def set(self, key: str, path: str, value: Any, **_: Any) -> Any:
        if path != "$":
            raise NotImplementedError(path)
        return self.client.set(key, json.dumps(value))

    def get(self, key: str, *paths: str) -> Any:
        if paths:
            raise NotImplementedError(paths)
        text = self.client.get(key)
        return None if text is None else json.loads(text)

    def merge(self, key: str, _: str, value: Any) -> Any:
        if value != {"has_writes": True}:
            raise NotImplementedError(value)
        return self.client.eval(MERGE, 1, key)


class PlainPipeline(Pipeline):
    """Answers to JSON.GET are documents; they come with the other answers."""

    def json(self, *_: Any, **__: Any) -> Any:
        return Queued(self)

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        documents = {i for i, (command, _) in enumerate(self.command_stack) if command[0] == "GET"}
        answers = super().execute(raise_on_error)
        return [json.loads(a) if i in documents and a is not None else a for i, a in enumerate(answers)]


class Queued(Documents):
    def get(self, key: str, *paths: str) -> Any:
        if paths:
            raise NotImplementedError(paths)
        return self.client.get(key)


class PlainRedis(redis.Redis):
    def json(self, *_: Any, **__: Any) -> Any:
        return Documents(self)

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:
        return PlainPipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)
