"""The threads of a worker."""

from __future__ import annotations

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.worker.runner import Runner


def test_what_comes_after_the_end_is_left_to_others() -> None:
    runner, ran = Runner("nowhere", 1), list[pb.TaskResult]()
    runner.close()
    runner.start_job(object())  # type: ignore[arg-type]
    runner.submit_task(lambda: ran.append(pb.TaskResult()))
    assert not ran
