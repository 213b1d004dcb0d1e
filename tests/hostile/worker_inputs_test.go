package hostile_test

import (
	"context"
	"fmt"
	"math"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// workerInputs are the inputs with hostile workers.
func workerInputs() []input {
	return []input{
		{"workers: one id again and again", func(ctx context.Context, a *attack) {
			a.runConcurrently(ctx, a.scaleCount(3000, 30_000), func(int) { a.connectWorker(ctx, "the-same", nil) })
		}},
		{"workers: forged held leases", func(ctx context.Context, a *attack) {
			a.connectWorker(ctx, "holder", newForgedLeases(100_000))
		}},
		{"workers: forged beats", func(ctx context.Context, a *attack) {
			leases := newForgedLeases(50_000)
			a.runConcurrently(ctx, 10*a.scale, func(i int) {
				a.connectWorker(ctx, fmt.Sprint("beater-", i), nil, &graphdv1.ConnectRequest{
					Kind: &graphdv1.ConnectRequest_Beat{Beat: &graphdv1.Beat{Number: 1, Running: leases}},
				})
			})
		}},
		{"workers: values that were never sent", func(ctx context.Context, a *attack) {
			missing := makeItems(1000, func(i int) []byte { return []byte(fmt.Sprintf("%032d", i)) })
			a.runConcurrently(ctx, a.scaleCount(300, 3000), func(i int) {
				a.connectWorker(ctx, fmt.Sprint("lacking-", i), nil, &graphdv1.ConnectRequest{
					Kind: &graphdv1.ConnectRequest_Nack{Nack: &graphdv1.Nack{LeaseToken: newForgedLeases(1)[0], Missing: missing}},
				})
			})
		}},
		{"workers: foreign results", func(ctx context.Context, a *attack) {
			for _, lease := range newForgedLeases(a.scaleCount(500, 5000)) {
				_, err := a.client.CompleteTask(ctx, &graphdv1.CompleteTaskRequest{LeaseToken: lease, Result: &graphdv1.TaskResult{}})
				a.recordAnswer("CompleteTask", err)
				_, err = a.client.RecordMemo(ctx, &graphdv1.RecordMemoRequest{LeaseToken: lease, Key: "k", Value: harness.NewPayload("1")})
				a.recordAnswer("RecordMemo", err)
			}
		}},
	}
}

// newForgedLeases look like leases, with a mark that is not right.
func newForgedLeases(n int) [][]byte {
	return makeItems(n, func(i int) []byte {
		body := fmt.Sprintf("abcdefghijkl/%x/1/1/task:run:0123456789abcdef:", i)
		return []byte(string(rune(len(body))) + body + strings.Repeat("m", 16))
	})
}

// connectWorker opens a session, says something and leaves.
func (a *attack) connectWorker(ctx context.Context, id string, held [][]byte, says ...*graphdv1.ConnectRequest) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := a.client.Connect(ctx)
	a.recordAnswer("Connect", err)
	if err != nil {
		return
	}
	_ = stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: &graphdv1.Hello{
		WorkerId: id, HeldLeases: held, Credit: &graphdv1.Credit{TotalSlots: 1000}, KeptBytes: math.MaxUint64,
		Manifest: &graphdv1.WorkerManifest{Nodes: []*graphdv1.ServedNode{{Graph: "hostile"}}},
	}}})
	_, err = stream.Recv()
	a.recordAnswer("Connect", err)
	for _, m := range says {
		if err != nil {
			return
		}
		_ = stream.Send(m)
		_, err = stream.Recv()
		a.recordAnswer("Connect", err)
	}
}
