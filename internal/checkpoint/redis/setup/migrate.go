package setup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/contain"
)

// A migration converts a store of an earlier format to the present format. First it
// records itself in the metadata of the store, so that no server, new or old, starts on the
// store. Then it converts each partition, thread by thread, and writes the new mark of the
// partition after the last thread. At last it removes its record from the metadata. Every
// step may be repeated, so an operator continues an interrupted migration by starting it
// again. The migration holds a lock that ends soon after its process.

// Migrate converts the store at opts.URL to the present format, and returns the numbers of
// converted threads and records. It leaves a store of the present format, or a missing store,
// unchanged. It calls tell with its progress. With dry it changes nothing, and returns the numbers
// that a migration would convert. It returns an *Error when it can't migrate the store: most often
// because servers use it.
func Migrate(ctx context.Context, opts Options, dry bool, tell func(checkpoint.Migration)) (checkpoint.Migration, error) {
	w, err := parseURL(opts)
	if err != nil {
		return checkpoint.Migration{}, err
	}
	d, err := connectDatabase(ctx, w)
	if err != nil {
		return checkpoint.Migration{}, err
	}
	m := &migration{database: d, isDryRun: dry, report: tell}
	err = d.WrapError(ctx, m.runMigration(ctx))
	return m.Migration, errors.Join(err, d.CloseClient())
}

// migration is a migration that is under way.
type migration struct {
	checkpoint.Migration

	database *Database
	isDryRun bool
	isCheck  bool // nothing is changed yet
	report   func(checkpoint.Migration)
}

func (m *migration) runMigration(ctx context.Context) error {
	keys := layout.NewKeys(m.database.config.prefix, 0)
	meta := keys.MetadataKey()
	isUnder, err := m.isNeeded(ctx, meta)
	if err != nil || !isUnder {
		return err
	}
	if m.isDryRun {
		if err := m.requireNoServers(ctx); err != nil {
			return err
		}
		return m.migratePartitions(ctx, true)
	}
	ctx, unlock, err := m.acquireLock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	// Another migration may have ended during the wait for the lock.
	if isUnder, err = m.isNeeded(ctx, meta); err != nil || !isUnder {
		return err
	}
	if err := m.requireNoServers(ctx); err != nil {
		return err
	}
	return m.migrateStore(ctx, meta)
}

// isNeeded reads which format the store has and how it is divided.
func (m *migration) isNeeded(ctx context.Context, meta string) (bool, error) {
	known, err := m.database.Client.HGetAll(ctx, meta).Result()
	if err != nil || len(known) == 0 {
		return false, err
	}
	i, err := m.database.config.parseIdentity(known)
	if err != nil {
		return false, err
	}
	m.From, m.To = i.format, layout.Format
	if from := known[fieldMigratingFrom]; from != "" {
		if m.From, err = strconv.Atoi(from); err != nil {
			return false, layout.CorruptError("key %s says that the store comes from format %q", meta, from)
		}
	}
	d := m.database
	d.Keys, d.Epoch = layout.NewKeys(m.database.config.prefix, i.partitions), i.epoch
	if d.Epoch == "" {
		d.Epoch = NewRandomID()
	}
	d.Mark = storeIdentity{layout.Format, i.partitions, d.Epoch}.encodeMark()
	return m.From != m.To, nil
}

// requireNoServers refuses to go on while servers use the store.
func (m *migration) requireNoServers(ctx context.Context) error {
	d := m.database
	r, err := d.Runner.RunScript(ctx, d.Scripts.Servers, []string{d.Keys.MembershipKey()}, d.Keys.AnnouncementChannel())
	if err != nil {
		return err
	}
	listening, _ := r.IntAt(0)
	if n := max(listening, int64(len(r)-1)); n > 0 {
		return &Error{
			m.database.config.server, ProblemInUse, fmt.Sprintf("%d servers use the store", n),
			"stop all of them; one that was killed is forgotten after 20 seconds",
		}
	}
	return nil
}

func (m *migration) migrateStore(ctx context.Context, meta string) error {
	d := m.database
	if err := m.migratePartitions(ctx, true); err != nil {
		return err
	}
	pipe := d.Client.TxPipeline()
	pipe.HSetNX(ctx, meta, fieldMigratingFrom, m.From)
	pipe.HSetNX(ctx, meta, fieldUntagged, "yes")
	pipe.HSetNX(ctx, meta, fieldEpoch, d.Epoch)
	pipe.HSet(ctx, meta, fieldFormat, layout.Format)
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	if err := m.migratePartitions(ctx, false); err != nil {
		return err
	}
	pipe = d.Client.TxPipeline()
	pipe.HSet(ctx, meta, fieldComplete, "yes")
	pipe.HDel(ctx, meta, fieldMigratingFrom)
	_, err := pipe.Exec(ctx)
	return err
}

// migratePartitions converts every partition to the present format. With look it only
// counts the work.
func (m *migration) migratePartitions(ctx context.Context, look bool) error {
	d := m.database
	m.isCheck = look
	m.Threads, m.Done, m.Changed, m.Unreadable = 0, 0, 0, nil
	marks, err := d.readMarks(ctx, d.Keys.AllPartitions())
	if err != nil {
		return err
	}
	for p := range marks {
		n, err := d.Client.ZCard(ctx, d.Keys.PartitionKey(p, layout.KeyThreads)).Result()
		if err != nil {
			return err
		}
		m.Threads += int(n)
	}
	for p, mark := range marks {
		if err := m.migratePartition(ctx, p, mark == d.Mark); err != nil {
			return layout.WrapRecordError(err, "partition %s", d.Keys.PartitionKey(p, "*"))
		}
	}
	return nil
}

// threadsPerExchange is the number of threads that an exchange reads and changes.
const threadsPerExchange = 256

// migratePartition brings the threads of a partition to the present format, and then
// marks it.
func (m *migration) migratePartition(ctx context.Context, p int, isDone bool) error {
	d := m.database
	for begin := "-"; ; {
		members, err := d.Client.ZRangeByLex(ctx, d.Keys.PartitionKey(p, layout.KeyThreads), &goredis.ZRangeBy{
			Min: begin, Max: "+", Count: threadsPerExchange,
		}).Result()
		if err != nil {
			return err
		}
		if !isDone {
			if err := m.migrateThreads(ctx, members); err != nil {
				return err
			}
		}
		m.Done += len(members)
		if m.isCheck == m.isDryRun {
			m.report(m.Migration)
		}
		if len(members) < threadsPerExchange {
			break
		}
		begin = "(" + members[len(members)-1]
	}
	if m.isCheck || isDone {
		return nil
	}
	return d.Client.Set(ctx, d.Keys.PartitionKey(p, layout.KeyStoreMark), d.Mark, 0).Err()
}

// migrationSteps returns the scripts that bring a thread from an earlier format to the
// present one, in order.
func (m *migration) migrationSteps() []*goredis.Script {
	s := m.database.Scripts
	all := []*goredis.Script{s.Migrate2, s.Migrate3, s.Migrate4, s.Migrate5}
	return all[max(m.From, layout.OldestFormat)-layout.OldestFormat:]
}

// migrateThreads brings some threads of a partition to the present format.
func (m *migration) migrateThreads(ctx context.Context, members []string) error {
	d := m.database
	look := "0"
	if m.isCheck {
		look = "1"
	}
	var threads []string
	var inputs []script.Input
	for _, member := range members {
		if thread, _, _, ok := layout.ParseThreadMember(member); ok {
			threads = append(threads, thread)
			keys := d.Keys.ThreadKeys(thread, layout.KeyHead, layout.KeyInterrupts, layout.KeyRecords)
			inputs = append(inputs, script.Input{Keys: keys, Args: []any{look}})
		}
	}
	unreadable, changed := make([]bool, len(threads)), make([]bool, len(threads))
	for _, step := range m.migrationSteps() {
		replies, err := d.Runner.RunPerThread(ctx, step, inputs)
		if err != nil {
			return err
		}
		for i, r := range replies {
			unreadable[i] = unreadable[i] || r == nil
			apart, _ := r.IntAt(0)
			changed[i] = changed[i] || apart > 0
			if r.TextAt(1) != "" {
				return m.leasedThreadError(threads[i])
			}
		}
	}
	for i, thread := range threads {
		if unreadable[i] {
			m.Unreadable = append(m.Unreadable, thread)
		}
		if changed[i] {
			m.Changed++
		}
	}
	return nil
}

// leasedThreadError refuses a thread that a server still holds.
func (m *migration) leasedThreadError(thread string) error {
	return &Error{
		m.database.config.server, ProblemInUse, fmt.Sprintf("a server runs the thread %q, or was killed a moment ago", thread),
		"stop all servers that use the store; the lease of one that was killed ends by itself, after 15 seconds unless --lease says otherwise",
	}
}

// How long the lock of a migration outlives its process, and how often it is
// renewed.
const (
	lockTTL           = 10 * time.Second
	lockRenewInterval = 2 * time.Second
)

// acquireLock waits until no other migration runs, and keeps others out until unlock;
// the context ends when the lock is lost.
func (m *migration) acquireLock(ctx context.Context) (_ context.Context, unlock func(), err error) {
	c, key, name := m.database.Client, m.database.Keys.MigrationLockKey(), NewRandomID()
	for {
		held, err := c.SetNX(ctx, key, name, lockTTL).Result()
		if err != nil {
			return ctx, nil, err
		}
		if held {
			break
		}
		if !script.SleepContext(ctx, 200*time.Millisecond) {
			return ctx, nil, ctx.Err()
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go contain.Func(func() {
		defer close(ended)
		for script.SleepContext(ctx, lockRenewInterval) {
			if held, err := c.Get(ctx, key).Result(); err != nil || held != name {
				cancel(errors.New("the lock of the migration is lost"))
				return
			}
			c.Expire(ctx, key, lockTTL)
		}
	}, func(p *contain.PanicError) { cancel(p) })()
	return ctx, func() {
		cancel(context.Canceled)
		<-ended
		after := context.WithoutCancel(ctx)
		if held, err := c.Get(after, key).Result(); err == nil && held == name {
			c.Del(after, key)
		}
	}, nil
}
