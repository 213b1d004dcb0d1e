package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

const trivial = `graph: trivial
channels: { n: { default: 0 } }
nodes: { add: { expr: { update: { n: "state.n + 1" } } } }
edges: [START -> add -> END]
`

// honestClient runs a trivial graph all the time.
type honestClient struct {
	harness.Client

	stop chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex
	times    []time.Duration
	repeated int // calls that were made again, for the disk stalled
	failed   error
}

func startHonestClient(t *testing.T, s *server) *honestClient {
	t.Helper()
	c, err := s.newClient(t.Context())
	require.NoError(t, err)
	require.NoError(t, repeatWhileBusy(t.Context(), func() error {
		_, err := c.PutGraph(t.Context(), &graphdv1.PutGraphRequest{
			DocumentName: "trivial.yaml", Definition: &graphdv1.PutGraphRequest_Document{Document: trivial},
		})
		return err
	}))
	b := &honestClient{Client: c, stop: make(chan struct{})}
	b.done.Go(func() { b.keepRunning(t.Context()) })
	return b
}

// honestPause is how long the client rests after each run.
const honestPause = 20 * time.Millisecond

func (b *honestClient) keepRunning(ctx context.Context) {
	tick := time.NewTicker(honestPause)
	defer tick.Stop()
	for n := 0; ; n++ {
		began := time.Now()
		err := b.runGraph(ctx, fmt.Sprintf("bystander-%d", n))
		b.mu.Lock()
		b.times = append(b.times, time.Since(began))
		if err != nil && b.failed == nil {
			b.failed = fmt.Errorf("run %d: %w", n, err)
		}
		b.mu.Unlock()
		select {
		case <-b.stop:
			return
		case <-tick.C:
		}
	}
}

// runGraph has as long as a patient client would wait; how long it takes is reported. It
// repeats a call that got STORE_BUSY, as the error says: a disk that stalls is
// not what the inputs do.
func (b *honestClient) runGraph(ctx context.Context, thread string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := b.followRun(ctx, thread)
		if harness.ReasonOf(err) != "STORE_BUSY" {
			return err
		}
		b.mu.Lock()
		b.repeated++
		b.mu.Unlock()
		harness.SleepContext(ctx, honestPause)
	}
}

// followRun starts the run of a thread, or meets it again, and follows it to its end.
func (b *honestClient) followRun(ctx context.Context, thread string) error {
	stream, err := b.Stream(ctx, &graphdv1.StreamRequest{RequestId: thread, Run: &graphdv1.RunSpec{
		Graph: "trivial", ThreadId: thread, CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"n":1}`)},
	}})
	if err != nil {
		return err
	}
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if end := e.GetEnd(); end != nil {
			if got := end.GetRun().GetOutput().GetJson(); got != `{"n":2}` {
				return fmt.Errorf("ended with %v", end)
			}
			return nil
		}
	}
}

func (b *honestClient) stopRunning() {
	close(b.stop)
	b.done.Wait()
}

func (b *honestClient) lastError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// timeQuantile is the time that a part of the runs since one of them did not exceed.
func (b *honestClient) timeQuantile(since int, part float64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if since >= len(b.times) {
		return 0
	}
	sorted := slices.Sorted(slices.Values(b.times[since:]))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// repeatCount is how many calls were made again.
func (b *honestClient) repeatCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.repeated
}

// waitForRuns waits until n further runs have ended.
func (b *honestClient) waitForRuns(ctx context.Context, n int) {
	tick := time.NewTicker(honestPause)
	defer tick.Stop()
	for until := b.runCount() + n; b.runCount() < until && b.lastError() == nil; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *honestClient) runCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.times)
}
