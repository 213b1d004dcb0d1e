package runtime_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Glance makes every faulty store of the crash tests one that shows a thread at
// once.
func (g *gate) Glance(ctx context.Context, thread, request string) (checkpoint.Glance, error) {
	return pass(ctx, g, func() (checkpoint.Glance, error) {
		if glancer, ok := g.Store.(checkpoint.Glancer); ok {
			return glancer.Glance(ctx, thread, request)
		}
		return glanceAt(ctx, g.Store, thread, request)
	})
}

// glanceAt puts a glance together from its parts.
func glanceAt(ctx context.Context, s checkpoint.Store, thread, request string) (out checkpoint.Glance, err error) {
	if out.Head, err = s.Head(ctx, thread); err != nil {
		return out, err
	}
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

// commands counts what a Redis server was asked since the last time.
func commands(t *testing.T, server *redistest.Server) map[string]int {
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

// TestExchangesWithRedis counts what a run costs besides its commits: nothing in
// a new thread, one look when it goes on with an answer.
func TestExchangesWithRedis(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	s, err := redis.Open(t.Context(), redis.Options{URL: server.URL("")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	code := map[string]node{
		"before": func(context.Context, *call) pregel.Result { return wrote(`"before"`) },
		"ask":    func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(`"?"`)) },
		"after":  func(context.Context, *call) pregel.Result { return wrote(`"after"`) },
	}
	w := newWorldOn(t, s, runtime.Options{Sweep: time.Hour, Poll: time.Hour}, code, chain("g", channelsLog, "before", "ask", "after"))
	follow := func(start func(runtime.Watch) (runtime.Started, error)) (runtime.Started, runtime.Stop) {
		var f *runtime.Follower
		st, err := start(func(thread string, after uint64) {
			f = w.engine.Follow(runtime.FollowRequest{Thread: thread, After: after})
		})
		require.NoError(t, err)
		defer f.Close()
		for {
			events, err := f.Next(t.Context())
			require.NoError(t, err)
			for _, e := range events {
				if e.Kind == checkpoint.EventRunState && runtime.Stopped(e.State) {
					stop, ok := f.Stop(st.Run.ID, e.Seq)
					require.True(t, ok)
					return st, stop
				}
			}
		}
	}
	begin := func(watch runtime.Watch) (runtime.Started, error) {
		return w.engine.Start(t.Context(), runtime.StartRequest{Graph: "g", Request: input("x"), Watch: watch})
	}
	follow(begin) // the server learns the scripts
	commands(t, server)
	first, stop := follow(begin)
	used := commands(t, server)
	require.Equal(t, 3, used["pubsub|shardnumsub"], "changes: the input, one superstep, and the pause")
	require.Equal(t, 3, used["hmget"], "each reads the head, and nothing else does")
	require.Zero(t, used["hgetall"])
	same := func() {
		run, err := w.engine.Run(t.Context(), first.Run.Thread, first.Run.ID)
		require.NoError(t, err)
		stop.Run.Created, stop.Run.Updated = stop.Run.Created.UTC().Round(0), stop.Run.Updated.UTC().Round(0)
		require.Equal(t, run, stop.Run)
	}
	same()
	require.Len(t, stop.Open, 1)
	question := stop.Open[0]

	answer := func(watch runtime.Watch) (runtime.Started, error) {
		return w.engine.Resume(t.Context(), runtime.ResumeRequest{
			Thread: first.Run.Thread, Watch: watch, RequestID: "r", Digest: "d",
			Responses: []runtime.Response{{Interrupt: question, Value: payload.JSON(`"yes"`)}},
		})
	}
	_, err = w.engine.Resume(t.Context(), runtime.ResumeRequest{ // the server learns the look
		Thread: first.Run.Thread, Responses: []runtime.Response{{Interrupt: "none", Value: "1"}},
	})
	require.Error(t, err)
	commands(t, server)
	_, stop = follow(answer)
	used = commands(t, server)
	require.Equal(t, 3, used["pubsub|shardnumsub"], "changes: the answer, and two supersteps")
	require.Equal(t, 3+2, used["hmget"], "each reads the head; a look reads the head and the run")
	require.Equal(t, 1, used["hgetall"], "within the look")
	require.Equal(t, checkpoint.RunSucceeded, stop.Run.State)
	same()
	again, err := answer(nil)
	require.NoError(t, err)
	require.True(t, again.Attached)
}
