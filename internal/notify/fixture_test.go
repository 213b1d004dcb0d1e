package notify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/notify/cursor"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/trail"
)

const hold = 15 * time.Second

// world is a store with questions, and servers that tell endpoints of them.
type world struct {
	t       *testing.T
	store   *memory.Store
	servers int
	feeds   []*feed.Feed // of the servers
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, store: memory.New(memory.Options{})}
}

// server is a server that sends to an endpoint.
type server struct {
	*notify.Notifier

	keeper *brokenKeeper
	seen   *observer
	stop   func() // ends it in order, and waits
}

// start starts a server for an endpoint.
func (w *world) start(e notify.Endpoint, to notify.Sender) *server {
	w.t.Helper()
	w.servers++
	f := feed.New(feed.Options{
		Now: time.Now, Logger: zap.NewNop(),
		ListInterrupts: func(ctx context.Context, _ *runtime.CallMemory, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
			return w.store.Interrupts(ctx, q)
		},
	})
	w.feeds = append(w.feeds, f)
	s := &server{seen: &observer{counts: map[notify.Outcome]int{}}}
	s.keeper = &brokenKeeper{Keeper: cursor.New(cursor.Options{
		Store: w.store, Endpoint: e.Name, Server: fmt.Sprint("server-", w.servers), Hold: hold, IsShared: true,
	})}
	s.Notifier = notify.New(notify.Options{
		Endpoint: e, Keeper: s.keeper, Hold: hold, Sender: to, Now: time.Now, Observer: s.seen, Logger: zap.NewNop(),
		Follow: func(tenant string, after uint64) notify.Source {
			source := f.FollowInterrupts(nil, checkpoint.InterruptQuery{Tenant: tenant}, after)
			f.HandleSignal(checkpoint.Signal{Kind: checkpoint.SignalConnected})
			return source
		},
	})
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	s.stop = func() { cancel(); <-done }
	w.t.Cleanup(s.stop)
	return s
}

// crash ends a server that stores nothing any more.
func (s *server) crash() {
	s.keeper.fail(errors.New("the server has crashed"))
	s.stop()
}

// brokenKeeper fails when a test says so.
type brokenKeeper struct {
	notify.Keeper

	mu  sync.Mutex
	err error
}

func (k *brokenKeeper) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

func (k *brokenKeeper) failure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

func (k *brokenKeeper) TakePlace(ctx context.Context) (notify.Place, error) {
	if err := k.failure(); err != nil {
		return notify.Place{}, err
	}
	return k.Keeper.TakePlace(ctx)
}

func (k *brokenKeeper) SavePlace(ctx context.Context, p notify.Place) error {
	if err := k.failure(); err != nil {
		return err
	}
	return k.Keeper.SavePlace(ctx, p)
}

func (k *brokenKeeper) ReleasePlace(ctx context.Context, p notify.Place) error {
	if err := k.failure(); err != nil {
		return err
	}
	return k.Keeper.ReleasePlace(ctx, p)
}

// observer counts outcomes, and keeps the state.
type observer struct {
	mu     sync.Mutex
	counts map[notify.Outcome]int
	state  notify.State
}

func (o *observer) CountWebhookEvent(_ string, outcome notify.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts[outcome]++
}

func (o *observer) SetWebhookState(_ string, s notify.State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state = s
}

func (o *observer) countOf(outcome notify.Outcome) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts[outcome]
}

func (o *observer) currentState() notify.State {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state
}

// receiver is an endpoint.
type receiver struct {
	mu     sync.Mutex
	taken  []string // ids and kinds of events, in order
	refuse func(e *notify.Event) error
	took   time.Duration // of each request
}

// SendEvent takes an event, or refuses it.
func (r *receiver) SendEvent(ctx context.Context, e *notify.Event) error {
	if r.took > 0 {
		timer := time.NewTimer(r.took)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		if err := r.refuse(e); err != nil {
			return err
		}
	}
	r.taken = append(r.taken, e.ID+" "+string(e.Entry.Kind))
	return nil
}

// refuseBy sets which events are refused, nil = none.
func (r *receiver) refuseBy(refuse func(e *notify.Event) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

// all returns the events that were taken, with repetitions.
func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.taken)
}

// first returns the events without repetitions, in the order of their first arrival.
func (r *receiver) first() (list []string) {
	for _, e := range r.all() {
		if !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

var errDown = errors.New("the endpoint is down")

func refuseAll(*notify.Event) error { return errDown }

// ask puts a question into a thread of its own, and returns the thread.
func (w *world) ask(thread string, edit ...func(q *checkpoint.Interrupt)) {
	w.t.Helper()
	now := time.Now()
	q := checkpoint.Interrupt{ID: "q", Thread: thread, Graph: "g", State: checkpoint.InterruptOpen, Created: now, Updated: now}
	for _, e := range edit {
		e(&q)
	}
	q.RecordTrail(now)
	_, err := w.store.Apply(w.t.Context(), &checkpoint.Change{
		Thread: thread, Head: checkpoint.Head{Thread: thread, State: checkpoint.ThreadInterrupted}, Interrupts: []checkpoint.Interrupt{q},
	})
	require.NoError(w.t, err)
	w.wake(thread)
}

// change changes a question, as the engine does.
func (w *world) change(thread string, edit func(q *checkpoint.Interrupt)) {
	w.t.Helper()
	head, err := w.store.Head(w.t.Context(), thread)
	require.NoError(w.t, err)
	q, err := w.store.Interrupt(w.t.Context(), thread, "q")
	require.NoError(w.t, err)
	edit(&q)
	q.Updated = time.Now()
	q.RecordTrail(time.Now())
	_, err = w.store.Apply(w.t.Context(), &checkpoint.Change{Thread: thread, Expect: head.Revision, Head: head, Interrupts: []checkpoint.Interrupt{q}})
	require.NoError(w.t, err)
	w.wake(thread)
}

// wake tells the servers of a change.
func (w *world) wake(thread string) {
	for _, f := range w.feeds {
		f.WakeInterruptFollowers(thread)
	}
}

// Changes of questions.
func comment(q *checkpoint.Interrupt) {
	q.AppendTrail(trail.Entry{Time: time.Now(), Kind: trail.Commented, Principal: "ana", Note: "?"})
}

func answer(q *checkpoint.Interrupt) {
	q.State, q.Response, q.ResponseTime = checkpoint.InterruptAnswered, `"yes"`, time.Now()
}

func use(q *checkpoint.Interrupt) { q.State = checkpoint.InterruptConsumed }

// wait lets time pass, and waits until all goroutines wait.
func wait(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// want lists events of a thread.
func want(thread string, kinds ...string) (list []string) {
	for i, kind := range kinds {
		list = append(list, fmt.Sprintf("%s/q/%d %s", thread, i+1, kind))
	}
	return list
}

// of returns the events of a list that belong to a thread.
func of(list []string, thread string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(e string) bool { return !strings.HasPrefix(e, thread+"/") })
}
