-- What is left to do when all rows have moved. The indexes of lists are those of format 5, which the next step makes.
DROP TABLE threads_3;
DROP TABLE tasks_3;
DROP TABLE memos_3;
DROP TABLE interrupts_3;
DROP TABLE runs_3;

CREATE INDEX threads_wake ON threads (wake, thread) WHERE wake IS NOT NULL;
CREATE INDEX interrupts_checkpoint ON interrupts (thread, checkpoint, born);
CREATE INDEX runs_order ON runs (thread, ord, id);
