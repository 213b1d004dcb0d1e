package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/internal/testkit/process"
	"github.com/graphd-dev/graphd/tests/harness"
)

// ticketGraph is a graph whose nodes take time and are counted by the worker that runs them.
const ticketGraph = `
graph: ticket
channels:
  log: { reducer: append }
  answer: {}
nodes:
  open: { remote: { endpoint: "%[1]s" } }
  read: { remote: { endpoint: "%[1]s" } }
  ask:
    ask:
      message: "'go on?'"
      update: { answer: answer, log: "['ask ' + answer]" }
  book: { remote: { endpoint: "%[1]s" } }
  tell: { remote: { endpoint: "%[1]s" } }
  pay: { remote: { endpoint: "%[1]s" } }
  close: { remote: { endpoint: "%[1]s" } }
edges:
  - START -> open -> read -> ask
  - ask -> [book, tell] -> pay -> close -> END
`

// nodeService runs the remote nodes of all servers and records what it ran.
type nodeService struct {
	graphdv1.UnimplementedNodeServiceServer

	mu      sync.Mutex
	ran     map[string]int       // how often a task was begun, by its id
	endedAt map[string]time.Time // when the newest task of a thread ended
	gaps    []time.Duration      // from there to the next task of the thread
}

func (k *nodeService) ExecuteTask(req *graphdv1.ExecuteTaskRequest, stream graphdv1.NodeService_ExecuteTaskServer) error {
	a := req.GetTask()
	k.mu.Lock()
	k.ran[a.GetTaskId()]++
	if last, ok := k.endedAt[a.GetThreadId()]; ok && a.GetNode() != "tell" { // it begins beside book
		k.gaps = append(k.gaps, time.Since(last))
	}
	delete(k.endedAt, a.GetThreadId())
	k.mu.Unlock()
	if !harness.SleepContext(stream.Context(), 20*time.Millisecond+time.Duration(rand.Int64N(int64(250*time.Millisecond)))) {
		return stream.Context().Err()
	}
	k.mu.Lock()
	// After read a person has to come first.
	if node := a.GetNode(); node != "read" {
		k.endedAt[a.GetThreadId()] = time.Now()
	}
	k.mu.Unlock()
	return stream.Send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{Result: &graphdv1.TaskResult{
		Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{
			Update: harness.NewPayload(fmt.Sprintf(`{"log":[%q]}`, a.GetNode())),
		}},
	}}})
}

// serveNodes serves the nodes and returns their address.
func (k *nodeService) serveNodes(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	graphdv1.RegisterNodeServiceServer(s, k)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return l.Addr().String()
}

// rollingCluster is some servers on one Redis that are restarted one after the other.
type rollingCluster struct {
	*testing.T

	redis        *redistest.Server
	replicas     []*replica
	servers      []harness.Client
	serverFailed context.Context // ends when a server has ended by itself
	drained      harness.Tally
}

func newRollingCluster(t *testing.T, redis *redistest.Server, n int, graph string, flags ...string) *rollingCluster {
	t.Helper()
	f := &rollingCluster{T: t, redis: redis}
	binary, dir, graphs := built.Graphd(t), t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(graphs, "graph.yaml"), []byte(graph), 0o600))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	running, failed := errgroup.WithContext(ctx)
	f.serverFailed = failed
	for i := range n {
		address := process.FreeAddress(t)
		r := &replica{address: address, logPath: filepath.Join(dir, fmt.Sprintf("server%d.log", i)), newCommand: func() *exec.Cmd {
			args := []string{"serve", "--listen", address, "--store", f.redis.URL(""), "--graphs", graphs, "--log-format", "json"}
			return exec.Command(binary, append(args, flags...)...)
		}}
		f.replicas, f.servers = append(f.replicas, r), append(f.servers, newClient(t, address))
		running.Go(func() error { return r.keepRunning(failed) })
	}
	t.Cleanup(func() {
		stop()
		require.NoError(t, running.Wait())
	})
	for i := range f.servers {
		f.waitServing(i, 1)
	}
	return f
}

// waitServing waits until a server was started so many times and answers.
func (f *rollingCluster) waitServing(i, times int) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.serverFailed, time.Minute)
	defer cancel()
	for {
		err := errors.New("it was not started")
		if strings.Count(f.readLog(f.replicas[i]), `"msg":"serving"`) >= times {
			_, err = f.servers[i].ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: 1})
		}
		if err == nil {
			return
		}
		if !harness.SleepContext(ctx, 10*time.Millisecond) {
			require.NoError(f, err, "server %d does not serve", i)
		}
	}
}

// restartAll restarts every server in turn, each when the one before serves again.
func (f *rollingCluster) restartAll() {
	f.Helper()
	for i, r := range f.replicas {
		times := strings.Count(f.readLog(r), `"msg":"serving"`)
		r.stopServer(0)
		f.waitServing(i, times+1)
	}
}

func (f *rollingCluster) readLog(r *replica) string {
	f.Helper()
	data, err := os.ReadFile(r.logPath)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(f, err)
	}
	return string(data)
}

// roamingClient begins a run, follows it, answers its interrupt and follows it to
// the end, on whichever server there is.
type roamingClient struct {
	fleet       *rollingCluster
	thread      string
	serverIndex int // the server it talks to

	run    *graphdv1.Run
	cursor *graphdv1.Cursor
	seen   []uint64
}

func (c *roamingClient) currentServer() harness.Client { return c.fleet.servers[c.serverIndex] }

func (c *roamingClient) switchServer() { c.serverIndex = (c.serverIndex + 1) % len(c.fleet.servers) }

// followRun reads streams until the run stops. open begins the first one; a stream
// that breaks, or whose server leaves, is continued on the next server.
func (c *roamingClient) followRun(ctx context.Context, open func(harness.Client) (grpc.ServerStreamingClient[graphdv1.Event], error)) error {
	opened := false
	for {
		stream, err := open(c.currentServer())
		for err == nil {
			var e *graphdv1.Event
			if e, err = stream.Recv(); err != nil {
				break
			}
			if !opened {
				opened, open = true, c.continueStream(ctx)
			}
			if end := e.GetEnd(); end != nil {
				c.run, c.cursor = end.GetRun(), end.GetResumeAt()
				if end.GetCause() == graphdv1.EndOfStream_CAUSE_RUN_STOPPED {
					return nil
				}
				c.fleet.drained.CountEvent(end.GetCause().String())
				break
			}
			if e.GetOpened() != nil {
				continue
			}
			if e.GetCursor() != nil {
				c.cursor = e.GetCursor()
				if !e.GetEphemeral() {
					c.seen = append(c.seen, c.cursor.GetSequence())
				}
			}
		}
		if err != nil && !errors.Is(err, io.EOF) && status.Code(err) != codes.Unavailable {
			return err
		}
		if err != nil {
			c.fleet.drained.CountEvent(harness.ReasonOf(err))
		}
		c.switchServer()
		if !harness.SleepContext(ctx, 5*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// continueStream continues the stream that has ended.
func (c *roamingClient) continueStream(ctx context.Context) func(harness.Client) (grpc.ServerStreamingClient[graphdv1.Event], error) {
	return func(at harness.Client) (grpc.ServerStreamingClient[graphdv1.Event], error) {
		req := &graphdv1.WatchRequest{ThreadId: c.thread, RunId: "run-" + c.thread, Filter: harness.StoredEvents(), Follow: true}
		if req.Start = (&graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}); c.cursor != nil {
			req.Start = &graphdv1.WatchRequest_After{After: c.cursor}
		}
		return at.Watch(ctx, req)
	}
}

func (c *roamingClient) driveThread(ctx context.Context) error {
	err := c.followRun(ctx, func(at harness.Client) (grpc.ServerStreamingClient[graphdv1.Event], error) {
		return at.Stream(ctx, &graphdv1.StreamRequest{RequestId: "start-" + c.thread, Filter: harness.StoredEvents(), Run: &graphdv1.RunSpec{
			ThreadId: c.thread, RunId: "run-" + c.thread, CreateThread: true, Graph: "ticket",
			Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"log":[]}`)},
		}})
	})
	if err != nil {
		return fmt.Errorf("to the question: %w", err)
	}
	if len(c.run.GetOpenInterruptIds()) != 1 {
		return fmt.Errorf("not one question is open: %v", c.run)
	}
	question := c.run.GetOpenInterruptIds()[0]
	if !harness.SleepContext(ctx, time.Duration(rand.Int64N(int64(200*time.Millisecond)))) {
		return ctx.Err()
	}
	c.switchServer()
	err = c.followRun(ctx, func(at harness.Client) (grpc.ServerStreamingClient[graphdv1.Event], error) {
		return at.Resume(ctx, &graphdv1.ResumeRequest{RequestId: "answer-" + c.thread, Filter: harness.StoredEvents(), Resume: &graphdv1.ResumeSpec{
			ThreadId: c.thread, Responses: []*graphdv1.InterruptResponse{{
				InterruptId: question, Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`"yes"`)},
			}},
		}})
	})
	if err != nil {
		return fmt.Errorf("to the end: %w", err)
	}
	return c.verifyRun()
}

// verifyRun looks at the end of the run, and at what the streams have shown.
func (c *roamingClient) verifyRun() error {
	if c.run.GetState() != graphdv1.RunState_RUN_STATE_SUCCEEDED {
		return fmt.Errorf("the run has ended as %s: %s", c.run.GetState(), c.run.GetFailure())
	}
	got := c.run.GetOutput().GetJson()
	want := `{"log":["open","read","ask yes","book","tell","pay","close"],"answer":"yes"}`
	if got != want {
		return fmt.Errorf("the run has ended with %s", got)
	}
	for i, n := range c.seen {
		if n != uint64(i)+1 {
			return fmt.Errorf("event %d was followed by %d: %v", i, n, c.seen)
		}
	}
	return nil
}

// TestRollingRestart restarts three servers in turn while runs are under way,
// interrupts are asked and streams are followed. No client notices: no run fails,
// no task runs twice, streams go on elsewhere, and so do runs, at once.
func TestRollingRestart(t *testing.T) {
	const customers = 60
	k := &nodeService{ran: make(map[string]int), endedAt: make(map[string]time.Time)}
	// A server that waited for a lease to end would wait beyond the limit.
	f := newRollingCluster(t, redistest.Start(t), 3, fmt.Sprintf(ticketGraph, k.serveNodes(t)), "--lease", "1h", "--drain-timeout", "5m")
	ctx, cancel := context.WithTimeout(f.serverFailed, *limit)
	defer cancel()
	var all errgroup.Group
	for i := range customers {
		c := &roamingClient{fleet: f, thread: fmt.Sprint("t", i), serverIndex: i % len(f.servers)}
		all.Go(func() error {
			if !harness.SleepContext(ctx, time.Duration(i)*40*time.Millisecond) {
				return ctx.Err()
			}
			if err := c.driveThread(ctx); err != nil {
				return fmt.Errorf("thread %s: %w", c.thread, err)
			}
			return nil
		})
	}
	harness.SleepContext(ctx, 300*time.Millisecond)
	began := time.Now()
	f.restartAll()
	harness.SleepContext(ctx, 300*time.Millisecond)
	f.restartAll()
	rolled := time.Since(began)
	err := all.Wait()
	for _, r := range f.replicas {
		if err != nil {
			t.Logf("%s:\n%s", filepath.Base(r.logPath), logOfThread(r.logPath, ""))
		}
	}
	require.NoError(t, err)
	k.mu.Lock()
	defer k.mu.Unlock()
	for task, times := range k.ran {
		require.Equal(t, 1, times, "task %s ran more than once", task)
	}
	require.Len(t, k.ran, 6*customers)
	takenUp := 0 // by whichever server was first
	for _, r := range f.replicas {
		log := f.readLog(r)
		require.Contains(t, log, `"msg":"stopped"`)
		require.NotContains(t, log, "drain timeout has passed")
		takenUp += strings.Count(log, `"msg":"run taken up"`)
	}
	require.Positive(t, takenUp, "no run was handed over")
	slices.Sort(k.gaps)
	t.Logf("six restarts took %v; ends of streams: %s; from one task of a thread to the next: %v, at most %v", rolled,
		&f.drained, k.gaps[len(k.gaps)/2], k.gaps[len(k.gaps)-1])
	require.Contains(t, f.drained.String(), "CAUSE_DRAINING")
}
