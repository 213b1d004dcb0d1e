-- Format 8 passes over threads in the indexes of their lists alone. No row changes.
DROP INDEX threads_updated;
DROP INDEX threads_state;
DROP INDEX threads_graph;
ALTER TABLE threads DROP COLUMN tenant;
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
