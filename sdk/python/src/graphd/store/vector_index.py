"""The vectors of items: what their texts mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphd.store.embeddings import Vector, compute_similarity
from graphd.store.operations import Namespace, PutOp
from graphd.store.paths import get_text_at_path

Place = tuple[Namespace, str]


class VectorIndex:
    """Vectors by item; an item has one for each of its texts."""

    def __init__(self, fields: Sequence[str], dims: int | None) -> None:
        self._fields = list(fields)
        self._dims = dims
        self._vectors: dict[Place, list[Vector]] = {}

    def find_texts(self, op: PutOp) -> list[str]:
        """The texts of an item that are embedded."""
        if op.value is None or op.index is False:
            return []
        fields = self._fields if op.index is None else op.index
        return [text for field in fields for text in get_text_at_path(op.value, field)]

    def check_vectors(self, texts: Sequence[str], vectors: Sequence[Vector]) -> Mapping[str, Vector]:
        """The vectors by text; ValueError when there are too few, or when their size is wrong."""
        if len(texts) != len(vectors):
            raise ValueError(f"the embeddings made {len(vectors)} vectors of {len(texts)} texts")
        for vector in vectors:
            if self._dims is not None and len(vector) != self._dims:
                raise ValueError(
                    f"the embeddings made a vector of {len(vector)} numbers; index['dims'] is {self._dims}"
                )
        return dict(zip(texts, vectors, strict=True))

    def add(self, place: Place, vectors: Iterable[Vector]) -> None:
        """Sets the vectors of an item."""
        if found := list(vectors):
            self._vectors[place] = found

    def remove(self, place: Place) -> None:
        """Forgets an item."""
        self._vectors.pop(place, None)

    def compute_scores(self, query: Vector, places: Iterable[Place]) -> dict[Place, float]:
        """How near items are to a query: each counts by its nearest text. Those without vectors have no score."""
        return {
            place: max(compute_similarity(query, vector) for vector in vectors)
            for place in places
            if (vectors := self._vectors.get(place))
        }


__all__ = ["VectorIndex"]
