package hostile_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

var (
	long = flag.Bool("long", false, "play everything several times, larger, and judge how long the bystander waits")
	only = flag.String("only", "", "play only inputs whose names match this regular expression")
)

// input is one thing that an attacker gives a server.
type input struct {
	name string
	run  func(ctx context.Context, a *attack)
}

// attack is what the inputs share.
type attack struct {
	server *server
	client harness.Client
	honest *honestClient
	scale  int // how often or how large, 1 in the short form

	mu               sync.Mutex
	unforeseenErrors []string // calls that were answered with no reason, and inputs that were none
	counts           map[codes.Code]int
}

// recordAnswer takes in the answer of a call. Any is right but those that say that
// the server did not expect it.
func (a *attack) recordAnswer(what string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	code := status.Code(err)
	a.counts[code]++
	if code == codes.Internal || code == codes.Unknown && err != nil {
		a.unforeseenErrors = append(a.unforeseenErrors, what+": "+err.Error())
	}
}

// reportUnforeseen notes that an input did not come to what it is about.
func (a *attack) reportUnforeseen(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unforeseenErrors = append(a.unforeseenErrors, what)
}

// repeatWhileBusy makes a call that an input needs until the server has the memory for it and a
// disk that does not stall, as both errors say.
func repeatWhileBusy(ctx context.Context, call func() error) error {
	for {
		err := call()
		busy := harness.ReasonOf(err) == "STORE_BUSY" || status.Code(err) == codes.ResourceExhausted
		if !busy || !harness.SleepContext(ctx, honestPause) {
			return err
		}
	}
}

// graphInputs are inputs kept as files: each is put and run.
func graphInputs(t *testing.T) []input {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "graphs", "*.yaml"))
	require.NoError(t, err)
	var all []input
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), 900, "%s: small inputs are the unexpected ones", file)
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		all = append(all, input{"graph " + name, func(ctx context.Context, a *attack) { a.runGraph(ctx, name, string(text)) }})
	}
	return all
}

// enoughEvents is how many events show what a graph does that does not end by itself.
const enoughEvents = 15

// runGraph puts a graph and runs it to its end, or until enough events came.
func (a *attack) runGraph(ctx context.Context, name, text string) {
	_, err := a.client.PutGraph(ctx, &graphdv1.PutGraphRequest{
		DocumentName: name + ".yaml", Definition: &graphdv1.PutGraphRequest_Document{Document: text},
	})
	a.recordAnswer("PutGraph", err)
	if err != nil {
		return
	}
	given := "{}"
	if _, rest, ok := strings.Cut(text, "# input: "); ok {
		given, _, _ = strings.Cut(rest, "\n")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for n := range a.scale {
		thread := name + "-" + string(rune('a'+n%26)) + strings.Repeat("x", n/26)
		stream, err := a.client.Stream(ctx, &graphdv1.StreamRequest{Run: &graphdv1.RunSpec{
			Graph: name, ThreadId: thread, CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(given)},
		}})
		for heard := 0; err == nil && heard < enoughEvents*a.scale; heard++ {
			_, err = stream.Recv()
		}
		if !errors.Is(err, io.EOF) {
			a.recordAnswer("Stream", err)
		}
		_, err = a.client.GetState(ctx, &graphdv1.GetStateRequest{ThreadId: thread})
		a.recordAnswer("GetState", err)
		a.deleteThread(context.WithoutCancel(ctx), thread)
	}
}

// deleteThread ends what runs in a thread, so that the next input is measured by itself.
func (a *attack) deleteThread(ctx context.Context, thread string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err := a.client.DeleteThread(ctx, &graphdv1.DeleteThreadRequest{ThreadId: thread, Force: true})
	a.recordAnswer("DeleteThread", err)
}

// TestHostileSet plays all inputs, some at the same time, against one server. It
// lives, an honest client is served all the time, and memory comes back.
func TestHostileSet(t *testing.T) {
	s := startServer(t)
	b := startHonestClient(t, s)
	c, err := s.newClient(t.Context())
	require.NoError(t, err)
	b.waitForRuns(t.Context(), 20)
	a := &attack{server: s, client: c, honest: b, scale: 1, counts: make(map[codes.Code]int)}
	if *long {
		a.scale = 3
	}
	a.warmUp(t)
	before, err := s.collectHeap(t.Context())
	require.NoError(t, err)

	all := slices.Concat(graphInputs(t), readInputs(), endpointInputs(), workerInputs(), callInputs())
	require.GreaterOrEqual(t, len(all), 60)
	chosen := regexp.MustCompile(*only)
	all = slices.DeleteFunc(all, func(in input) bool { return !chosen.MatchString(in.name) })
	began, start, highest := b.runCount(), time.Now(), int64(0)
	for _, in := range all {
		if !a.runInput(t, in) || b.lastError() != nil {
			break
		}
		if peak := s.peakBytes.Load(); *long || peak > highest {
			highest = peak
			t.Logf("%-32s %4d MiB at most so far, bystander's p99 so far %v, after %v",
				in.name, peak>>20, b.timeQuantile(began, 0.99), time.Since(start).Round(10*time.Millisecond))
		}
	}
	if !s.isAlive() || b.lastError() != nil { // first, so that the reason is what the output ends with
		t.Logf("the end of the server's log:\n%s", s.logTail)
	}
	require.True(t, s.isAlive(), "the server is gone")
	a.endRuns(t)
	after := a.waitMemoryFreed(t, before+kept)
	b.stopRunning()
	t.Logf("%d inputs; bystander: %d runs, %d calls repeated, p50 %v, p99 %v, longest %v; heap: %d MiB before, %d after; "+
		"memory of its own: %d MiB at most; answers: %v",
		len(all), b.runCount()-began, b.repeatCount(), b.timeQuantile(began, 0.5), b.timeQuantile(began, 0.99), b.timeQuantile(began, 1),
		before>>20, after>>20, s.peakBytes.Load()>>20, a.counts)
	require.NoError(t, b.lastError())
	require.Empty(t, a.unforeseenErrors)
	require.Less(t, s.peakBytes.Load(), memoryLimit)
	if *long {
		require.Less(t, b.timeQuantile(began, 0.99), time.Second)
	}
}

// inputTimeout is how long an input may take that should have ended by itself.
const inputTimeout = 10 * time.Minute

// runInput plays an input, and reports whether the server lives.
func (a *attack) runInput(t *testing.T, in input) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), inputTimeout)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		in.run(ctx, a)
	}()
	select {
	case <-done:
	case <-a.server.exited:
		t.Errorf("%s ended the server:\n%s", in.name, a.server.logTail)
		return false
	}
	if ctx.Err() != nil {
		t.Errorf("%s did not end within %v", in.name, inputTimeout)
	}
	return true
}

// kept is how many bytes of heap a server may use more than before when it is over: what its
// caches hold by default (--graph-cache-bytes, --schema-cache-bytes, --max-recent-events and
// --max-recent-threads), which may have been empty before.
const kept = (64 + 32 + 64 + 32) << 20

// endRuns deletes the threads that are still busy, but those of the honest client.
func (a *attack) endRuns(t *testing.T) {
	t.Helper()
	for token := ""; ; {
		var page *graphdv1.ListThreadsResponse
		require.NoError(t, repeatWhileBusy(t.Context(), func() (err error) {
			page, err = a.client.ListThreads(t.Context(), &graphdv1.ListThreadsRequest{PageSize: 500, PageToken: token})
			return err
		}))
		for _, thread := range page.GetThreads() {
			if thread.GetState() == graphdv1.ThreadState_THREAD_STATE_BUSY && !strings.HasPrefix(thread.GetThreadId(), "bystander") {
				_, err := a.client.DeleteThread(t.Context(), &graphdv1.DeleteThreadRequest{ThreadId: thread.GetThreadId(), Force: true})
				a.recordAnswer("DeleteThread", err)
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			return
		}
	}
}

// waitMemoryFreed waits until the server uses no more than limit bytes of heap, and returns
// how many it uses. What the inputs held may end a moment after they have ended.
func (a *attack) waitMemoryFreed(t *testing.T, limit int64) (used int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		now, err := a.server.collectHeap(ctx)
		if err == nil {
			used = now
		}
		if err == nil && used < limit || !a.server.isAlive() {
			return used
		}
		if !harness.SleepContext(ctx, time.Second) {
			require.FailNow(t, "memory is not given back", "the heap stays at %d MiB, want less than %d (%v)", used>>20, limit>>20, err)
		}
	}
}
