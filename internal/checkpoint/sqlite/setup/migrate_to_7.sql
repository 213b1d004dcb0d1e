-- Format 7 lists open questions by tag, and threads by graph, state and metadata. The server that has the keys of the
-- records tags those that there are.
ALTER TABLE threads DROP COLUMN metadata;
ALTER TABLE threads ADD COLUMN created INTEGER;
ALTER TABLE threads ADD COLUMN labels TEXT;
CREATE INDEX threads_state ON threads (tenant, state, created DESC, thread);
CREATE INDEX threads_graph ON threads (tenant, graph, created DESC, thread);

-- The metadata of threads: tags of keys and values, or digests of them.
CREATE TABLE thread_labels (
  tenant  TEXT    NOT NULL,
  label   TEXT    NOT NULL,
  created INTEGER NOT NULL,
  thread  TEXT    NOT NULL,
  PRIMARY KEY (tenant, label, created DESC, thread)
) STRICT, WITHOUT ROWID;

ALTER TABLE interrupts DROP COLUMN assignees;
ALTER TABLE interrupts ADD COLUMN tags TEXT;

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

INSERT OR REPLACE INTO meta (key, value) VALUES ('untagged', 1);
