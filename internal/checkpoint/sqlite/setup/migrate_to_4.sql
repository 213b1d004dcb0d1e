-- Format 4 keeps records packed, as blobs, and what queries look for in columns.
DROP INDEX threads_updated;
DROP INDEX threads_wake;
DROP INDEX interrupts_change;
DROP INDEX interrupts_created;
DROP INDEX interrupts_state;
DROP INDEX interrupts_checkpoint;
DROP INDEX runs_order;

ALTER TABLE threads RENAME TO threads_3;
ALTER TABLE tasks RENAME TO tasks_3;
ALTER TABLE memos RENAME TO memos_3;
ALTER TABLE interrupts RENAME TO interrupts_3;
ALTER TABLE runs RENAME TO runs_3;

CREATE TABLE threads (
  thread        TEXT PRIMARY KEY,
  revision      INTEGER NOT NULL,
  log_id        TEXT    NOT NULL, -- tells a thread from a deleted one of its name
  op            TEXT    NOT NULL, -- the newest change
  applied       INTEGER NOT NULL, -- and when it was made
  graph         TEXT    NOT NULL,
  state         TEXT    NOT NULL,
  updated       INTEGER NOT NULL,
  seq           INTEGER NOT NULL, -- last checkpoint
  first_event   INTEGER NOT NULL, -- oldest event that is kept
  last_event    INTEGER NOT NULL,
  owner         TEXT    NOT NULL, -- which server holds the lease, '' = none
  lease_expires INTEGER,
  wake          INTEGER,          -- when the server should look at the thread
  metadata      TEXT,             -- JSON object of the head's metadata; NULL = only the head says, which is sealed
  head          BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
  thread     TEXT NOT NULL,
  checkpoint TEXT NOT NULL,
  id         TEXT NOT NULL,
  record     BLOB NOT NULL,
  PRIMARY KEY (thread, checkpoint, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE memos (
  thread     TEXT    NOT NULL,
  checkpoint TEXT    NOT NULL,
  task       TEXT    NOT NULL,
  scope      TEXT    NOT NULL,
  key        TEXT    NOT NULL,
  idx        INTEGER NOT NULL,
  record     BLOB    NOT NULL,
  PRIMARY KEY (thread, checkpoint, task, scope, key, idx)
) STRICT, WITHOUT ROWID;

CREATE TABLE interrupts (
  thread     TEXT    NOT NULL,
  id         TEXT    NOT NULL,
  born       INTEGER NOT NULL, -- change that put it first
  change     INTEGER NOT NULL, -- change that put it last
  revision   INTEGER NOT NULL,
  created    INTEGER NOT NULL,
  checkpoint TEXT    NOT NULL,
  run        TEXT    NOT NULL,
  graph      TEXT    NOT NULL,
  node       TEXT    NOT NULL,
  reason     TEXT    NOT NULL,
  state      TEXT    NOT NULL,
  assignees  TEXT,             -- JSON array; NULL = only the record says, which is sealed
  record     BLOB    NOT NULL,
  PRIMARY KEY (thread, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
  thread   TEXT    NOT NULL,
  id       TEXT    NOT NULL,
  ord      INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  state    TEXT    NOT NULL,
  record   BLOB    NOT NULL,
  PRIMARY KEY (thread, id)
) STRICT, WITHOUT ROWID;

