package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// tokenNode returns a node that emits tokens, and durable milestones in between.
func tokenNode(tokens int) nodeFunc {
	return func(_ context.Context, c *nodeCall) pregel.Result {
		for i := range tokens {
			c.Effects.EmitEvent(runtime.Emission{
				Kind: checkpoint.EventCustom, Name: "token", Value: payload.JSON(fmt.Sprint(i)), Durable: i%10 == 9,
			})
		}
		return logUpdate(`"` + c.Node.Name + `"`)
	}
}

// eventReader follows a thread and keeps what it sees.
type eventReader struct {
	follower *feed.Follower
	events   []checkpoint.Event
	thread   string
}

// readToEnd reads to the end of a run, checking the order.
func (r *eventReader) readToEnd(ctx context.Context, run string) error {
	for {
		events, err := r.follower.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := r.checkEvent(e); err != nil {
				return err
			}
			if e.Kind == checkpoint.EventRunState && e.Run == run && e.State.Terminal() {
				return nil
			}
		}
	}
}

func (r *eventReader) checkEvent(e checkpoint.Event) error {
	last := uint64(0)
	if n := len(r.events); n > 0 {
		last = r.events[n-1].Seq
	}
	r.events = append(r.events, e)
	switch {
	case e.Ephemeral && e.Seq != last && len(r.events) > 1:
		return fmt.Errorf("ephemeral event of %d after %d", e.Seq, last)
	case !e.Ephemeral && len(r.events) > 1 && e.Seq != last+1:
		return fmt.Errorf("event %d after %d", e.Seq, last)
	case e.Kind == checkpoint.EventUpdate && !strings.Contains(string(e.Value), `"n":1`):
		return fmt.Errorf("foreign event %+v", e)
	}
	return nil
}

func (r *eventReader) durableEvents() []checkpoint.Event {
	var out []checkpoint.Event
	for _, e := range r.events {
		if !e.Ephemeral {
			out = append(out, e)
		}
	}
	return out
}

func newTokenCluster(t *testing.T, tokens int) *cluster {
	t.Helper()
	names := []string{"a", "b", "c", "d", "e"}
	code := map[string]nodeFunc{}
	for _, n := range names {
		code[n] = tokenNode(tokens)
	}
	return newLiveCluster(t, code, chainSpec("g", channelsLog, names...))
}

// TestFollowersSeeTheSame lets many follow a thread from different places and
// at different speeds while runs go on.
func TestFollowersSeeTheSame(t *testing.T) {
	c := newTokenCluster(t, 50)
	first := c.beginRun("first")
	c.waitRun(first)
	head, err := c.store.Head(t.Context(), "t")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var all sync.WaitGroup
	readers := make([]*eventReader, 12)
	errs := make([]error, len(readers))
	s, err := c.engine.Start(ctx, runtime.StartRequest{Thread: "t", Graph: "g", Run: "second", Concurrency: runtime.EnqueueBusy, Request: newInput("x")})
	require.NoError(t, err)
	for i := range readers {
		after := head.LastEvent * uint64(i%3) / 2
		readers[i] = &eventReader{thread: "t", follower: c.engine.Follow(runtime.FollowRequest{Thread: "t", After: after, WithValues: i%2 == 0})}
		readers[i].events = []checkpoint.Event{{Seq: after}}
		all.Go(func() { errs[i] = readers[i].readToEnd(ctx, s.Run.ID) })
	}
	all.Wait()
	stored, err := c.store.Events(t.Context(), "t", 0, 0)
	require.NoError(t, err)
	for i, r := range readers {
		require.NoError(t, errs[i], "reader %d", i)
		got := r.durableEvents()
		require.Equal(t, uint64(len(stored)), got[len(got)-1].Seq)
		require.Len(t, got[1:], len(stored)-int(got[0].Seq), "reader %d", i)
		r.follower.Close()
	}
	late := &eventReader{thread: "t", follower: c.engine.Follow(runtime.FollowRequest{Thread: "t"})}
	defer late.follower.Close()
	require.NoError(t, late.readToEnd(ctx, s.Run.ID), "who comes when all is over reads the store")
	require.Len(t, late.durableEvents(), len(stored))
}

// TestSlowFollower does not read while much happens.
func TestSlowFollower(t *testing.T) {
	c := newTokenCluster(t, 400)
	started := make(chan struct{})
	c.nodes.funcs["a"] = func(ctx context.Context, call *nodeCall) pregel.Result {
		<-started
		return tokenNode(400)(ctx, call)
	}
	s, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: newInput("x")})
	require.NoError(t, err)
	r := &eventReader{thread: "t", follower: c.engine.Follow(runtime.FollowRequest{Thread: "t"})}
	defer r.follower.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, err := r.follower.Next(ctx)
	require.NoError(t, err)
	for _, e := range first {
		require.NoError(t, r.checkEvent(e))
	}
	close(started)
	_, err = c.engine.WaitRun(ctx, "t", s.Run.ID)
	require.NoError(t, err)
	require.LessOrEqual(t, engine.CountKeptEvents(c.engine, "t"), 1024, "memory grows with the slowest reader")
	require.NoError(t, r.readToEnd(ctx, s.Run.ID))
	stored, err := c.store.Events(t.Context(), "t", 0, 0)
	require.NoError(t, err)
	require.Len(t, r.durableEvents(), len(stored), "durable events are never dropped")
	gaps := 0
	for _, e := range r.events {
		if e.Kind == runtime.EventGap {
			gaps++
		}
	}
	require.Positive(t, gaps, "tokens were dropped without a word")
}

func TestEventsWithoutFollowersAreNotKept(t *testing.T) {
	work := newBlockedNode()
	c := newLiveCluster(t, map[string]nodeFunc{"a": tokenNode(2000), "b": work.runNode}, chainSpec("g", channelsLog, "a", "b"))
	c.beginRun("r")
	require.Eventually(t, func() bool { return work.runCount.Load() == 1 }, time.Minute, time.Millisecond)
	require.Zero(t, engine.CountKeptEvents(c.engine, "t"))
	f := c.engine.Follow(runtime.FollowRequest{Thread: "t"})
	defer f.Close()
	r := &eventReader{follower: f}
	close(work.proceed)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, r.readToEnd(ctx, c.readRun("t", "").ID))
}

func TestFollowingBeforeDuringAndAfter(t *testing.T) {
	c := newLiveCluster(t, crashNodes(newEffectLedger(nil)), chainSpec("g", channelsLog, "quick", "ask", "last"))
	_, err := c.engine.Follow(runtime.FollowRequest{Thread: "nothing"}).ReadAvailable(t.Context())
	require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))

	_, err = c.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t", Graph: "g"})
	require.NoError(t, err)
	early := &eventReader{follower: c.engine.Follow(runtime.FollowRequest{Thread: "t"})}
	defer early.follower.Close()
	events, err := early.follower.ReadAvailable(t.Context())
	require.NoError(t, err)
	require.Empty(t, events)
	q := c.runToInterrupt("t")
	parked := &eventReader{follower: c.engine.Follow(runtime.FollowRequest{Thread: "t"})}
	defer parked.follower.Close()
	require.NoError(t, c.answerInterrupt("t", q.ID, `"yes"`, runtime.CoverPartial))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, early.readToEnd(ctx, q.Run))
	require.NoError(t, parked.readToEnd(ctx, q.Run))
	require.Len(t, parked.events, len(early.events))

	c.engine.Close()
	c.startEngine(c.store) // a restart
	again := &eventReader{follower: c.engine.Follow(runtime.FollowRequest{Thread: "t", After: 3})}
	again.events = []checkpoint.Event{{Seq: 3}}
	defer again.follower.Close()
	require.NoError(t, again.readToEnd(ctx, q.Run))
	require.Len(t, again.events[1:], len(early.events)-3)
}

func TestFollowingATrimmedLog(t *testing.T) {
	c := newCluster(t, memory.New(memory.Options{}), 0, faultRefused)
	c.nodes.funcs = map[string]nodeFunc{"a": tokenNode(2000)}
	c.compileGraphs(chainSpec("g", channelsLog, "a"))
	c.opts.EventLimit = 50
	c.startEngine(c.store)
	t.Cleanup(c.closeAll)
	r := c.beginRun("r")
	c.waitRun(r)
	head, err := c.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	require.Greater(t, head.LastEvent, uint64(200))
	require.GreaterOrEqual(t, head.FirstEvent, head.LastEvent-100, "the log is not trimmed")
	f := c.engine.Follow(runtime.FollowRequest{Thread: "t", After: 1})
	defer f.Close()
	_, err = f.Next(t.Context())
	require.Equal(t, runtime.ReasonCursorTrimmed, errorReason(err))
	recent := &eventReader{follower: c.engine.Follow(runtime.FollowRequest{Thread: "t", After: head.LastEvent - 20})}
	defer recent.follower.Close()
	require.NoError(t, recent.readToEnd(t.Context(), r.ID))
	require.Len(t, recent.events, 20)
}

func TestValuesEvents(t *testing.T) {
	work := newBlockedNode()
	c := newLiveCluster(t, map[string]nodeFunc{"a": updateNode(`{"log":["a"]}`), "b": work.runNode}, chainSpec("g", channelsLog, "b", "a"))
	c.beginRun("r")
	f := c.engine.Follow(runtime.FollowRequest{Thread: "t", WithValues: true})
	defer f.Close()
	for {
		events, err := f.ReadAvailable(t.Context())
		require.NoError(t, err)
		if len(events) == 0 {
			break
		}
	}
	close(work.proceed)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var values []string
	for over := false; !over; {
		events, err := f.Next(ctx)
		require.NoError(t, err)
		for _, e := range events {
			if e.Kind == checkpoint.EventValues {
				v := e.Value
				if v == "" {
					v, err = c.engine.ValuesAt(ctx, nil, "t", e.Namespace, e.Checkpoint)
					require.NoError(t, err)
				}
				values = append(values, string(v))
			}
			over = over || (e.Kind == checkpoint.EventRunState && e.State.Terminal())
		}
	}
	require.Equal(t, []string{`{"log":["r","b"],"n":1}`, `{"log":["r","b","a"],"n":1}`}, values)
	stored, err := c.store.Events(ctx, "t", 0, 0)
	require.NoError(t, err)
	for _, e := range stored {
		if e.Kind == checkpoint.EventValues {
			require.Empty(t, e.Value, "the state is in the checkpoint already")
		}
	}
}

// TestDeletedAndMadeAgain follows a thread over its deletion.
func TestDeletedAndMadeAgain(t *testing.T) {
	work := newBlockedNode()
	c := newLiveCluster(t, map[string]nodeFunc{"work": work.runNode}, chainSpec("g", channelsLog, "work"))
	first := c.beginRun("r")
	f := c.engine.Follow(runtime.FollowRequest{Thread: "t"})
	defer f.Close()
	waited := make(chan error, 1)
	go func() {
		_, err := c.engine.WaitRun(t.Context(), "t", first.ID)
		waited <- err
	}()
	require.Equal(t, runtime.ReasonThreadBusy, errorReason(c.engine.DeleteThread(t.Context(), "t", 0, false)))
	require.NoError(t, c.engine.DeleteThread(t.Context(), "t", 0, true))
	c.beginRun("again")
	var kinds []checkpoint.EventKind
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		events, err := f.Next(ctx)
		if err != nil {
			require.Equal(t, runtime.ReasonThreadNotFound, errorReason(err))
			break
		}
		for _, e := range events {
			kinds = append(kinds, e.Kind)
		}
	}
	require.Equal(t, runtime.EventDeleted, kinds[len(kinds)-1])
	// The thread may have been made again by the time that it is looked at.
	require.Contains(t, []string{runtime.ReasonThreadNotFound, runtime.ReasonRunNotFound}, errorReason(<-waited))

	fresh := &eventReader{follower: c.engine.Follow(runtime.FollowRequest{Thread: "t"})}
	defer fresh.follower.Close()
	close(work.proceed)
	require.NoError(t, fresh.readToEnd(ctx, c.readRun("t", "").ID))
	require.EqualValues(t, 1, fresh.events[0].Seq)
}

func TestForkedThreadsAreApart(t *testing.T) {
	c := newLiveCluster(t, map[string]nodeFunc{"echo": func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(`"` + c.Thread + `"`) }},
		chainSpec("g", channelsLog, "echo"))
	c.waitRun(c.beginRun("r"))
	got := callTogether(8, func(i int) error {
		id := fmt.Sprint("fork", i)
		if _, err := c.engine.ForkThread(t.Context(), runtime.ForkRequest{Source: "t", Thread: id}); err != nil {
			return err
		}
		s, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: id, Request: newInput(id)})
		if err != nil {
			return err
		}
		r, err := c.engine.WaitRun(t.Context(), id, s.Run.ID)
		if want := fmt.Sprintf(`{"log":["r","t",%q,%q],"n":2}`, id, id); err == nil && string(r.Output) != want {
			return fmt.Errorf("got %s", r.Output)
		}
		return err
	})
	require.Equal(t, map[string]int{"": 8}, got)
	require.Equal(t, `{"log":["r","t"],"n":1}`, c.summarizeThread("t").Values) //nolint:testifylint // the text counts
}
