package engine_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// ViewThread makes every faulty store of the crash tests one that shows a thread at
// once.
func (f *faultyStore) ViewThread(ctx context.Context, thread, request string) (*checkpoint.ThreadView, error) {
	return callWithFault(ctx, f, func() (*checkpoint.ThreadView, error) {
		if viewer, ok := f.Store.(checkpoint.ThreadViewer); ok {
			return viewer.ViewThread(ctx, thread, request)
		}
		return buildThreadView(ctx, f.Store, thread, request)
	})
}

// buildThreadView builds a view from its parts.
func buildThreadView(ctx context.Context, s checkpoint.Store, thread, request string) (*checkpoint.ThreadView, error) {
	head, err := s.Head(ctx, thread)
	if err != nil {
		return nil, err
	}
	out := &checkpoint.ThreadView{Head: head}
	if run, err := s.Run(ctx, thread, out.Head.Run); err == nil {
		out.Run = &run
	}
	if cp, err := s.Checkpoint(ctx, thread, "", out.Head.Checkpoint); err == nil && out.Head.Checkpoint != "" {
		out.Checkpoint = cp
		if p, err := s.Pending(ctx, thread, cp.ID); err == nil {
			out.Pending = &p
		}
	}
	if all, err := s.Interrupts(ctx, checkpoint.InterruptQuery{Thread: thread}); err == nil {
		out.Interrupts = &all
	}
	if old, err := s.Request(ctx, thread, request); err == nil {
		out.Requests = map[string]*checkpoint.Request{request: &old}
	} else if errors.Is(err, checkpoint.ErrRequestNotFound) && request != "" {
		out.Requests = map[string]*checkpoint.Request{request: nil}
	}
	return out, nil
}

// countCommands counts what a Redis server was asked since the last time.
func countCommands(t *testing.T, server *redistest.Server) map[string]int {
	t.Helper()
	text, err := server.Client.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	require.NoError(t, server.Client.ConfigResetStat(t.Context()).Err())
	out := map[string]int{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		n, _, _ := strings.Cut(rest, ",")
		out[name], _ = strconv.Atoi(n)
	}
	return out
}

// readCountingStore counts what is asked of a store besides changes and what is due.
type readCountingStore struct {
	*redis.Store
	views, reads atomic.Int64
}

func (s *readCountingStore) ViewThread(ctx context.Context, thread, request string) (*checkpoint.ThreadView, error) {
	s.views.Add(1)
	return s.Store.ViewThread(ctx, thread, request)
}

func (s *readCountingStore) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	s.reads.Add(1)
	return s.Store.Head(ctx, thread)
}

func (s *readCountingStore) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	s.reads.Add(1)
	return s.Store.Checkpoint(ctx, thread, namespace, id)
}

func (s *readCountingStore) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	s.reads.Add(1)
	return s.Store.Pending(ctx, thread, id)
}

func (s *readCountingStore) Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error) {
	s.reads.Add(1)
	return s.Store.Events(ctx, thread, after, limit)
}

func (s *readCountingStore) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	s.reads.Add(1)
	return s.Store.Run(ctx, thread, run)
}

func (s *readCountingStore) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	s.reads.Add(1)
	return s.Store.Interrupt(ctx, thread, id)
}

func (s *readCountingStore) Interrupts(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	s.reads.Add(1)
	return s.Store.Interrupts(ctx, q)
}

func (s *readCountingStore) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	s.reads.Add(1)
	return s.Store.Request(ctx, thread, id)
}

// waitReleased waits until an engine holds no thread: a call that comes between the stop
// of a run and the release of its thread looks again.
func waitReleased(t *testing.T, e *engine.Engine) {
	t.Helper()
	require.Eventually(t, func() bool { held, _, _ := engine.CountHeld(e); return held == 0 }, time.Minute, time.Millisecond)
}

// takeCounts returns how many looks and reads there were since the last time.
func (s *readCountingStore) takeCounts() [2]int64 { return [2]int64{s.views.Swap(0), s.reads.Swap(0)} }

// TestExchangesWithRedis counts what a run costs besides its commits: nothing in
// a new thread, one look when it goes on with an answer. Where nodes only
// compute and ask, beginning and going on are one commit each.
func TestExchangesWithRedis(t *testing.T) {
	for name, c := range map[string]struct {
		spec          func(*graph.Spec) *graph.Spec
		begin, answer int // changes
	}{
		"nodes with effects":            {func(s *graph.Spec) *graph.Spec { return s }, 3, 3},
		"nodes that only compute":       {func(s *graph.Spec) *graph.Spec { return withExpressions(s, "before", "ask", "after") }, 1, 1},
		"an effect before the question": {func(s *graph.Spec) *graph.Spec { return withExpressions(s, "ask", "after") }, 2, 1},
		"an effect after it":            {func(s *graph.Spec) *graph.Spec { return withExpressions(s, "before", "ask") }, 1, 2},
	} {
		t.Run(name, func(t *testing.T) { countExchanges(t, c.spec, c.begin, c.answer) })
	}
}

func countExchanges(t *testing.T, made func(*graph.Spec) *graph.Spec, toBegin, toAnswer int) {
	t.Helper()
	server := redistest.Start(t, "--appendfsync", "no")
	s, err := redis.Open(t.Context(), redis.Options{URL: server.URL("partitions=1")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	store := &readCountingStore{Store: s}
	code := map[string]nodeFunc{
		"before": func(context.Context, *nodeCall) pregel.Result { return logUpdate(`"before"`) },
		"ask":    func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(c.askNext(`"?"`)) },
		"after":  func(context.Context, *nodeCall) pregel.Result { return logUpdate(`"after"`) },
	}
	w := newFixtureOn(t, store, engine.Options{ScanInterval: time.Hour, PollInterval: time.Hour, CommitTime: time.Hour}, code,
		made(chainSpec("g", channelsLog, "before", "ask", "after")))
	follow := func(start func(runtime.StartHook) (*runtime.Started, error)) (*runtime.Started, runtime.StoppedRun) {
		var f *feed.Follower
		st, err := start(func(thread string, after uint64) {
			f = w.engine.Follow(runtime.FollowRequest{Thread: thread, After: after})
		})
		require.NoError(t, err)
		defer f.Close()
		for {
			events, err := f.Next(t.Context())
			require.NoError(t, err)
			for _, e := range events {
				if e.Kind == checkpoint.EventRunState && runtime.IsStopped(e.State) {
					stop, ok := f.StoppedRun(st.Run.ID, e.Seq)
					require.True(t, ok)
					waitReleased(t, w.engine)
					return st, stop
				}
			}
		}
	}
	begin := func(watch runtime.StartHook) (*runtime.Started, error) {
		return w.engine.Start(t.Context(), runtime.StartRequest{Graph: "g", Request: newInput("x"), OnStart: watch})
	}
	follow(begin) // the server learns the scripts
	store.takeCounts()
	countCommands(t, server)
	first, stop := follow(begin)
	used := countCommands(t, server)
	require.Equal(t, toBegin, used["pubsub|shardnumsub"], "with effects the changes are the input, one superstep, and the pause")
	require.Equal(t, [2]int64{0, 0}, store.takeCounts(), "nothing else is asked")
	same := func() {
		run, err := w.engine.Run(t.Context(), nil, first.Run.Thread, first.Run.ID)
		require.NoError(t, err)
		stop.Run.Created, stop.Run.Updated = stop.Run.Created.UTC().Round(0), stop.Run.Updated.UTC().Round(0)
		require.Equal(t, run, stop.Run)
	}
	same()
	require.Len(t, stop.OpenInterrupts, 1)
	question := stop.OpenInterrupts[0]

	answer := func(watch runtime.StartHook) (*runtime.Started, error) {
		return w.engine.Resume(t.Context(), runtime.ResumeRequest{
			Thread: first.Run.Thread, OnStart: watch, RequestID: "r", Digest: "d",
			Responses: []runtime.Response{{Interrupt: question, Value: payload.JSON(`"yes"`)}},
		})
	}
	_, err = w.engine.Resume(t.Context(), runtime.ResumeRequest{ // the server learns the look
		Thread: first.Run.Thread, Responses: []runtime.Response{{Interrupt: "none", Value: "1"}},
	})
	require.Error(t, err)
	store.takeCounts()
	countCommands(t, server)
	_, stop = follow(answer)
	used = countCommands(t, server)
	require.Equal(t, toAnswer, used["pubsub|shardnumsub"], "with effects the changes are the answer, and two supersteps")
	require.Equal(t, [2]int64{1, 0}, store.takeCounts(), "one look, and nothing else")
	require.Equal(t, checkpoint.RunSucceeded, stop.Run.State)
	same()
	again, err := answer(nil)
	require.NoError(t, err)
	require.True(t, again.IsAttached)
}
