"""Matches what a node does with what it did before it was interrupted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphd import codec
from graphd.errors import NonDeterministicNode
from graphd.runtime import drift
from graphd.runtime.secret import hide_parts


@dataclass(frozen=True)
class Place:
    """Where a question or memo stands: the index-th of a scope, or of a key."""

    scope: str
    key: str
    index: int

    def __str__(self) -> str:
        text = f"number {self.index + 1}"
        if self.key:
            text += f" of key {self.key!r}"
        if self.scope:
            text += f" in scope {self.scope!r}"
        return text


@dataclass(frozen=True)
class Answer:
    """What came of a question."""

    value: Any = None
    dismissed: str | None = None
    expired: bool = False
    seen: str = ""
    """Digest of what was shown; empty from a server of an earlier version, which compares nothing."""
    question_id: str = ""
    secret_seen: str = ""
    """Digest of the question's value with its secret parts; empty when nothing in it is secret."""


@dataclass(frozen=True)
class Question:
    """What a node asks, and at which place."""

    place: Place
    value: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def compute_digest(self, ignore: Sequence[str]) -> str:
        """The digest of what it shows, without the parts that may differ."""
        parts = (*ignore, *(self.options.get("drift_ignore") or ()))
        message, schema = self.options.get("message") or "", self.options.get("schema")
        return drift.digest_question(self.value, message, schema, parts, self.secret)

    def compute_secret_digest(self, question_id: str, ignore: Sequence[str]) -> str:
        """The digest of its value with the secret parts; empty when nothing in it is secret."""
        parts = (*ignore, *(self.options.get("drift_ignore") or ()))
        return drift.digest_secrets(question_id, self.value, parts, self.secret)

    def shown_value(self) -> Any:
        """Its value as all see it: without the secret parts."""
        if not self.secret:
            return self.value
        return hide_parts(json.loads(codec.dumps(self.value)), self.secret)[0]

    @property
    def secret(self) -> Sequence[str]:
        """Pointers to the parts of the value and the answer that not everybody sees."""
        return self.options.get("secret") or ()

    def shows_same(self, other: Question) -> bool:
        """Whether a person would see the same."""
        mine, theirs = self.compute_digest(()), other.compute_digest(())
        return mine == theirs and self.compute_secret_digest("", ()) == other.compute_secret_digest("", ())


@dataclass(frozen=True)
class UsedAnswer:
    """An answer that the attempt has used, and for what."""

    place: Place
    seen: str
    asked: Question | None
    """Set when something else was shown, and the program accepts that."""
    secret_seen: str = ""


@dataclass(frozen=True)
class DriftRules:
    """What the graph says of questions that are not what was answered."""

    drift: str | None = None
    drift_ignore: tuple[str, ...] = ()


class Replay:
    """The journal of one attempt. Safe to use from several threads."""

    def __init__(
        self, answers: Mapping[Place, Answer], memos: Mapping[Place, Any], rules: DriftRules = DriftRules()
    ) -> None:
        self._lock = threading.Lock()
        self._answers, self._memos = dict(answers), dict(memos)
        self._unseen: set[Place] = {*self._answers, *self._memos}
        self._next: dict[tuple[str, str], int] = {}
        self._difference: NonDeterministicNode | None = None
        self._rules = rules
        self._begun: dict[str, int] = {}  # scopes of tasks that run in this attempt, in the order of their calls
        self.questions: list[Question] = []
        self.used: list[UsedAnswer] = []

    def is_muted(self, scope: str) -> bool:
        """The code of a scope still repeats what it did before.

        A scope that asked and has its answers is past that, whatever those
        beside it have still to see.
        """
        with self._lock:
            if not self._unseen:
                return False
            journal = self._answers.keys() | self._memos.keys()
            if not (scope and any(_is_within(place.scope, scope) for place in journal)):
                around = [begun for begun in self._begun if _is_within(scope, begun)]
                if not around:
                    return True
                scope = max(around, key=len)
            return any(_is_within(place.scope, scope) for place in self._unseen)

    def begin_scope(self, scope: str) -> None:
        """A task runs in a scope of its own: it repeats only what that scope did before."""
        with self._lock:
            self._begun.setdefault(scope, len(self._begun))

    def restart_scope(self, scope: str) -> None:
        """The code of a scope begins anew within the attempt, and meets its memos again."""
        with self._lock:
            self._next = {at: n for at, n in self._next.items() if not _is_within(at[0], scope)}

    def keep_memo(self, place: Place, value: Any) -> None:
        """A memo was recorded in this attempt."""
        with self._lock:
            self._memos[place] = value

    def skip_scope(self, scope: str) -> None:
        """What a scope did is known as a whole; it is not repeated."""
        with self._lock:
            self._unseen = {place for place in self._unseen if not _is_within(place.scope, scope)}

    def ask_question(self, scope: str, key: str, value: Any, options: Mapping[str, Any]) -> Answer | Question:
        """Returns the answer of the next question, or files the question.

        An answer to something else is no answer: the question is filed, and
        the server decides what becomes of it.
        """
        with self._lock:
            place = self._next_place(scope, key)
            if place in self._memos:
                raise self._record_difference(f"memo {place}", f"question {place}")
            question = Question(place, value, options)
            if (known := self._answers.get(place)) is not None:
                self._unseen.discard(place)
                if self._use_answer(known, question):
                    return known
            if (caught := self._find_repeated(question)) is not None:
                return caught
            self.questions.append(question)
            return question

    def _find_repeated(self, question: Question) -> Question | None:
        """The open question that a scope asks again: the program caught its interrupt, as a retry does."""
        for asked in self.questions:
            place = asked.place
            if (place.scope, place.key) == (question.place.scope, question.place.key) and asked.shows_same(question):
                return asked
        return None

    def file_question(self, value: Any) -> None:
        """Files a question behind those that were answered; it takes no answer."""
        with self._lock:
            while (place := self._next_place("", "")) in self._answers:
                self._unseen.discard(place)
            self.questions.append(Question(place, value))

    def _use_answer(self, known: Answer, question: Question) -> bool:
        if not known.seen:
            return True
        seen = question.compute_digest(self._rules.drift_ignore)
        secret_seen = question.compute_secret_digest(known.question_id, self._rules.drift_ignore)
        same = seen == known.seen and secret_seen == known.secret_seen
        accepted = (question.options.get("drift") or self._rules.drift) == "accept"
        if not same and not accepted:
            return False
        if all(used.place != question.place for used in self.used):  # a task that is tried again uses it again
            self.used.append(UsedAnswer(question.place, seen, None if same else question, secret_seen))
        return True

    def look_up_memo(self, scope: str, key: str) -> tuple[Place, bool, Any]:
        """Returns the place of the next use of a key, and its record if any."""
        with self._lock:
            place = self._next_place(scope, key)
            if place in self._answers:
                raise self._record_difference(f"question {place}", f"memo {place}")
            if place in self._memos:
                self._unseen.discard(place)
                return place, True, self._memos[place]
            return place, False, None

    def open_question(self, scope: str) -> Question | None:
        """The question that the scope waits for, if any."""
        with self._lock:
            return next((q for q in self.questions if q.place.scope == scope), None)

    def asks_within(self, scope: str) -> bool:
        """A question of the scope, or of one inside of it, waits."""
        with self._lock:
            return any(_is_within(q.place.scope, scope) for q in self.questions)

    def order_questions_by_call(self) -> None:
        """Puts the questions of tasks in the order of the calls: tasks run side by side."""
        with self._lock:
            self.questions.sort(key=lambda q: self._calls_around(q.place.scope))

    def _calls_around(self, scope: str) -> list[int]:
        return [number for begun, number in self._begun.items() if _is_within(scope, begun)]

    def order_questions(self, scopes: Sequence[str]) -> None:
        """Puts the questions of scopes that ran side by side in their order."""
        with self._lock:
            places = {scope: at for at, scope in enumerate(scopes)}
            self.questions.sort(key=lambda q: places.get(q.place.scope, -1))

    def check_finished(self) -> None:
        """Raises the first difference between the journal and the attempt."""
        with self._lock:
            if self._difference is None and self._unseen and self.questions:
                self._difference = self._find_moved_question(sorted(self._unseen & self._answers.keys(), key=str))
            if self._difference is not None:
                raise self._difference

    def _next_place(self, scope: str, key: str) -> Place:
        if self._difference is not None:
            raise self._difference
        index = self._next.get((scope, key), 0)
        self._next[scope, key] = index + 1
        return Place(scope, key, index)

    def _record_difference(self, before: str, now: str) -> NonDeterministicNode:
        self._difference = NonDeterministicNode(f"before it was interrupted the node had {before}, now it has {now}")
        return self._difference

    def _find_moved_question(self, unused: Iterable[Place]) -> NonDeterministicNode | None:
        # An answer without its question, in a scope that asks something else:
        # its question has moved. One key more or less is what keys are for.
        for place in unused:
            for question in self.questions:
                now = question.place
                if now in self._answers:
                    continue  # another question where it stood; what comes behind it is still to come
                if now.scope == place.scope and not (now.key and place.key):
                    return self._record_difference(f"question {place}", f"question {now}")
        return None


def _is_within(scope: str, outer: str) -> bool:
    return scope == outer or scope.startswith(f"{outer}/")
