package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// newServerPair makes two servers on one Redis: the first drives, the second follows.
// Its poll is so rare that only signals can have told of an earlier change.
func newServerPair(t *testing.T, url string, code map[string]nodeFunc) (c *cluster, driver, onlooker *engine.Engine) {
	t.Helper()
	open := func() *redis.Store {
		s, err := redis.Open(t.Context(), redis.Options{URL: url})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	first, second := open(), open() // closed after their users
	c = newCluster(t, first, 0, faultRefused)
	c.nodes.funcs = code
	c.opts.PollInterval = time.Hour
	c.opts.ScanInterval = time.Hour
	c.opts.LeaseTTL = time.Hour
	t.Cleanup(c.closeAll)
	c.compileGraphs(chainSpec("g", channelsLog, "a"))
	onlooker = c.startEngine(second)
	driver = c.startEngine(c.store)
	return c, driver, onlooker
}

// TestOtherServersSeeEventsAtOnce lets a server follow while another one runs many
// threads: it sees what happens, though it does not look at the store by itself.
func TestOtherServersSeeEventsAtOnce(t *testing.T) {
	const threads, each = 20, 25
	server := redistest.Start(t, "--appendfsync", "no")
	var mu sync.Mutex
	emitted := map[string]time.Time{}
	start := make(chan struct{})
	_, driver, onlooker := newServerPair(t, server.URL(""), map[string]nodeFunc{"a": func(ctx context.Context, call *nodeCall) pregel.Result {
		<-start
		for i := range each {
			key := fmt.Sprintf(`"%s/%d"`, call.Thread, i)
			mu.Lock()
			emitted[key] = time.Now()
			mu.Unlock()
			call.Effects.EmitEvent(runtime.Emission{Kind: checkpoint.EventCustom, Name: "n", Value: payload.JSON(key), Durable: true})
			if workFor(ctx, 4*time.Millisecond) != nil {
				break
			}
		}
		return logUpdate(`"a"`)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var took [2][]time.Duration
	for i := range threads {
		thread := fmt.Sprint("t", i)
		s, err := driver.Start(ctx, runtime.StartRequest{Thread: thread, CreateThread: true, Graph: "g", Request: newInput("x")})
		require.NoError(t, err)
		for at, e := range []*engine.Engine{driver, onlooker} {
			r := &eventReader{follower: e.Follow(runtime.FollowRequest{Thread: thread}), thread: thread}
			all.Go(func() {
				defer r.follower.Close()
				for {
					events, err := r.follower.Next(ctx)
					if err != nil {
						t.Errorf("%s: %v", thread, err)
						return
					}
					for _, e := range events {
						if err := r.checkEvent(e); err != nil {
							t.Error(err)
							return
						}
						if e.Kind == checkpoint.EventCustom {
							mu.Lock()
							took[at] = append(took[at], time.Since(emitted[string(e.Value)]))
							mu.Unlock()
						}
						if e.Kind == checkpoint.EventRunState && e.Run == s.Run.ID && e.State.Terminal() {
							return
						}
					}
				}
			})
		}
	}
	waitForListeners(t, []*redistest.Server{server}, threads)
	clients, err := server.Client.Do(ctx, "CLIENT", "LIST", "TYPE", "pubsub").Text()
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(clients, "id="), "one connection per server for all threads:\n%s", clients)
	close(start)
	all.Wait()
	for at := range took {
		slices.Sort(took[at])
		require.Len(t, took[at], threads*each)
	}
	middle := func(d []time.Duration) time.Duration { return d[len(d)/2] }
	t.Logf("from emission to a follower, half and 99 %%: here %v %v, elsewhere %v %v", middle(took[0]),
		took[0][len(took[0])*99/100], middle(took[1]), took[1][len(took[1])*99/100])
}

// waitForListeners waits until so many threads have a listener.
func waitForListeners(t *testing.T, servers []*redistest.Server, threads int) {
	t.Helper()
	require.Eventually(t, func() bool {
		found := 0
		for _, s := range servers {
			channels, err := s.Client.PubSubShardChannels(t.Context(), "*:h:*").Result()
			if err != nil {
				return false
			}
			found += len(channels)
		}
		return found == threads
	}, time.Minute, 2*time.Millisecond)
}

// followToEnd reads a thread of a pair to the end of its run.
func followToEnd(ctx context.Context, t *testing.T, e *engine.Engine, run string) (*eventReader, func()) {
	t.Helper()
	r := &eventReader{follower: e.Follow(runtime.FollowRequest{Thread: "t"}), thread: "t"}
	done := make(chan error, 1)
	go func() { done <- r.readToEnd(ctx, run) }()
	return r, func() {
		t.Helper()
		require.NoError(t, <-done)
		r.follower.Close()
	}
}

// TestTokensReachOtherServers lets two servers follow while a node emits tokens
// with milestones in between: both see the same in the same order.
func TestTokensReachOtherServers(t *testing.T) {
	t.Run("on one server", func(t *testing.T) {
		server := redistest.Start(t, "--appendfsync", "no")
		testSameTokens(t, []*redistest.Server{server}, server.URL(""))
	})
	t.Run("on a cluster", func(t *testing.T) {
		nodes := redistest.StartCluster(t, 2)
		testSameTokens(t, nodes, nodes[0].URL(""))
	})
}

// readToEvent reads until an event of a name has come.
func (r *eventReader) readToEvent(ctx context.Context, name string) error {
	for {
		events, err := r.follower.Next(ctx)
		if err != nil {
			return err
		}
		found := false
		for _, e := range events {
			if err := r.checkEvent(e); err != nil {
				return err
			}
			found = found || e.Name == name
		}
		if found {
			return nil
		}
	}
}

func testSameTokens(t *testing.T, servers []*redistest.Server, url string) {
	t.Helper()
	caught, start := make(chan struct{}), make(chan struct{})
	_, driver, onlooker := newServerPair(t, url, map[string]nodeFunc{"a": func(ctx context.Context, call *nodeCall) pregel.Result {
		<-caught
		call.Effects.EmitEvent(runtime.Emission{Kind: checkpoint.EventCustom, Name: "ready", Value: `0`, Durable: true})
		<-start
		return tokenNode(300)(ctx, call)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := driver.Start(ctx, runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: newInput("x")})
	require.NoError(t, err)
	here := &eventReader{follower: driver.Follow(runtime.FollowRequest{Thread: "t"}), thread: "t"}
	defer here.follower.Close()
	there := &eventReader{follower: onlooker.Follow(runtime.FollowRequest{Thread: "t"}), thread: "t"}
	defer there.follower.Close()
	waitForListeners(t, servers, 1)
	require.Eventually(t, func() bool { return engine.IsConnected(onlooker, "t") }, time.Minute, time.Millisecond)
	close(caught)
	require.NoError(t, here.readToEvent(ctx, "ready"))
	require.NoError(t, there.readToEvent(ctx, "ready"))
	// A follower that has seen this, and was notified, reads the log no more.
	require.Eventually(t, func() bool { return engine.LastPublished(onlooker, "t") == there.follower.After() }, time.Minute, time.Millisecond)
	close(start)
	var all sync.WaitGroup
	all.Go(func() {
		if err := here.readToEnd(ctx, s.Run.ID); err != nil {
			t.Error(err)
		}
	})
	require.NoError(t, there.readToEnd(ctx, s.Run.ID))
	all.Wait()
	told := func(r *eventReader) (out []string) {
		for _, e := range r.events {
			out = append(out, fmt.Sprintf("%d %s %t %s %s %s", e.Seq, e.Kind, e.Ephemeral, e.Value, e.Node, e.Run))
		}
		return out
	}
	require.Equal(t, told(here), told(there))
	require.Len(t, slices.DeleteFunc(told(there), func(s string) bool { return !strings.Contains(s, "custom true") }), 270)
}

// TestDriverDoesNotSubscribe follows a run where it is driven: Redis tells
// that server nothing, until the run is over and another server may go on.
func TestDriverDoesNotSubscribe(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	stop := make(chan struct{})
	_, driver, other := newServerPair(t, server.URL(""), map[string]nodeFunc{"a": func(ctx context.Context, _ *nodeCall) pregel.Result {
		select {
		case <-stop:
			return logUpdate(`"a"`)
		case <-ctx.Done():
			return failedResult("cut off")
		}
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := func(e *engine.Engine, watch runtime.StartHook) string {
		s, err := e.Start(ctx, runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: newInput("x"), OnStart: watch})
		require.NoError(t, err)
		return s.Run.ID
	}
	var r *eventReader
	first := start(driver, func(thread string, after uint64) {
		r = &eventReader{follower: driver.Follow(runtime.FollowRequest{Thread: thread, After: after}), thread: thread}
	})
	defer r.follower.Close()
	events, err := r.follower.ReadAvailable(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, events)
	channels, err := server.Client.PubSubShardChannels(ctx, "*:h:*").Result()
	require.NoError(t, err)
	require.Empty(t, channels)
	for i := range events {
		require.NoError(t, r.checkEvent(events[i]))
	}
	close(stop)
	require.NoError(t, r.readToEnd(ctx, first))
	second := start(other, nil)
	require.NoError(t, r.readToEnd(ctx, second), "nothing but a signal announces it in time")
}

// TestTokensReachLateFollowers lets a server begin to follow in the middle of a
// node that commits nothing.
func TestTokensReachLateFollowers(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	stop := make(chan struct{})
	_, driver, onlooker := newServerPair(t, server.URL(""), map[string]nodeFunc{"a": func(ctx context.Context, call *nodeCall) pregel.Result {
		for {
			select {
			case <-stop:
				return logUpdate(`"a"`)
			case <-ctx.Done():
				return failedResult("cut off")
			default:
				emitTokens(call, 1)
				_ = workFor(ctx, time.Millisecond)
			}
		}
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := driver.Start(ctx, runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: newInput("x")})
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, workFor(ctx, 50*time.Millisecond)) // there is no follower for a while
		f := onlooker.Follow(runtime.FollowRequest{Thread: "t"})
		for token := false; !token; {
			events, err := f.Next(ctx)
			require.NoError(t, err)
			token = slices.ContainsFunc(events, func(e checkpoint.Event) bool { return e.Ephemeral && e.Name == "token" })
		}
		f.Close()
	}
	close(stop)
	_, err = driver.WaitRun(ctx, "t", s.Run.ID)
	require.NoError(t, err)
}

// emitTokens emits tokens and nothing that is kept.
func emitTokens(c *nodeCall, tokens int) {
	for i := range tokens {
		c.Effects.EmitEvent(runtime.Emission{Kind: checkpoint.EventCustom, Name: "token", Value: payload.JSON(fmt.Sprint(i))})
	}
}

// TestTokensThatRedisCantTakeAreDropped cuts Redis off until the node has said
// everything: the node is not kept waiting, and a remote follower learns that
// tokens are missing.
func TestTokensThatRedisCantTakeAreDropped(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	network := redistest.StartProxy(t, server)
	heard, said := make(chan struct{}), 5000
	_, driver, onlooker := newServerPair(t, network.URL(), map[string]nodeFunc{"a": func(ctx context.Context, call *nodeCall) pregel.Result {
		for waiting := true; waiting; said++ {
			emitTokens(call, 1)
			_ = workFor(ctx, time.Millisecond)
			select {
			case <-heard:
				waiting = false
			case <-ctx.Done():
				return failedResult("cut off")
			default:
			}
		}
		network.Pause()
		emitTokens(call, 5000) // does not come back if it waits for Redis
		network.Resume()
		return logUpdate(`"a"`)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := driver.Start(ctx, runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: newInput("x")})
	require.NoError(t, err)
	there := &eventReader{follower: onlooker.Follow(runtime.FollowRequest{Thread: "t"}), thread: "t"}
	defer there.follower.Close()
	tokens, gaps := 0, 0
	for over := false; !over; {
		events, err := there.follower.Next(ctx)
		require.NoError(t, err)
		for _, e := range events {
			require.NoError(t, there.checkEvent(e))
			switch {
			case e.Kind == runtime.EventGap:
				gaps++
			case e.Ephemeral && e.Name == "token":
				if tokens++; tokens == 1 {
					close(heard)
				}
			case e.Kind == checkpoint.EventRunState && e.Run == s.Run.ID && e.State.Terminal():
				over = true
			}
		}
	}
	require.Positive(t, gaps, "tokens were dropped without a word")
	require.Greater(t, tokens, 100)
	require.Less(t, tokens, said)
}

// TestBrokenConnectionsAreMadeAnew cuts off all subscribers, and changes what is
// followed meanwhile: what happened is found in the log.
func TestBrokenConnectionsAreMadeAnew(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	c, driver, onlooker := newServerPair(t, server.URL(""), map[string]nodeFunc{"a": func(ctx context.Context, call *nodeCall) pregel.Result {
		for range 5 {
			if err := server.Client.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Err(); err != nil {
				return failedResult(err.Error())
			}
			tokenNode(10)(ctx, call)
		}
		return logUpdate(`"a"`)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := driver.CreateThread(ctx, runtime.CreateThreadRequest{Thread: "t", Graph: "g"})
	require.NoError(t, err)
	there, over := followToEnd(ctx, t, onlooker, "r")
	waitForListeners(t, []*redistest.Server{server}, 1)
	_, err = driver.Start(ctx, runtime.StartRequest{Thread: "t", Run: "r", Request: newInput("x")})
	require.NoError(t, err)
	over()
	waitForListeners(t, []*redistest.Server{server}, 0)
	stored, err := c.store.Events(ctx, "t", 0, 0)
	require.NoError(t, err)
	require.Len(t, there.durableEvents(), len(stored))
}

// TestServersWithoutPubSubPoll lets two servers share a Redis whose channels
// they may not use: what happens is seen by looking, as often as Poll says.
func TestServersWithoutPubSubPoll(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	require.NoError(t, server.Client.Do(t.Context(), "ACL", "SETUSER", "quiet", "on", ">secret", "~*", "resetchannels", "+@all").Err())
	open := func() *redis.Store {
		s, err := redis.Open(t.Context(), redis.Options{URL: "redis://quiet:secret@" + server.Addr() + "/0"})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	first, second := open(), open()
	c := newCluster(t, first, 0, faultRefused)
	c.nodes.funcs = map[string]nodeFunc{"a": tokenNode(20), "b": tokenNode(20)}
	c.opts.PollInterval, c.opts.ScanInterval = 20*time.Millisecond, 50*time.Millisecond
	t.Cleanup(c.closeAll)
	c.compileGraphs(chainSpec("g", channelsLog, "a", "b"))
	onlooker := c.startEngine(second)
	driver := c.startEngine(first)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := driver.CreateThread(ctx, runtime.CreateThreadRequest{Thread: "t", Graph: "g"})
	require.NoError(t, err)
	there, over := followToEnd(ctx, t, onlooker, "r")
	_, err = driver.Start(ctx, runtime.StartRequest{Thread: "t", Run: "r", Request: newInput("x")})
	require.NoError(t, err)
	driver.Close() // another server goes on
	over()
	stored, err := first.Events(ctx, "t", 0, 0)
	require.NoError(t, err)
	require.Len(t, there.durableEvents(), len(stored))
}
