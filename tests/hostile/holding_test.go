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
)

// gzipBombs are messages of some kilobytes that become megabytes, many at once.
func gzipBombs(ctx context.Context, a *attack) {
	bomb := startOf("bombed", value(`"`+strings.Repeat("0", 7<<20)+`"`))
	packed, err := pack(bomb)
	if err != nil {
		a.heard("pack", err)
		return
	}
	a.flood(ctx, 10, func(int) {
		c, err := a.server.dial(ctx, grpc.WithCompressor(packed)) //nolint:staticcheck // the others don't know the message
		if err != nil {
			return
		}
		a.flood(ctx, a.many(10, 90), func(int) {
			_, err := c.StartRun(ctx, bomb)
			a.heard("StartRun", err)
		})
	})
}

// packed is the compressed form of the only message of a connection. It is made
// once: the attacker is not to be busier than the server.
type packed []byte

func pack(m proto.Message) (packed, error) {
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
func (p packed) Do(w io.Writer, _ []byte) error {
	_, err := w.Write(p)
	return err
}

// Type is how it is compressed.
func (packed) Type() string { return "gzip" }

// halfOpenCalls are calls of which only the headers come.
func halfOpenCalls(ctx context.Context, a *attack) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.flood(ctx, 20, func(int) {
		c, err := a.server.dial(ctx)
		if err != nil {
			return
		}
		for range a.many(600, 3000) {
			_, _ = c.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, startRun)
		}
	})
	a.bystander.more(ctx, 25*a.scale)
}

// idleConnections are many that only say hello.
func idleConnections(ctx context.Context, a *attack) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.flood(ctx, a.many(1000, 3000), func(int) {
		if c, err := a.server.dial(ctx); err == nil {
			c.conn.Connect()
			for state := c.conn.GetState(); state != connectivity.Ready && c.conn.WaitForStateChange(ctx, state); {
				state = c.conn.GetState()
			}
		}
	})
	a.bystander.more(ctx, 25*a.scale)
}

// slowReadersOfLittle are streams of small events that no client reads.
func slowReadersOfLittle(ctx context.Context, a *attack) {
	a.need(ctx, "chatty", `channels: { i: { reducer: add, default: 0 } }
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
