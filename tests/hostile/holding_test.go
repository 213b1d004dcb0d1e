package hostile_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// gzipBombs are messages of some kilobytes that become megabytes, many at once.
func gzipBombs(ctx context.Context, a *attack) {
	bomb := newStartRequest("bombed", harness.NewPayload(`"`+strings.Repeat("0", 7<<20)+`"`))
	packed, err := packMessage(bomb)
	if err != nil {
		a.recordAnswer("pack", err)
		return
	}
	a.runConcurrently(ctx, 10, func(int) {
		c, err := a.server.newClient(ctx, grpc.WithCompressor(packed)) //nolint:staticcheck // the others don't know the message
		if err != nil {
			return
		}
		a.runConcurrently(ctx, a.scaleCount(10, 90), func(int) {
			_, err := c.StartRun(ctx, bomb)
			a.recordAnswer("StartRun", err)
		})
	})
}

// packedMessage is the compressed form of the only message of a connection. It is made
// once: the attacker is not to be busier than the server.
type packedMessage []byte

func packMessage(m proto.Message) (packedMessage, error) {
	text, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Do writes the message.
func (p packedMessage) Do(w io.Writer, _ []byte) error {
	_, err := w.Write(p)
	return err
}

// Type is how it is compressed.
func (packedMessage) Type() string { return "gzip" }

// halfOpenCalls are calls of which only the headers come.
func halfOpenCalls(ctx context.Context, a *attack) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.runConcurrently(ctx, 20, func(int) {
		c, err := a.server.newClient(ctx)
		if err != nil {
			return
		}
		for range a.scaleCount(600, 3000) {
			_, _ = c.Conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, startRun)
		}
	})
	a.honest.waitForRuns(ctx, 25*a.scale)
}

// idleConnections are many that only say hello.
func idleConnections(ctx context.Context, a *attack) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.runConcurrently(ctx, a.scaleCount(1000, 3000), func(int) {
		if c, err := a.server.newClient(ctx); err == nil {
			c.Conn.Connect()
			for state := c.Conn.GetState(); state != connectivity.Ready && c.Conn.WaitForStateChange(ctx, state); {
				state = c.Conn.GetState()
			}
		}
	})
	a.honest.waitForRuns(ctx, 25*a.scale)
}

// slowReadersOfLittle are streams of small events that no client reads.
func slowReadersOfLittle(ctx context.Context, a *attack) {
	a.requireGraph(ctx, "chatty", `channels: { i: { reducer: add, default: 0 } }
nodes: { n: { expr: { update: { i: "1" } } } }
edges: [START -> n]
conditional_edges:
  - { from: n, cases: [ { when: "state.i < 1500", to: n }, { to: END } ] }
`)
	start := newStartRequest("chatty", harness.NewPayload("{}"))
	start.Run.Graph = "chatty"
	_, err := a.client.StartRun(ctx, start)
	a.recordAnswer("StartRun", err)
	_, err = a.client.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: "chatty", Wait: durationpb.New(time.Minute)})
	a.recordAnswer("WaitRun", err)
	c, err := a.server.newClient(ctx, smallWindows()...)
	if err != nil {
		return
	}
	a.runConcurrently(ctx, 1000, func(int) { a.openUnread(ctx, c, "chatty") })
	a.honest.waitForRuns(ctx, 25*a.scale)
}
