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

	voices map[string]*voice // by thread
	named  uint64            // voices so far
	calls  calls
	kick   chan struct{} // there is something to tell
}

// followed is a thread that somebody here follows.
type followed struct {
	refs   int
	heard  bool              // the server has confirmed it
	voices map[string]uint64 // number of the newest ephemeral event, by whose
}

func newEar(ctx context.Context, s *Store) *ear {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // ended by close
	r := &ear{
		store: s, ctx: ctx, stop: stop, tuners: make(map[*tuner]struct{}),
		threads: make(map[string]*followed), lanes: make(map[int]*lane),
		voices: make(map[string]*voice), calls: calls{inbox: true}, kick: make(chan struct{}, 1),
	}
	r.work.Go(s.contained(ctx, r.speak))
	return r
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
	s.ear.lane(noPartition).want(s.keys.greetings(), true)
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
			r.work.Go(r.store.contained(r.ctx, l.run))
		}
	}
	return l
}

// noPartition is where servers greet one another.
const noPartition = -1

// greetings names the channel on which servers say whom they listen to.
func (l *layout) greetings() string { return l.prefix + "{meta}:greetings" }

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
	missing := !heard && len(f.voices) > 0 // they may be telling something now
	r.mu.Unlock()
	if missing {
		r.pass(checkpoint.Signal{Thread: thread, Kind: checkpoint.SignalGap})
	}
	kind := checkpoint.SignalDeaf
	if heard {
		kind = checkpoint.SignalTuned
		r.greet(thread)
	}
	r.pass(checkpoint.Signal{Thread: thread, Kind: kind})
}

// fresh notes the number of an ephemeral event. It reports whether it is the
// first time that the event comes, and whether others before it did not.
func (r *ear) fresh(thread, voice string, n uint64) (isNew, gap bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.threads[thread]
	if f == nil {
		return false, false
	}
	last, known := f.voices[voice]
	if known && n <= last {
		return false, false
	}
	f.note(voice, n)
	return true, n > last+1 // of one that is new: what it told before anybody listened
}

// place notes how far a voice is. It reports whether events were missed.
func (r *ear) place(thread, voice string, n uint64, spoke bool) (gap bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.threads[thread]
	if f == nil {
		return false
	}
	last, known := f.voices[voice]
	if known && n <= last {
		return false
	}
	f.note(voice, n)
	return known || spoke
}

// note remembers the newest event of a voice.
func (f *followed) note(voice string, n uint64) {
	if _, known := f.voices[voice]; !known && len(f.voices) >= maxVoices {
		clear(f.voices)
	}
	if f.voices == nil {
		f.voices = make(map[string]uint64, 1)
	}
	f.voices[voice] = n
}

// maxVoices is how many servers that told of a thread are remembered.
const maxVoices = 8

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
