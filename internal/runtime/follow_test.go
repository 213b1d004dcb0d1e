package runtime_test

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
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// talkative is a node that emits tokens, and durable milestones in between.
func talkative(tokens int) node {
	return func(_ context.Context, c *call) pregel.Result {
		for i := range tokens {
			c.Effects.Emit(runtime.Emission{
				Kind: checkpoint.EventCustom, Name: "token", Value: payload.JSON(fmt.Sprint(i)), Durable: i%10 == 9,
			})
		}
		return wrote(`"` + c.Node.Name + `"`)
	}
}

// reader follows a thread and keeps what it sees.
type reader struct {
	f      *runtime.Follower
	seen   []checkpoint.Event
	thread string
}

// until reads to the end of a run, checking the order.
func (r *reader) until(ctx context.Context, run string) error {
	for {
		events, err := r.f.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := r.take(e); err != nil {
				return err
			}
			if e.Kind == checkpoint.EventRunState && e.Run == run && e.State.Terminal() {
				return nil
			}
		}
	}
}

func (r *reader) take(e checkpoint.Event) error {
	last := uint64(0)
	if n := len(r.seen); n > 0 {
		last = r.seen[n-1].Seq
	}
	r.seen = append(r.seen, e)
	switch {
	case e.Ephemeral && e.Seq != last && len(r.seen) > 1:
		return fmt.Errorf("ephemeral event of %d after %d", e.Seq, last)
	case !e.Ephemeral && len(r.seen) > 1 && e.Seq != last+1:
		return fmt.Errorf("event %d after %d", e.Seq, last)
	case e.Kind == checkpoint.EventUpdate && !strings.Contains(string(e.Value), `"n":1`):
		return fmt.Errorf("foreign event %+v", e)
	}
	return nil
}

func (r *reader) durable() []checkpoint.Event {
	var out []checkpoint.Event
	for _, e := range r.seen {
		if !e.Ephemeral {
			out = append(out, e)
		}
	}
	return out
}

func talking(t *testing.T, tokens int) *cluster {
	t.Helper()
	names := []string{"a", "b", "c", "d", "e"}
	code := map[string]node{}
	for _, n := range names {
		code[n] = talkative(tokens)
	}
	return live(t, code, chain("g", channelsLog, names...))
}

// TestFollowersSeeTheSame lets many follow a thread from different places and
// at different speeds while runs go on.
func TestFollowersSeeTheSame(t *testing.T) {
	c := talking(t, 50)
	first := c.begin("first")
	c.wait(first)
	head, err := c.store.Head(t.Context(), "t")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var all sync.WaitGroup
	readers := make([]*reader, 12)
	errs := make([]error, len(readers))
	s, err := c.engine.Start(ctx, runtime.StartRequest{Thread: "t", Graph: "g", Run: "second", Concurrency: runtime.Enqueue, Request: input("x")})
	require.NoError(t, err)
	for i := range readers {
		after := head.LastEvent * uint64(i%3) / 2
		readers[i] = &reader{thread: "t", f: c.engine.Follow(runtime.FollowRequest{Thread: "t", After: after, Values: i%2 == 0})}
		readers[i].seen = []checkpoint.Event{{Seq: after}}
		all.Go(func() { errs[i] = readers[i].until(ctx, s.Run.ID) })
	}
	all.Wait()
	stored, err := c.store.Events(t.Context(), "t", 0, 0)
	require.NoError(t, err)
	for i, r := range readers {
		require.NoError(t, errs[i], "reader %d", i)
		got := r.durable()
		require.Equal(t, uint64(len(stored)), got[len(got)-1].Seq)
		require.Len(t, got[1:], len(stored)-int(got[0].Seq), "reader %d", i)
		r.f.Close()
	}
	late := &reader{thread: "t", f: c.engine.Follow(runtime.FollowRequest{Thread: "t"})}
	defer late.f.Close()
	require.NoError(t, late.until(ctx, s.Run.ID), "who comes when all is over reads the store")
	require.Len(t, late.durable(), len(stored))
}

// TestSlowFollower does not read while much happens.
func TestSlowFollower(t *testing.T) {
	c := talking(t, 400)
	started := make(chan struct{})
	c.nodes.code["a"] = func(ctx context.Context, call *call) pregel.Result {
		<-started
		return talkative(400)(ctx, call)
	}
	s, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: input("x")})
	require.NoError(t, err)
	r := &reader{thread: "t", f: c.engine.Follow(runtime.FollowRequest{Thread: "t"})}
	defer r.f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, err := r.f.Next(ctx)
	require.NoError(t, err)
	for _, e := range first {
		require.NoError(t, r.take(e))
	}
	close(started)
	_, err = c.engine.WaitRun(ctx, "t", s.Run.ID)
	require.NoError(t, err)
	require.LessOrEqual(t, runtime.Kept(c.engine, "t"), 1024, "memory grows with the slowest reader")
	require.NoError(t, r.until(ctx, s.Run.ID))
	stored, err := c.store.Events(t.Context(), "t", 0, 0)
	require.NoError(t, err)
	require.Len(t, r.durable(), len(stored), "durable events are never dropped")
	gaps := 0
	for _, e := range r.seen {
		if e.Kind == runtime.EventGap {
			gaps++
		}
	}
	require.Positive(t, gaps, "tokens were dropped without a word")
}

func TestNobodyFollowsNothingIsKept(t *testing.T) {
	work := newBlocked()
	c := live(t, map[string]node{"a": talkative(2000), "b": work.node}, chain("g", channelsLog, "a", "b"))
	c.begin("r")
	require.Eventually(t, func() bool { return work.ran.Load() == 1 }, time.Minute, time.Millisecond)
	require.Zero(t, runtime.Kept(c.engine, "t"))
	f := c.engine.Follow(runtime.FollowRequest{Thread: "t"})
	defer f.Close()
	r := &reader{f: f}
	close(work.gate)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, r.until(ctx, c.run("t", "").ID))
}

func TestFollowingBeforeDuringAndAfter(t *testing.T) {
	c := live(t, script(newLedger(nil)), chain("g", channelsLog, "quick", "ask", "last"))
	_, err := c.engine.Follow(runtime.FollowRequest{Thread: "nothing"}).Ready(t.Context())
	require.Equal(t, runtime.ReasonThreadNotFound, reason(err))

	_, err = c.engine.CreateThread(t.Context(), runtime.NewThread{Thread: "t", Graph: "g"})
	require.NoError(t, err)
	early := &reader{f: c.engine.Follow(runtime.FollowRequest{Thread: "t"})}
	defer early.f.Close()
	events, err := early.f.Ready(t.Context())
	require.NoError(t, err)
	require.Empty(t, events)
	q := c.asking("t")
	parked := &reader{f: c.engine.Follow(runtime.FollowRequest{Thread: "t"})}
	defer parked.f.Close()
	require.NoError(t, c.respond("t", q.ID, `"yes"`, runtime.Partial))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, early.until(ctx, q.Run))
	require.NoError(t, parked.until(ctx, q.Run))
	require.Len(t, parked.seen, len(early.seen))

	c.engine.Close()
	c.boot(c.store) // a restart
	again := &reader{f: c.engine.Follow(runtime.FollowRequest{Thread: "t", After: 3})}
	again.seen = []checkpoint.Event{{Seq: 3}}
	defer again.f.Close()
	require.NoError(t, again.until(ctx, q.Run))
	require.Len(t, again.seen[1:], len(early.seen)-3)
}

func TestFollowingATrimmedLog(t *testing.T) {
	c := newCluster(t, memory.New(memory.Options{}), 0, refused)
	c.nodes.code = map[string]node{"a": talkative(2000)}
	c.compile(chain("g", channelsLog, "a"))
	c.opts.EventLimit = 50
	c.boot(c.store)
	t.Cleanup(c.close)
	r := c.begin("r")
	c.wait(r)
	head, err := c.engine.Thread(t.Context(), "t")
	require.NoError(t, err)
	require.Greater(t, head.LastEvent, uint64(200))
	require.GreaterOrEqual(t, head.FirstEvent, head.LastEvent-100, "the log is not trimmed")
	f := c.engine.Follow(runtime.FollowRequest{Thread: "t", After: 1})
	defer f.Close()
	_, err = f.Next(t.Context())
	require.Equal(t, runtime.ReasonCursorTrimmed, reason(err))
	recent := &reader{f: c.engine.Follow(runtime.FollowRequest{Thread: "t", After: head.LastEvent - 20})}
	defer recent.f.Close()
	require.NoError(t, recent.until(t.Context(), r.ID))
	require.Len(t, recent.seen, 20)
}

func TestValuesEvents(t *testing.T) {
	work := newBlocked()
	c := live(t, map[string]node{"a": update(`{"log":["a"]}`), "b": work.node}, chain("g", channelsLog, "b", "a"))
	c.begin("r")
	f := c.engine.Follow(runtime.FollowRequest{Thread: "t", Values: true})
	defer f.Close()
	for {
		events, err := f.Ready(t.Context())
		require.NoError(t, err)
		if len(events) == 0 {
			break
		}
	}
	close(work.gate)
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
					v, err = c.engine.StateAt(ctx, "t", e.Namespace, e.Checkpoint)
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
	work := newBlocked()
	c := live(t, map[string]node{"work": work.node}, chain("g", channelsLog, "work"))
	first := c.begin("r")
	f := c.engine.Follow(runtime.FollowRequest{Thread: "t"})
	defer f.Close()
	waited := make(chan error, 1)
	go func() {
		_, err := c.engine.WaitRun(t.Context(), "t", first.ID)
		waited <- err
	}()
	require.Equal(t, runtime.ReasonThreadBusy, reason(c.engine.DeleteThread(t.Context(), "t", 0, false)))
	require.NoError(t, c.engine.DeleteThread(t.Context(), "t", 0, true))
	c.begin("again")
	var kinds []checkpoint.EventKind
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		events, err := f.Next(ctx)
		if err != nil {
			require.Equal(t, runtime.ReasonThreadNotFound, reason(err))
			break
		}
		for _, e := range events {
			kinds = append(kinds, e.Kind)
		}
	}
	require.Equal(t, runtime.EventDeleted, kinds[len(kinds)-1])
	// The thread may have been made again by the time that it is looked at.
	require.Contains(t, []string{runtime.ReasonThreadNotFound, runtime.ReasonRunNotFound}, reason(<-waited))

	fresh := &reader{f: c.engine.Follow(runtime.FollowRequest{Thread: "t"})}
	defer fresh.f.Close()
	close(work.gate)
	require.NoError(t, fresh.until(ctx, c.run("t", "").ID))
	require.EqualValues(t, 1, fresh.seen[0].Seq)
}

func TestForkedThreadsAreApart(t *testing.T) {
	c := live(t, map[string]node{"echo": func(_ context.Context, c *call) pregel.Result { return wrote(`"` + c.Thread + `"`) }},
		chain("g", channelsLog, "echo"))
	c.wait(c.begin("r"))
	got := crowd(8, func(i int) error {
		id := fmt.Sprint("fork", i)
		if _, err := c.engine.ForkThread(t.Context(), runtime.ForkRequest{Source: "t", Thread: id}); err != nil {
			return err
		}
		s, err := c.engine.Start(t.Context(), runtime.StartRequest{Thread: id, Request: input(id)})
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
	require.Equal(t, `{"log":["r","t"],"n":1}`, c.story("t").Values) //nolint:testifylint // the text counts
}
