package runtime_test

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
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// pair is two servers on one Redis: the first drives, the second looks on. Its
// poll is so rare that only signals can have told what comes earlier.
func pair(t *testing.T, url string, code map[string]node) (c *cluster, driver, onlooker *runtime.Engine) {
	t.Helper()
	open := func() *redis.Store {
		s, err := redis.Open(t.Context(), redis.Options{URL: url})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	first, second := open(), open() // closed after those who use them
	c = newCluster(t, first, 0, refused)
	c.nodes.code = code
	c.opts.Poll = time.Hour
	c.opts.Sweep = time.Hour
	c.opts.Lease = time.Hour
	t.Cleanup(c.close)
	c.compile(chain("g", channelsLog, "a"))
	onlooker = c.boot(second)
	driver = c.boot(c.store)
	return c, driver, onlooker
}

// TestOthersAreToldAtOnce lets a server look on while another one runs many
// threads: it sees what happens, though it does not look at the store by itself.
func TestOthersAreToldAtOnce(t *testing.T) {
	const threads, each = 20, 25
	server := redistest.Start(t, "--appendfsync", "no")
	var mu sync.Mutex
	emitted := map[string]time.Time{}
	start := make(chan struct{})
	_, driver, onlooker := pair(t, server.URL(""), map[string]node{"a": func(ctx context.Context, call *call) pregel.Result {
		<-start
		for i := range each {
			key := fmt.Sprintf(`"%s/%d"`, call.Thread, i)
			mu.Lock()
			emitted[key] = time.Now()
			mu.Unlock()
			call.Effects.Emit(runtime.Emission{Kind: checkpoint.EventCustom, Name: "n", Value: payload.JSON(key), Durable: true})
			if doing(ctx, 4*time.Millisecond) != nil {
				break
			}
		}
		return wrote(`"a"`)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var took [2][]time.Duration
	for i := range threads {
		thread := fmt.Sprint("t", i)
		s, err := driver.Start(ctx, runtime.StartRequest{Thread: thread, CreateThread: true, Graph: "g", Request: input("x")})
		require.NoError(t, err)
		for at, e := range []*runtime.Engine{driver, onlooker} {
			r := &reader{f: e.Follow(runtime.FollowRequest{Thread: thread}), thread: thread}
			all.Go(func() {
				defer r.f.Close()
				for {
					events, err := r.f.Next(ctx)
					if err != nil {
						t.Errorf("%s: %v", thread, err)
						return
					}
					for _, e := range events {
						if err := r.take(e); err != nil {
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
	listening(t, []*redistest.Server{server}, threads)
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

// listening waits until so many threads have a listener.
func listening(t *testing.T, servers []*redistest.Server, threads int) {
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

// follow reads a thread of a pair to the end of its run.
func follow(ctx context.Context, t *testing.T, e *runtime.Engine, run string) (*reader, func()) {
	t.Helper()
	r := &reader{f: e.Follow(runtime.FollowRequest{Thread: "t"}), thread: "t"}
	done := make(chan error, 1)
	go func() { done <- r.until(ctx, run) }()
	return r, func() {
		t.Helper()
		require.NoError(t, <-done)
		r.f.Close()
	}
}

// TestTokensReachOtherServers lets two servers look on while a node emits
// tokens with milestones in between: both see the same in the same order.
func TestTokensReachOtherServers(t *testing.T) {
	t.Run("on one server", func(t *testing.T) {
		server := redistest.Start(t, "--appendfsync", "no")
		sameTokens(t, []*redistest.Server{server}, server.URL(""))
	})
	t.Run("on a cluster", func(t *testing.T) {
		nodes := redistest.StartCluster(t, 2)
		sameTokens(t, nodes, nodes[0].URL(""))
	})
}

// upTo reads until an event of a name has come.
func (r *reader) upTo(ctx context.Context, name string) error {
	for {
		events, err := r.f.Next(ctx)
		if err != nil {
			return err
		}
		found := false
		for _, e := range events {
			if err := r.take(e); err != nil {
				return err
			}
			found = found || e.Name == name
		}
		if found {
			return nil
		}
	}
}

func sameTokens(t *testing.T, servers []*redistest.Server, url string) {
	t.Helper()
	caught, start := make(chan struct{}), make(chan struct{})
	_, driver, onlooker := pair(t, url, map[string]node{"a": func(ctx context.Context, call *call) pregel.Result {
		<-caught
		call.Effects.Emit(runtime.Emission{Kind: checkpoint.EventCustom, Name: "ready", Value: `0`, Durable: true})
		<-start
		return talkative(300)(ctx, call)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := driver.Start(ctx, runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: input("x")})
	require.NoError(t, err)
	here := &reader{f: driver.Follow(runtime.FollowRequest{Thread: "t"}), thread: "t"}
	defer here.f.Close()
	there := &reader{f: onlooker.Follow(runtime.FollowRequest{Thread: "t"}), thread: "t"}
	defer there.f.Close()
	listening(t, servers, 1)
	require.Eventually(t, func() bool { return runtime.Tuned(onlooker, "t") }, time.Minute, time.Millisecond)
	close(caught)
	require.NoError(t, here.upTo(ctx, "ready"))
	require.NoError(t, there.upTo(ctx, "ready"))
	// Who has seen this, and was told of it, reads the log no more.
	require.Eventually(t, func() bool { return runtime.Told(onlooker, "t") == there.f.After() }, time.Minute, time.Millisecond)
	close(start)
	var all sync.WaitGroup
	all.Go(func() {
		if err := here.until(ctx, s.Run.ID); err != nil {
			t.Error(err)
		}
	})
	require.NoError(t, there.until(ctx, s.Run.ID))
	all.Wait()
	told := func(r *reader) (out []string) {
		for _, e := range r.seen {
			out = append(out, fmt.Sprintf("%d %s %t %s %s %s", e.Seq, e.Kind, e.Ephemeral, e.Value, e.Node, e.Run))
		}
		return out
	}
	require.Equal(t, told(here), told(there))
	require.Len(t, slices.DeleteFunc(told(there), func(s string) bool { return !strings.Contains(s, "custom true") }), 270)
}

// TestWhoDrivesListensToNobody follows a run where it is driven: Redis tells
// that server nothing, until the run is over and another server may go on.
func TestWhoDrivesListensToNobody(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	stop := make(chan struct{})
	_, driver, other := pair(t, server.URL(""), map[string]node{"a": func(ctx context.Context, _ *call) pregel.Result {
		select {
		case <-stop:
			return wrote(`"a"`)
		case <-ctx.Done():
			return fail("cut off")
		}
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := func(e *runtime.Engine, watch runtime.Watch) string {
		s, err := e.Start(ctx, runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: input("x"), Watch: watch})
		require.NoError(t, err)
		return s.Run.ID
	}
	var r *reader
	first := start(driver, func(thread string, after uint64) {
		r = &reader{f: driver.Follow(runtime.FollowRequest{Thread: thread, After: after}), thread: thread}
	})
	defer r.f.Close()
	events, err := r.f.Ready(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, events)
	channels, err := server.Client.PubSubShardChannels(ctx, "*:h:*").Result()
	require.NoError(t, err)
	require.Empty(t, channels)
	for i := range events {
		require.NoError(t, r.take(events[i]))
	}
	close(stop)
	require.NoError(t, r.until(ctx, first))
	second := start(other, nil)
	require.NoError(t, r.until(ctx, second), "nothing but a signal tells of it in time")
}

// TestTokensForWhoComesLate lets a server begin to look on in the middle of a
// node that commits nothing.
func TestTokensForWhoComesLate(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	stop := make(chan struct{})
	_, driver, onlooker := pair(t, server.URL(""), map[string]node{"a": func(ctx context.Context, call *call) pregel.Result {
		for {
			select {
			case <-stop:
				return wrote(`"a"`)
			case <-ctx.Done():
				return fail("cut off")
			default:
				chatter(call, 1)
				_ = doing(ctx, time.Millisecond)
			}
		}
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := driver.Start(ctx, runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: input("x")})
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, doing(ctx, 50*time.Millisecond)) // nobody listens for a while
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

// chatter emits tokens and nothing that is kept.
func chatter(c *call, tokens int) {
	for i := range tokens {
		c.Effects.Emit(runtime.Emission{Kind: checkpoint.EventCustom, Name: "token", Value: payload.JSON(fmt.Sprint(i))})
	}
}

// TestTokensThatRedisCantTakeAreDropped cuts Redis off until the node has said
// everything: the node is not kept waiting, and who looks on elsewhere learns
// that tokens are missing.
func TestTokensThatRedisCantTakeAreDropped(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	network := redistest.StartProxy(t, server)
	heard, said := make(chan struct{}), 5000
	_, driver, onlooker := pair(t, network.URL(), map[string]node{"a": func(ctx context.Context, call *call) pregel.Result {
		for waiting := true; waiting; said++ {
			chatter(call, 1)
			_ = doing(ctx, time.Millisecond)
			select {
			case <-heard:
				waiting = false
			case <-ctx.Done():
				return fail("cut off")
			default:
			}
		}
		network.Hold()
		chatter(call, 5000) // does not come back if it waits for Redis
		network.Release()
		return wrote(`"a"`)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := driver.Start(ctx, runtime.StartRequest{Thread: "t", CreateThread: true, Graph: "g", Request: input("x")})
	require.NoError(t, err)
	there := &reader{f: onlooker.Follow(runtime.FollowRequest{Thread: "t"}), thread: "t"}
	defer there.f.Close()
	tokens, gaps := 0, 0
	for over := false; !over; {
		events, err := there.f.Next(ctx)
		require.NoError(t, err)
		for _, e := range events {
			require.NoError(t, there.take(e))
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

// TestBrokenConnectionsAreMadeAnew cuts off everybody who listens, and changes
// what is followed meanwhile: what happened is found in the log.
func TestBrokenConnectionsAreMadeAnew(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	c, driver, onlooker := pair(t, server.URL(""), map[string]node{"a": func(ctx context.Context, call *call) pregel.Result {
		for range 5 {
			if err := server.Client.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Err(); err != nil {
				return fail(err.Error())
			}
			talkative(10)(ctx, call)
		}
		return wrote(`"a"`)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := driver.CreateThread(ctx, runtime.NewThread{Thread: "t", Graph: "g"})
	require.NoError(t, err)
	there, over := follow(ctx, t, onlooker, "r")
	listening(t, []*redistest.Server{server}, 1)
	_, err = driver.Start(ctx, runtime.StartRequest{Thread: "t", Run: "r", Request: input("x")})
	require.NoError(t, err)
	over()
	listening(t, []*redistest.Server{server}, 0)
	stored, err := c.store.Events(ctx, "t", 0, 0)
	require.NoError(t, err)
	require.Len(t, there.durable(), len(stored))
}

// TestServersThatMayNotTalkLook lets two servers share a Redis whose channels
// they may not use: what happens is seen by looking, as often as Poll says.
func TestServersThatMayNotTalkLook(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	require.NoError(t, server.Client.Do(t.Context(), "ACL", "SETUSER", "quiet", "on", ">secret", "~*", "resetchannels", "+@all").Err())
	open := func() *redis.Store {
		s, err := redis.Open(t.Context(), redis.Options{URL: "redis://quiet:secret@" + server.Addr() + "/0"})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	first, second := open(), open()
	c := newCluster(t, first, 0, refused)
	c.nodes.code = map[string]node{"a": talkative(20), "b": talkative(20)}
	c.opts.Poll, c.opts.Sweep = 20*time.Millisecond, 50*time.Millisecond
	t.Cleanup(c.close)
	c.compile(chain("g", channelsLog, "a", "b"))
	onlooker := c.boot(second)
	driver := c.boot(first)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := driver.CreateThread(ctx, runtime.NewThread{Thread: "t", Graph: "g"})
	require.NoError(t, err)
	there, over := follow(ctx, t, onlooker, "r")
	_, err = driver.Start(ctx, runtime.StartRequest{Thread: "t", Run: "r", Request: input("x")})
	require.NoError(t, err)
	driver.Close() // another server goes on
	over()
	stored, err := first.Events(ctx, "t", 0, 0)
	require.NoError(t, err)
	require.Len(t, there.durable(), len(stored))
}
