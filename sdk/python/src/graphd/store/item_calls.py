"""The calls of the server that the operations of a store become."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from graphd import codec
from graphd._gen.v1 import item_service_pb2 as pb
from graphd.store.checks import kind_of
from graphd.store.filters import check_operators
from graphd.store.operations import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Namespace,
    PutOp,
    SearchItem,
    SearchOp,
)
from graphd.transport.unary import Call

_MOST = (1 << 31) - 1
"""The largest number that a field of a request takes."""


def build_call(op: Any) -> Call[Any]:
    """The call of an operation. Those that write may be repeated: they say how the item is to be."""
    match kind_of(op):
        case "GetOp":
            return _get(op)
        case "SearchOp":
            return _search(op)
        case "ListNamespacesOp":
            return _list(op)
    return _delete(op) if op.value is None else _put(op)


def _get(op: GetOp) -> Call[Any]:
    request = pb.GetItemRequest(namespace=op.namespace, key=op.key, refresh_ttl=op.refresh_ttl)
    return Call(lambda stubs: stubs.items.GetItem, request, _read_item)


def _put(op: PutOp) -> Call[Any]:
    request = pb.PutItemRequest(namespace=op.namespace, key=op.key, value=codec.to_payload(op.value))
    if op.ttl is not None:
        request.ttl.CopyFrom(_to_duration(op.ttl))
    return Call(lambda stubs: stubs.items.PutItem, request, _read_nothing)


def _delete(op: PutOp) -> Call[Any]:
    request = pb.DeleteItemRequest(namespace=op.namespace, key=op.key)
    return Call(lambda stubs: stubs.items.DeleteItem, request, _read_nothing)


def _search(op: SearchOp) -> Call[Any]:
    if op.query:
        raise NotImplementedError(
            "GraphdStore has no index by meaning: leave query out, and find items by their namespace and by filter"
        )
    check_operators(op.filter)
    request = pb.SearchItemsRequest(
        namespace_prefix=op.namespace_prefix,
        limit=min(max(op.limit, 1), _MOST),
        offset=min(op.offset, _MOST),
        refresh_ttl=op.refresh_ttl,
    )
    if op.filter:
        request.filter.CopyFrom(codec.to_payload(op.filter))
    return Call(lambda stubs: stubs.items.SearchItems, request, lambda page: _read_found(page, op.limit))


def _list(op: ListNamespacesOp) -> Call[Any]:
    if op.max_depth is not None and op.max_depth < 1:
        raise ValueError(f"max_depth is {op.max_depth}; want 1 or more, or None for all labels")
    request = pb.ListItemNamespacesRequest(
        prefix=_find_path(op.match_conditions or (), "prefix"),
        suffix=_find_path(op.match_conditions or (), "suffix"),
        max_depth=None if op.max_depth is None else min(op.max_depth, _MOST),
        limit=min(max(op.limit, 1), _MOST),
        offset=min(op.offset, _MOST),
    )
    return Call(lambda stubs: stubs.items.ListItemNamespaces, request, lambda page: _read_namespaces(page, op.limit))


def _find_path(conditions: Sequence[MatchCondition], kind: str) -> Namespace:
    """The path of the conditions of a kind. ValueError is raised for several, and for a condition of no kind."""
    for condition in conditions:
        if condition.match_type not in ("prefix", "suffix"):
            raise ValueError(f"match_type {condition.match_type!r}: want 'prefix' or 'suffix'")
    paths = [tuple(condition.path) for condition in conditions if condition.match_type == kind]
    if len(paths) > 1:
        raise ValueError(f"there are {len(paths)} conditions on the {kind} of namespaces; GraphdStore takes one")
    return paths[0] if paths else ()


def _to_duration(minutes: float) -> Duration:
    try:
        made = Duration()
        made.FromTimedelta(timedelta(minutes=minutes))
    except (OverflowError, TypeError, ValueError):
        raise ValueError(
            f"ttl is {minutes!r}; want a number of minutes above 0, or None for an item that stays"
        ) from None
    return made


def _read_nothing(_: Any) -> None:
    pass


def _read_time(time: Timestamp) -> datetime:
    return time.ToDatetime(timezone.utc)


def _read_item(item: pb.Item) -> Item:
    return Item(
        value=codec.loads(item.value.json),
        key=item.key,
        namespace=tuple(item.namespace),
        created_at=_read_time(item.create_time),
        updated_at=_read_time(item.update_time),
    )


def _read_found(page: pb.SearchItemsResponse, limit: int) -> list[SearchItem]:
    return [
        SearchItem(
            tuple(item.namespace),
            item.key,
            codec.loads(item.value.json),
            _read_time(item.create_time),
            _read_time(item.update_time),
        )
        for item in page.items[:limit]
    ]


def _read_namespaces(page: pb.ListItemNamespacesResponse, limit: int) -> list[Namespace]:
    return [tuple(namespace.labels) for namespace in page.namespaces[:limit]]


__all__ = ["build_call"]
