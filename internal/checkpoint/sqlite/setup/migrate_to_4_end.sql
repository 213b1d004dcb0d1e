-- What is left to do when all rows have moved.
DROP TABLE threads_3;
DROP TABLE tasks_3;
DROP TABLE memos_3;
DROP TABLE interrupts_3;
DROP TABLE runs_3;

CREATE INDEX threads_updated ON threads (updated DESC, thread);
CREATE INDEX threads_wake ON threads (wake, thread) WHERE wake IS NOT NULL;
CREATE INDEX interrupts_change ON interrupts (change);
CREATE INDEX interrupts_created ON interrupts (created, thread, id);
CREATE INDEX interrupts_state ON interrupts (state, created, thread, id);
CREATE INDEX interrupts_checkpoint ON interrupts (thread, checkpoint, born);
CREATE INDEX runs_order ON runs (thread, ord, id);
