package redis

import (
	"context"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// ear listens for what other servers tell. Each thread has a shard channel of
// the name of its head; scripts tell there what they changed. One connection
// serves all threads; in a cluster, one per partition that has followed ones.
type ear struct {
	store *Store
	ctx   context.Context //nolint:containedctx // lives as long as the store
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu      sync.Mutex
	tuners  map[*tuner]struct{}
	threads map[string]*followed
	lanes   map[int]*lane
	closed  bool
}

// followed is a thread that somebody here follows.
type followed struct {
	refs  int
	heard bool // the server has confirmed it
}

func newEar(ctx context.Context, s *Store) *ear {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // ended by close
	return &ear{
		store: s, ctx: ctx, stop: stop, tuners: make(map[*tuner]struct{}),
		threads: make(map[string]*followed), lanes: make(map[int]*lane),
	}
}

func (r *ear) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.work.Wait()
}

// tuner implements checkpoint.Tuner.
type tuner struct {
	ear  *ear
	hear func(checkpoint.Signal)
}

var _ checkpoint.Signals = (*Store)(nil)

// Tune begins to listen to the other servers. What is told through this store
// is not heard.
func (s *Store) Tune(hear func(checkpoint.Signal)) checkpoint.Tuner {
	t := &tuner{ear: s.ear, hear: hear}
	s.ear.mu.Lock()
	defer s.ear.mu.Unlock()
	s.ear.tuners[t] = struct{}{}
	return t
}

// Close stops listening.
func (t *tuner) Close() {
	t.ear.mu.Lock()
	defer t.ear.mu.Unlock()
	delete(t.ear.tuners, t)
}

// Follow begins to listen for a thread.
func (t *tuner) Follow(thread string) (stop func()) {
	if t.ear.follow(thread) {
		t.hear(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalTuned})
	}
	return sync.OnceFunc(func() { t.ear.unfollow(thread) })
}

// follow reports whether the thread is heard already.
func (r *ear) follow(thread string) (heard bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	f := r.threads[thread]
	if f == nil {
		f = &followed{}
		r.threads[thread] = f
	}
	f.refs++
	if f.refs == 1 {
		r.lane(r.store.keys.partition(thread)).want(r.store.keys.channel(thread), true)
	}
	return f.heard
}

func (r *ear) unfollow(thread string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.threads[thread]
	f.refs--
	if f.refs == 0 {
		delete(r.threads, thread)
		r.lane(r.store.keys.partition(thread)).want(r.store.keys.channel(thread), false)
	}
}

// lane finds the connection for a partition. The caller holds mu.
func (r *ear) lane(partition int) *lane {
	if _, many := r.store.client.(*goredis.ClusterClient); !many {
		partition = 0
	}
	l := r.lanes[partition]
	if l == nil {
		l = newLane(r)
		r.lanes[partition] = l
		if !r.closed {
			r.work.Go(func() { l.run(r.ctx) })
		}
	}
	return l
}

// channel names the channel of a thread.
func (l *layout) channel(thread string) string { return l.thread(thread, keyHead)[0] }

// threadOf is the inverse of channel.
func threadOf(channel string) string {
	_, thread, _ := strings.Cut(channel, "}:h:")
	return thread
}

// turn notes that a thread is heard from now on, or is not heard any more.
func (r *ear) turn(thread string, heard bool) {
	r.mu.Lock()
	f := r.threads[thread]
	if f == nil || (!heard && !f.heard) {
		r.mu.Unlock()
		return
	}
	f.heard = heard
	r.mu.Unlock()
	kind := checkpoint.SignalDeaf
	if heard {
		kind = checkpoint.SignalTuned
	}
	r.pass(checkpoint.Signal{Thread: thread, Kind: kind})
}

// pass hands a signal to everybody here.
func (r *ear) pass(s checkpoint.Signal) {
	r.mu.Lock()
	all := make([]*tuner, 0, len(r.tuners))
	for t := range r.tuners {
		all = append(all, t)
	}
	r.mu.Unlock()
	for _, t := range all {
		t.hear(s)
	}
}
