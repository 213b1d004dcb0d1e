package hostile_test

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

const startRun = graphdv1.GraphService_StartRun_FullMethodName

func newStartRequest(thread string, input *graphdv1.Payload) *graphdv1.StartRunRequest {
	return &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		Graph: "trivial", ThreadId: thread, CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: input},
	}}
}

// halfSent are requests whose clients send all but their ends, over many
// connections.
func halfSent(ctx context.Context, a *attack) {
	request := newStartRequest("half-sent", harness.NewPayload(`"`+strings.Repeat("x", 4<<20)+`"`))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var told sync.WaitGroup
	a.runConcurrently(ctx, 20, func(int) {
		c, err := a.server.newClient(ctx)
		if err != nil {
			return
		}
		for range a.scaleCount(5, 60) {
			stream, err := c.Conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, startRun)
			if err != nil {
				continue
			}
			_ = stream.SendMsg(request) // and no end
			told.Go(func() { a.recordAnswer("StartRun", stream.RecvMsg(&graphdv1.Run{})) })
		}
	})
	a.honest.waitForRuns(ctx, 25*a.scale)
	cancel()
	told.Wait()
}
