package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// A migration brings a store of an earlier format to the present one, in this
// order: what the whole store agrees on says that it is under way, so that no
// server starts on it, older ones neither; each partition is brought to the new
// format, thread by thread, and gets its mark when that is done; the agreement
// says that it is over. Every step may be repeated, so what was broken off is
// gone on with by doing it again. While it runs it holds a lock that ends soon
// after its process.

// Migrate brings the store at opts.URL to the present format. A store that has
// it, or that is not there yet, is left alone. tell is called with what was done
// so far. With dry it only says what there is to do. It fails with a SetupError
// that says what is in the way: most often servers that use the store.
func Migrate(ctx context.Context, opts Options, dry bool, tell func(checkpoint.Migration)) (checkpoint.Migration, error) {
	s, w, err := bare(ctx, opts)
	if err != nil {
		return checkpoint.Migration{}, err
	}
	m := &migration{store: s, where: w, dry: dry, tell: tell}
	err = w.opening(ctx, m.run(ctx))
	return m.Migration, errors.Join(err, s.Close())
}

// bare connects to a server without opening the store on it.
func bare(ctx context.Context, opts Options) (*Store, *location, error) {
	w, err := parse(opts)
	if err != nil {
		return nil, nil, err
	}
	scripts, err := loadScripts()
	if err != nil {
		return nil, nil, err
	}
	s := &Store{scripts: scripts, log: cmp.Or(opts.Logger, zap.NewNop()), wrong: map[int]struct{}{}}
	s.ear = newEar(ctx, s)
	if err := s.connect(ctx, w); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, w, nil
}

// migration is one that is under way.
type migration struct {
	checkpoint.Migration

	store *Store
	where *location
	dry   bool
	look  bool // nothing is changed yet
	tell  func(checkpoint.Migration)
}

func (m *migration) run(ctx context.Context) error {
	meta := (&layout{prefix: m.where.prefix}).meta()
	isUnder, err := m.isToDo(ctx, meta)
	if err != nil || !isUnder {
		return err
	}
	if m.dry {
		if err := m.alone(ctx); err != nil {
			return err
		}
		return m.all(ctx, true)
	}
	ctx, unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	// Another migration may have ended while this one waited for the lock.
	if isUnder, err = m.isToDo(ctx, meta); err != nil || !isUnder {
		return err
	}
	if err := m.alone(ctx); err != nil {
		return err
	}
	return m.do(ctx, meta)
}

// isToDo reads which format the store has and how it is divided.
func (m *migration) isToDo(ctx context.Context, meta string) (bool, error) {
	known, err := m.store.client.HGetAll(ctx, meta).Result()
	if err != nil || len(known) == 0 {
		return false, err
	}
	i, err := m.where.described(known)
	if err != nil {
		return false, err
	}
	m.From, m.To = i.format, Format
	if from := known[fieldFrom]; from != "" {
		if m.From, err = strconv.Atoi(from); err != nil {
			return false, corrupt("key %s says that the store comes from format %q", meta, from)
		}
	}
	s := m.store
	s.keys, s.epoch = newLayout(m.where.prefix, i.partitions), i.epoch
	if s.epoch == "" {
		s.epoch = draw()
	}
	s.mark = identity{Format, i.partitions, s.epoch}.mark()
	return m.From != m.To, nil
}

// alone refuses to go on while servers use the store.
func (m *migration) alone(ctx context.Context) error {
	s := m.store
	r, err := s.read(ctx, s.scripts.servers, []string{s.keys.roster()}, s.keys.greetings())
	if err != nil {
		return err
	}
	listening, _ := r.count(0)
	if n := max(listening, int64(len(r)-1)); n > 0 {
		return &SetupError{
			m.where.server, ProblemInUse, fmt.Sprintf("%d servers use the store", n),
			"stop all of them; one that was killed is forgotten after 20 seconds",
		}
	}
	return nil
}

func (m *migration) do(ctx context.Context, meta string) error {
	s := m.store
	if err := m.all(ctx, true); err != nil {
		return err
	}
	pipe := s.client.TxPipeline()
	pipe.HSetNX(ctx, meta, fieldFrom, m.From)
	pipe.HSetNX(ctx, meta, fieldEpoch, s.epoch)
	pipe.HSet(ctx, meta, fieldFormat, Format)
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	if err := m.all(ctx, false); err != nil {
		return err
	}
	pipe = s.client.TxPipeline()
	pipe.HSet(ctx, meta, fieldWhole, "yes")
	pipe.HDel(ctx, meta, fieldFrom)
	_, err := pipe.Exec(ctx)
	return err
}

// all brings every partition to the present format, or looks at what there is to
// do.
func (m *migration) all(ctx context.Context, look bool) error {
	s := m.store
	m.look = look
	m.Threads, m.Done, m.Changed, m.Unreadable = 0, 0, 0, nil
	marks, err := s.marks(ctx, s.all())
	if err != nil {
		return err
	}
	for p := range marks {
		n, err := s.client.ZCard(ctx, s.keys.of(p, keyThreads)).Result()
		if err != nil {
			return err
		}
		m.Threads += int(n)
	}
	for p, mark := range marks {
		if err := m.partition(ctx, p, mark == s.mark); err != nil {
			return of(err, "partition %s", s.keys.of(p, "*"))
		}
	}
	return nil
}

// someThreads is how many threads are read and changed in one exchange.
const someThreads = 256

// partition brings the threads of a partition to the present format, and then
// marks it.
func (m *migration) partition(ctx context.Context, p int, isDone bool) error {
	s := m.store
	for begin := "-"; ; {
		members, err := s.client.ZRangeByLex(ctx, s.keys.of(p, keyThreads), &goredis.ZRangeBy{
			Min: begin, Max: "+", Count: someThreads,
		}).Result()
		if err != nil {
			return err
		}
		if !isDone {
			if err := m.threads(ctx, members); err != nil {
				return err
			}
		}
		m.Done += len(members)
		if m.look == m.dry {
			m.tell(m.Migration)
		}
		if len(members) < someThreads {
			break
		}
		begin = "(" + members[len(members)-1]
	}
	if m.look || isDone {
		return nil
	}
	return s.client.Set(ctx, s.keys.of(p, keyStore), s.mark, 0).Err()
}

// threads brings some threads of a partition from format 2 to format 3.
func (m *migration) threads(ctx context.Context, members []string) error {
	s := m.store
	list := make([]entry, 0, len(members))
	for _, member := range members {
		if thread, _, _, ok := parseThread(member); ok {
			list = append(list, entry{thread: thread})
		}
	}
	look := "0"
	if m.look {
		look = "1"
	}
	replies, err := s.each(ctx, list, func(pipe goredis.Pipeliner, e entry) *goredis.Cmd {
		return s.scripts.migrate2.EvalSha(ctx, pipe, s.migrateKeys(e.thread), look)
	}, func(e entry) *goredis.Cmd {
		return s.scripts.migrate2.Run(ctx, s.client, s.migrateKeys(e.thread), look)
	})
	if err != nil {
		return err
	}
	for i, r := range replies {
		if r == nil {
			m.Unreadable = append(m.Unreadable, list[i].thread)
		}
		if apart, _ := r.count(0); apart > 0 {
			m.Changed++
		}
		if r.text(1) != "" {
			return m.leased(list[i].thread)
		}
	}
	return nil
}

// leased refuses a thread that a server still holds.
func (m *migration) leased(thread string) error {
	return &SetupError{
		m.where.server, ProblemInUse, fmt.Sprintf("a server runs the thread %q, or was killed a moment ago", thread),
		"stop all servers that use the store; the lease of one that was killed ends by itself, after 15 seconds unless --lease says otherwise",
	}
}

func (s *Store) migrateKeys(thread string) []string {
	return s.keys.thread(thread, keyHead, keyQuestions, keyRecords)
}

// How long the lock of a migration outlasts its process, and how often it is
// renewed.
const (
	lockLife  = 10 * time.Second
	lockRenew = 2 * time.Second
)

// lockKey is held by the migration that is under way.
func (l *layout) lockKey() string { return l.prefix + "{meta}:migration" }

// lock waits until no other migration runs, and keeps others out until unlock;
// the context ends when the lock is lost.
func (m *migration) lock(ctx context.Context) (_ context.Context, unlock func(), err error) {
	c, key, name := m.store.client, m.store.keys.lockKey(), draw()
	for {
		held, err := c.SetNX(ctx, key, name, lockLife).Result()
		if err != nil {
			return ctx, nil, err
		}
		if held {
			break
		}
		if !pause(ctx, 200*time.Millisecond) {
			return ctx, nil, ctx.Err()
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go contain.Func(func() {
		defer close(ended)
		for pause(ctx, lockRenew) {
			if held, err := c.Get(ctx, key).Result(); err != nil || held != name {
				cancel(errors.New("the lock of the migration is lost"))
				return
			}
			c.Expire(ctx, key, lockLife)
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
