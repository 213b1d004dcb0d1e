package upgrade_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// payWorker is a worker for the graph "pay": it charges once, by a memo, asks
// whether that was right, and writes a receipt.
type payWorker struct {
	client  harness.Client
	stop    context.CancelFunc
	charges atomic.Int32

	mu            sync.Mutex
	runningTokens map[string]bool // tokens of leases
}

func (s *server) startPayWorker(tb testing.TB) *payWorker {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	tb.Cleanup(cancel)
	stream, err := s.Connect(ctx)
	require.NoError(tb, err)
	require.NoError(tb, stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
		WorkerId: "cashier", Credit: &graphdv1.Credit{TotalSlots: 4},
		Manifest: &graphdv1.WorkerManifest{
			BuildId: "b1", Nodes: []*graphdv1.ServedNode{{Graph: "pay"}}, Features: []string{"drift"},
		},
	}}}))
	first, err := stream.Recv()
	require.NoError(tb, err)
	require.NotNil(tb, first.GetWelcome())
	w := &payWorker{client: s.Client, stop: cancel, runningTokens: make(map[string]bool)}
	go w.sendHeartbeats(ctx, stream, first.GetWelcome().GetBeatInterval().AsDuration())
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			if m.GetTask() != nil {
				token := m.GetTask().GetLease().GetToken()
				w.setRunning(token, true)
				go func() {
					defer w.setRunning(token, false)
					w.runTask(ctx, m.GetTask())
				}()
			}
		}
	}()
	return w
}

// setRunning notes that a task runs, or that it does not any more.
func (w *payWorker) setRunning(token []byte, runs bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.runningTokens, string(token)); runs {
		w.runningTokens[string(token)] = true
	}
}

// sendHeartbeats keeps the connection and the leases.
func (w *payWorker) sendHeartbeats(ctx context.Context, stream graphdv1.WorkerService_ConnectClient, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b := &graphdv1.Beat{Number: n}
		w.mu.Lock()
		for token := range w.runningTokens {
			b.Running = append(b.Running, []byte(token))
		}
		w.mu.Unlock()
		if stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Beat{Beat: b}}) != nil {
			return
		}
	}
}

func (w *payWorker) runTask(ctx context.Context, a *graphdv1.TaskAssignment) {
	var receipt, answer string
	var used []*graphdv1.UsedAnswer
	for _, e := range a.GetJournal().GetEntries() {
		if e.GetMemo() != nil {
			receipt = e.GetMemo().GetJson()
		}
		if e.GetAnswer() != nil {
			answer = e.GetAnswer().GetValue().GetJson()
			used = append(used, &graphdv1.UsedAnswer{Seen: e.GetAnswer().GetSeen()})
		}
	}
	token := a.GetLease().GetToken()
	if receipt == "" {
		w.charges.Add(1)
		amount := a.GetChannels()["amount"].GetJson()
		memo, err := w.client.RecordMemo(ctx, &graphdv1.RecordMemoRequest{
			LeaseToken: token, Key: "charge", Value: harness.NewPayload(`{"charged":` + amount + `}`),
		})
		if err != nil {
			return
		}
		receipt = memo.GetValue().GetJson()
	}
	result := &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Interrupted{Interrupted: &graphdv1.TaskInterrupted{
		Asks: []*graphdv1.Ask{{Value: harness.NewPayload(`{"was it right":` + receipt + `}`)}},
	}}}
	if answer != "" {
		result = &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{
			Update: harness.NewPayload(`{"receipt":` + receipt + `,"log":[` + answer + `]}`),
		}}}
	}
	result.Used = used
	_, _ = w.client.CompleteTask(ctx, &graphdv1.CompleteTaskRequest{LeaseToken: token, Result: result})
}
