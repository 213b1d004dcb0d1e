package replicas_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/tests/harness"
)

var watchers = flag.Int("watchers", 1000, "how many threads are watched on one server while another one runs them")

// pulseGraph runs some short supersteps, and shows a large state where it has one.
const pulseGraph = `
graph: pulse
channels:
  n: { reducer: add, default: 0 }
  steps: {}
  blob: {}
nodes:
  beat:
    expr:
      update: { n: "1" }
      goto: "state.n < state.steps ? 'beat' : '__end__'"
    destinations: [beat]
edges:
  - START -> beat
`

// watcher is one stream that reads a thread on the server that does not run it.
type watcher struct {
	thread string
	stream grpc.ServerStreamingClient[graphdv1.Event]
	seen   []uint64
}

func openWatch(ctx context.Context, c harness.Client, thread string, filter *graphdv1.EventFilter) (*watcher, error) {
	stream, err := c.Watch(ctx, &graphdv1.WatchRequest{
		ThreadId: thread, Filter: filter, Follow: true, Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
	})
	if err != nil {
		return nil, err
	}
	_, err = stream.Recv() // it is open
	return &watcher{thread: thread, stream: stream}, err
}

// readToEnd reads until the run of the thread has ended.
func (w *watcher) readToEnd() error {
	for {
		e, err := w.stream.Recv()
		if err != nil {
			return fmt.Errorf("thread %s after %v: %w", w.thread, w.seen, err)
		}
		if e.GetCursor() == nil {
			continue
		}
		w.seen = append(w.seen, e.GetCursor().GetSequence())
		if harness.IsEnded(e.GetRunState().GetState()) {
			return nil
		}
	}
}

// TestThousandsOfWatchers lets one server show thousands of threads that another
// one runs. Two of the watchers don't read, and some vanish.
func TestThousandsOfWatchers(t *testing.T) {
	const vanished, steps = 50, 1
	f := newRollingCluster(t, redistest.Start(t, "--appendfsync", "no"), 2, pulseGraph, "--metrics", "127.0.0.1:0")
	driver, onlooker := f.servers[0], f.servers[1]
	ctx, cancel := context.WithTimeout(f.serverFailed, 2*time.Minute)
	defer cancel()
	name := func(i int) string { return fmt.Sprint("t", i) }
	each := func(n int, do func(i int) error) {
		t.Helper()
		var all errgroup.Group
		all.SetLimit(64)
		for i := range n {
			all.Go(func() error { return do(i) })
		}
		require.NoError(t, all.Wait())
	}
	each(*watchers+2, func(i int) error {
		_, err := driver.CreateThread(ctx, &graphdv1.CreateThreadRequest{ThreadId: name(i), Thread: &graphdv1.Thread{Graph: "pulse"}})
		return err
	})
	idle := f.memoryBytes(1)

	// Two never read a word of a state that is larger than all buffers.
	slow := []string{name(*watchers), name(*watchers + 1)}
	values := &graphdv1.EventFilter{Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_VALUES}}
	for _, thread := range slow {
		_, err := openWatch(ctx, onlooker, thread, values)
		require.NoError(t, err)
	}
	// Some lose their connection without a word.
	gone, cut := f.newCuttableClient(1)
	for i := range vanished {
		_, err := openWatch(ctx, gone, name(i), values)
		require.NoError(t, err)
	}
	all := make([]*watcher, *watchers)
	updates := &graphdv1.EventFilter{Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_TASKS}}
	began := time.Now()
	each(len(all), func(i int) (err error) {
		all[i], err = openWatch(ctx, onlooker, name(i), updates)
		return err
	})
	f.waitSubscribed(*watchers + len(slow))
	t.Logf("%d watchers came in %v", len(all), time.Since(began))
	require.Equal(t, *watchers+len(slow)+vanished, f.followerCount(1))

	start := func(i, steps, blob int) error {
		_, err := driver.StartRun(ctx, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
			ThreadId: name(i), Start: &graphdv1.RunSpec_Input{
				Input: harness.NewPayload(fmt.Sprintf(`{"steps":%d,"blob":%q}`, steps, strings.Repeat("x", blob))),
			},
		}})
		return err
	}
	for i := range slow {
		require.NoError(t, start(*watchers+i, 100, 200<<10))
	}
	began = time.Now()
	var read errgroup.Group
	for _, w := range all {
		read.Go(w.readToEnd)
	}
	each(*watchers, func(i int) error {
		if i == *watchers/2 {
			cut()
		}
		return start(i, steps, 1)
	})
	started := time.Since(began)
	require.NoError(t, read.Wait())
	took := time.Since(began)
	want := f.listLoggedEvents(driver, name(0), updates)
	for _, w := range all {
		require.Equal(t, want, w.seen, "thread %s", w.thread)
	}
	pubsub, err := f.redis.Client.Do(ctx, "CLIENT", "LIST", "TYPE", "pubsub").Text()
	require.NoError(t, err)
	require.Equal(t, len(f.servers), strings.Count(pubsub, "id="), "one connection per server for all threads:\n%s", pubsub)
	clients, err := f.redis.Client.Do(ctx, "CLIENT", "LIST").Text()
	require.NoError(t, err)
	connections := strings.Count(clients, "id=")
	require.Less(t, connections, 100)
	busy := f.memoryBytes(1)
	t.Logf("%d runs were started in %v, and all %d events were seen after %v; %d connections to Redis; memory of the server "+
		"that shows them grew from %d to %d MB, %d KB for each watcher", *watchers, started, len(all)*len(want), took, connections,
		idle>>20, busy>>20, (busy-idle)/int64(*watchers)>>10)
	require.Less(t, (busy-idle)/int64(*watchers), int64(256<<10))
	require.Eventually(t, func() bool { return f.followerCount(1) == *watchers+len(slow) }, time.Minute, 50*time.Millisecond,
		"those who vanished are still there")
	cancel()
	f.waitSubscribed(0)
	require.Eventually(t, func() bool { return f.followerCount(1) == 0 }, time.Minute, 20*time.Millisecond)
}

// listLoggedEvents lists the events of a thread that has ended. All threads have the same.
func (f *rollingCluster) listLoggedEvents(c harness.Client, thread string, filter *graphdv1.EventFilter) []uint64 {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	w, err := openWatch(ctx, c, thread, filter)
	require.NoError(f, err)
	require.NoError(f, w.readToEnd())
	return w.seen
}

// waitSubscribed waits until servers listen to so many threads.
func (f *rollingCluster) waitSubscribed(n int) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.serverFailed, time.Minute)
	defer cancel()
	for {
		found, err := f.redis.Client.PubSubShardChannels(f.Context(), "*:h:*").Result()
		require.NoError(f, err)
		if len(found) == n {
			return
		}
		require.True(f, harness.SleepContext(ctx, 20*time.Millisecond), "servers listen to %d threads, not to %d: %.200q", len(found), n, found)
	}
}

// newCuttableClient is a client of a server whose connections can be cut.
func (f *rollingCluster) newCuttableClient(i int) (harness.Client, func()) {
	f.Helper()
	var open atomic.Pointer[net.TCPConn]
	c := harness.Dial(f.T, "passthrough:///"+f.replicas[i].address,
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			if open.Load() != nil {
				return nil, errors.New("the wire is cut")
			}
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if tcp, ok := c.(*net.TCPConn); ok {
				open.Store(tcp)
			}
			return c, err
		}))
	return c, func() {
		_ = open.Load().SetLinger(0) // no goodbye, as when a machine goes away
		_ = open.Load().Close()
	}
}

// memoryBytes is what a server has in memory, in bytes.
func (f *rollingCluster) memoryBytes(i int) int64 {
	f.Helper()
	r := f.replicas[i]
	r.mu.Lock()
	defer r.mu.Unlock()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", r.cmd.Process.Pid))
	require.NoError(f, err)
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	require.NoError(f, err)
	return pages * int64(os.Getpagesize())
}

var metricsAddressPattern = regexp.MustCompile(`"metrics":"([^"]+)"`)

// followerCount is how many streams a server has, by its own count.
func (f *rollingCluster) followerCount(i int) int {
	f.Helper()
	found := metricsAddressPattern.FindAllStringSubmatch(f.readLog(f.replicas[i]), -1)
	body := f.fetchURL("http://" + found[len(found)-1][1] + "/metrics")
	for line := range strings.Lines(body) {
		if n, ok := strings.CutPrefix(line, "graphd_followers "); ok {
			count, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
			require.NoError(f, err)
			return int(count)
		}
	}
	require.Fail(f, "the metric is missing")
	return 0
}

func (f *rollingCluster) fetchURL(url string) string {
	f.Helper()
	req, err := http.NewRequestWithContext(f.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(f, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(f, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(f, err)
	return string(data)
}
