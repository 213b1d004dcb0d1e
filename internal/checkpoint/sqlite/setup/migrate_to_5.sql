-- Format 5 lists the threads and interrupts of one tenant by themselves. No row changes: the tenant is part of
-- the thread's id, and every thread of format 4 is of the tenant default.
DROP INDEX IF EXISTS threads_updated;
DROP INDEX IF EXISTS interrupts_change;
DROP INDEX IF EXISTS interrupts_created;
DROP INDEX IF EXISTS interrupts_state;

ALTER TABLE threads ADD COLUMN
  tenant TEXT AS (CASE instr(thread, '@') WHEN 0 THEN 'default' ELSE substr(thread, 1, instr(thread, '@') - 1) END) VIRTUAL;
ALTER TABLE interrupts ADD COLUMN
  tenant TEXT AS (CASE instr(thread, '@') WHEN 0 THEN 'default' ELSE substr(thread, 1, instr(thread, '@') - 1) END) VIRTUAL;

CREATE INDEX threads_updated ON threads (tenant, updated DESC, thread);
CREATE INDEX interrupts_change ON interrupts (tenant, change);
CREATE INDEX interrupts_created ON interrupts (tenant, created, thread, id);
CREATE INDEX interrupts_state ON interrupts (tenant, state, created, thread, id);
