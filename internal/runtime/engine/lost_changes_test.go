package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// lossyStore is a store that can lose its newest changes, as Redis does in a
// failover.
type lossyStore struct {
	checkpoint.Store

	mu      sync.Mutex
	changes []checkpoint.Change
}

func newLossyStore() *lossyStore { return &lossyStore{Store: memory.New(memory.Options{})} }

func (l *lossyStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := *c
	made.Checkpoints, made.Tasks, made.Memos = slices.Clone(c.Checkpoints), slices.Clone(c.Tasks), slices.Clone(c.Memos)
	made.Interrupts, made.Runs = slices.Clone(c.Interrupts), slices.Clone(c.Runs)
	made.ClearTasks, made.Events = slices.Clone(c.ClearTasks), slices.Clone(c.Events)
	r, err := l.Store.Apply(ctx, c)
	if err == nil {
		l.changes = append(l.changes, made)
	}
	return r, err
}

// Head reads the head under the mutex: like Run, it sees a loss as a whole or not at all.
func (l *lossyStore) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Store.Head(ctx, thread)
}

func (l *lossyStore) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Store.Run(ctx, thread, run)
}

// changeCount returns how many changes the store holds.
func (l *lossyStore) changeCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.changes)
}

// loseChanges loses all changes of the thread but the first n.
func (l *lossyStore) loseChanges(t *testing.T, thread string, n int) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	l.mu.Lock()
	defer l.mu.Unlock()
	head, err := l.Store.Head(ctx, thread)
	require.NoError(t, err)
	_, err = l.Store.Apply(ctx, &checkpoint.Change{Thread: thread, Expect: head.Revision, Delete: true})
	require.NoError(t, err)
	l.changes = l.changes[:n]
	for _, c := range l.changes {
		c.Events = slices.Clone(c.Events)
		_, err := l.Store.Apply(ctx, &c)
		require.NoError(t, err)
	}
}

// A cursor of an event that was lost is refused, whether or not the log has
// grown beyond it again; one of an event that was kept is not.
func TestCursorOfALostEventIsRefused(t *testing.T) {
	store := newLossyStore()
	w := newFixtureOn(t, store, engine.Options{}, map[string]nodeFunc{"a": updateNode(`{"log":["a"]}`)}, chainSpec("g", channelsLog, "a"))
	w.runToStop("t", "g", `{}`)
	kept, all := store.changeCount(), w.readEvents("t")
	w.runToStop("t", "g", `{}`)
	lost := w.readEvents("t")
	store.loseChanges(t, "t", kept)

	next := func(e checkpoint.Event) (string, error) {
		f := w.engine.Follow(runtime.FollowRequest{Thread: "t", After: e.Seq, Mark: runtime.EventMark(&e)})
		defer f.Close()
		if err := f.CheckCursor(t.Context()); err != nil {
			return "", err
		}
		events, err := f.ReadAvailable(t.Context())
		if len(events) == 0 {
			return "", err
		}
		return describeEvent(events[0]), err
	}
	_, err := next(lost[len(lost)-1])
	require.Equal(t, runtime.ReasonCursorAhead, errorReason(err))
	_, err = next(all[len(all)-1])
	require.NoError(t, err)

	w.runToStop("t", "g", `{}`)
	w.runToStop("t", "g", `{}`)
	_, err = next(lost[len(lost)-1])
	require.Equal(t, runtime.ReasonCursorLost, errorReason(err))
	refused := &runtime.Error{}
	require.ErrorAs(t, err, &refused)
	require.Equal(t, fmt.Sprint(len(w.readEvents("t"))), refused.Meta["headSequence"])
	shown, err := next(all[len(all)-1])
	require.NoError(t, err)
	require.Equal(t, "run running", shown)
}

func (f *fixture) readEvents(thread string) []checkpoint.Event {
	f.t.Helper()
	events, err := f.store.Events(f.t.Context(), thread, 0, 0)
	require.NoError(f.t, err)
	return events
}

// A follower learns of lost events with the next event, and one that comes then
// sees what the store has.
func TestFollowerLearnsThatItsEventsWereLost(t *testing.T) {
	store := newLossyStore()
	w := newFixtureOn(t, store, engine.Options{}, map[string]nodeFunc{"a": updateNode(`{"log":["a"]}`)}, chainSpec("g", channelsLog, "a"))
	w.runToStop("t", "g", `{}`)
	kept := store.changeCount()
	f := w.engine.Follow(runtime.FollowRequest{Thread: "t"})
	defer f.Close()
	for len(w.readEvents("t")) > int(f.After()) {
		_, err := f.Next(t.Context())
		require.NoError(t, err)
	}
	w.runToStop("t", "g", `{}`)
	for len(w.readEvents("t")) > int(f.After()) {
		_, err := f.Next(t.Context())
		require.NoError(t, err)
	}
	store.loseChanges(t, "t", kept)

	w.runToStop("t", "g", `{}`)
	_, err := f.Next(t.Context())
	require.Equal(t, runtime.ReasonCursorLost, errorReason(err))

	later := w.engine.Follow(runtime.FollowRequest{Thread: "t"})
	defer later.Close()
	var seen []checkpoint.Event
	for len(w.readEvents("t")) > int(later.After()) {
		events, err := later.Next(t.Context())
		require.NoError(t, err)
		seen = append(seen, events...)
	}
	require.Equal(t, w.readEvents("t"), seen)
}

// A run whose newest supersteps are lost under it goes on from what is left: it
// does not add to a history what does not continue it.
func TestRunGoesOnFromWhatTheStoreKept(t *testing.T) {
	for back := range 6 {
		t.Run(fmt.Sprintf("%d changes lost", back), func(t *testing.T) {
			store := newLossyStore()
			once := sync.Once{}
			names := []string{"a", "b", "c", "d", "e"}
			code := make(map[string]nodeFunc)
			for _, name := range names {
				code[name] = func(context.Context, *nodeCall) pregel.Result {
					if name == "d" {
						once.Do(func() { store.loseChanges(t, "t", store.changeCount()-back) })
					}
					return pregel.Result{Update: payload.JSON(`{"log":["` + name + `"]}`)}
				}
			}
			w := newFixtureOn(t, store, engine.Options{}, code, chainSpec("g", channelsLog, names...))
			_, err := w.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t"})
			require.NoError(t, err)
			s, err := w.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", Graph: "g", Request: checkpoint.RunRequest{Input: `{}`}})
			require.NoError(t, err)
			r, err := w.engine.WaitRun(t.Context(), "t", s.Run.ID)
			switch back {
			case 4:
				require.Equal(t, runtime.ReasonRunNotFound, errorReason(err))
				return
			case 5:
				require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, checkpoint.RunSucceeded, r.State, "%+v", r.Failure)
			require.JSONEq(t, `{"log":["a","b","c","d","e"]}`, w.stateValues("t"))
			history, _, err := w.engine.States(t.Context(), runtime.HistoryQuery{Thread: "t"})
			require.NoError(t, err)
			for i := range history[:len(history)-1] {
				require.Equal(t, history[i].Checkpoint.Parent, history[i+1].Checkpoint.ID)
			}
		})
	}
}
