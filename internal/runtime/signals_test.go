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
	c = newCluster(t, open(), 0, refused)
	c.nodes.code = code
	c.opts.Poll = time.Hour
	c.opts.Sweep = time.Hour
	t.Cleanup(c.close)
	c.compile(chain("g", channelsLog, "a"))
	onlooker = c.boot(open())
	driver = c.boot(c.store)
	return c, driver, onlooker
}

// TestOthersAreToldAtOnce lets a server look on while another one runs many
// threads, and measures how much later it sees what happens.
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
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
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
	listening(t, server, threads)
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
	require.Less(t, middle(took[1])-middle(took[0]), 20*time.Millisecond)
}

// listening waits until every thread of a server has a listener.
func listening(t *testing.T, server *redistest.Server, threads int) {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := server.Client.PubSubShardChannels(t.Context(), "*:h:*").Result()
		return err == nil && len(n) == threads
	}, 10*time.Second, 2*time.Millisecond)
}
