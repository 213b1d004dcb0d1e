-- What graphd keeps of its threads. Times are nanoseconds since 1970; records are packed
-- (internal/checkpoint/codec), and graphd store dump shows them as JSON. Only the process that
-- holds the .lock file may write. A thread TENANT@ID, and all that belongs to it, is of that
-- tenant, and any other of the tenant default (internal/tenant).

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value ANY
) STRICT, WITHOUT ROWID;

-- One row per thread, replaced by every change of it. A thread of a migrated file that can't be read is created at NULL. The
-- labels are JSON of what thread_labels has of the thread; NULL = nothing.
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
  head          BLOB    NOT NULL,
  created INTEGER,
  labels TEXT
) STRICT, WITHOUT ROWID;

-- The indexes of lists begin with the tenant, as an expression: an index with a virtual column never suffices, and SQLite would
-- read the row of each thread that it counts or passes over.
CREATE INDEX threads_updated ON threads (
  CASE instr(thread, '@') WHEN 0 THEN 'default' ELSE substr(thread, 1, instr(thread, '@') - 1) END,
  updated DESC, thread
);
CREATE INDEX threads_state ON threads (
  CASE instr(thread, '@') WHEN 0 THEN 'default' ELSE substr(thread, 1, instr(thread, '@') - 1) END,
  state, created DESC, thread, graph
);
CREATE INDEX threads_graph ON threads (
  CASE instr(thread, '@') WHEN 0 THEN 'default' ELSE substr(thread, 1, instr(thread, '@') - 1) END,
  graph, created DESC, thread
);
CREATE INDEX threads_wake ON threads (wake, thread) WHERE wake IS NOT NULL;

-- The metadata of threads: tags of keys and values, or digests of them.
CREATE TABLE thread_labels (
  tenant  TEXT    NOT NULL,
  label   TEXT    NOT NULL,
  created INTEGER NOT NULL,
  thread  TEXT    NOT NULL,
  PRIMARY KEY (tenant, label, created DESC, thread)
) STRICT, WITHOUT ROWID;

-- The state after each superstep, without large values.
CREATE TABLE checkpoints (
  thread    TEXT    NOT NULL,
  seq       INTEGER NOT NULL,
  id        TEXT    NOT NULL,
  namespace TEXT    NOT NULL, -- '' = the root graph
  path      TEXT    NOT NULL, -- the namespace's node names alone
  manifest  BLOB    NOT NULL,
  PRIMARY KEY (thread, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX checkpoints_path ON checkpoints (thread, path, seq);

-- Values that are too large for a manifest, by the checkpoint that wrote them.
CREATE TABLE channel_values (
  thread  TEXT    NOT NULL,
  seq     INTEGER NOT NULL,
  channel TEXT    NOT NULL,
  value   TEXT    NOT NULL,
  PRIMARY KEY (thread, seq, channel)
) STRICT;

-- Elements of append-like channels. A segment is named by the checkpoint that
-- began it; seq is the checkpoint that wrote the element.
CREATE TABLE list_items (
  thread  TEXT    NOT NULL,
  channel TEXT    NOT NULL,
  segment INTEGER NOT NULL,
  idx     INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  value   TEXT    NOT NULL,
  PRIMARY KEY (thread, channel, segment, idx)
) STRICT;

-- Partial progress of the superstep after a checkpoint.
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

-- Questions to people. The tags are JSON of what interrupt_tags has of the question; NULL = nothing.
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
  record     BLOB    NOT NULL,
  tenant     TEXT AS (CASE instr(thread, '@') WHEN 0 THEN 'default' ELSE substr(thread, 1, instr(thread, '@') - 1) END) VIRTUAL,
  tags       TEXT,
  PRIMARY KEY (thread, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX interrupts_change ON interrupts (tenant, change);
CREATE INDEX interrupts_created ON interrupts (tenant, created, thread, id);
CREATE INDEX interrupts_state ON interrupts (tenant, state, created, thread, id);
CREATE INDEX interrupts_checkpoint ON interrupts (thread, checkpoint, born);

-- The tags of open questions, or digests of them. The tag '' is that of each question with a due time.
CREATE TABLE interrupt_tags (
  tenant  TEXT    NOT NULL,
  tag     TEXT    NOT NULL,
  created INTEGER NOT NULL,
  thread  TEXT    NOT NULL,
  id      TEXT    NOT NULL,
  due     INTEGER,          -- NULL = never
  PRIMARY KEY (tenant, tag, created, thread, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX interrupt_tags_due ON interrupt_tags (tenant, tag, due, thread, id) WHERE due IS NOT NULL;

-- How many rows interrupt_tags has of each tag; of 'open', how many open questions there are.
CREATE TABLE tag_counts (
  tenant TEXT    NOT NULL,
  tag    TEXT    NOT NULL,
  open   INTEGER NOT NULL,
  PRIMARY KEY (tenant, tag)
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
CREATE INDEX runs_order ON runs (thread, ord, id);

-- The numbered log of a thread: events that one change told of stand together.
CREATE TABLE events (
  thread TEXT    NOT NULL,
  last   INTEGER NOT NULL, -- number of the last one
  record BLOB    NOT NULL,
  PRIMARY KEY (thread, last)
) STRICT, WITHOUT ROWID;

-- Request ids of clients, so that a repeated call does nothing twice.
CREATE TABLE requests (
  thread  TEXT    NOT NULL,
  id      TEXT    NOT NULL,
  digest  TEXT    NOT NULL,
  run     TEXT    NOT NULL,
  event   INTEGER NOT NULL,
  created INTEGER NOT NULL,
  PRIMARY KEY (thread, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE graphs (
  name    TEXT    NOT NULL,
  version TEXT    NOT NULL,
  created INTEGER NOT NULL,
  source  TEXT    NOT NULL,
  PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

-- What stays of a deleted version, so that nothing else comes under its name:
-- of those that were deleted last.
CREATE TABLE graph_tombstones (
  number  INTEGER PRIMARY KEY, -- in the order in which they were deleted
  name    TEXT    NOT NULL,
  version TEXT    NOT NULL,
  deleted INTEGER NOT NULL,
  digest  TEXT    NOT NULL, -- of the source
  UNIQUE (name, version)
) STRICT;
