package hostile_test

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// gzipBombs are messages of some kilobytes that become megabytes, many at once.
func gzipBombs(ctx context.Context, a *attack) {
	zeros := value(`"` + strings.Repeat("0", 7<<20) + `"`)
	a.flood(ctx, 10, func(int) {
		c, err := a.server.dial(ctx, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))
		if err != nil {
			return
		}
		a.flood(ctx, 30*a.scale, func(int) {
			_, err := c.StartRun(ctx, startOf("bombed", zeros))
			a.heard("StartRun", err)
		})
	})
}

// halfOpenCalls are calls of which only the headers come.
func halfOpenCalls(ctx context.Context, a *attack) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.flood(ctx, 20, func(int) {
		c, err := a.server.dial(ctx)
		if err != nil {
			return
		}
		for range 1000 * a.scale {
			_, _ = c.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, startRun)
		}
	})
	a.bystander.more(ctx, 25*a.scale)
}

// idleConnections are many that only say hello.
func idleConnections(ctx context.Context, a *attack) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.flood(ctx, 3000, func(int) {
		if c, err := a.server.dial(ctx); err == nil {
			c.conn.Connect()
			for state := c.conn.GetState(); state != connectivity.Ready && c.conn.WaitForStateChange(ctx, state); {
				state = c.conn.GetState()
			}
		}
	})
	a.bystander.more(ctx, 25*a.scale)
}

// slowReadersOfLittle are streams of small events that nobody reads.
func slowReadersOfLittle(ctx context.Context, a *attack) {
	a.put(ctx, "chatty", `channels: { i: { reducer: add, default: 0 } }
nodes: { n: { expr: { update: { i: "1" } } } }
edges: [START -> n]
conditional_edges:
  - { from: n, cases: [ { when: "state.i < 1500", to: n }, { to: END } ] }
`)
	start := startOf("chatty", value("{}"))
	start.Run.Graph = "chatty"
	_, err := a.client.StartRun(ctx, start)
	a.heard("StartRun", err)
	_, err = a.client.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: "chatty", Wait: durationpb.New(time.Minute)})
	a.heard("WaitRun", err)
	c, err := a.server.dial(ctx, window()...)
	if err != nil {
		return
	}
	a.flood(ctx, 1000, func(int) { a.open(ctx, c, "chatty") })
	a.bystander.more(ctx, 25*a.scale)
}
