package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"

	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The graphs of the worker in Go: over a small state, and over a large one.
const (
	goChain = "chain-go"
	goLarge = "large-go"
	goByKey = "large-go-by-key"
)

// serveNodes serves the chain to a graphd, and bare calls at a free port, which it writes when both
// are ready. It ends when in does.
func serveNodes(ctx context.Context, address string, in io.Reader, out io.Writer) error {
	w, err := worker.Dial(address, worker.Options{Graphs: []*graph.Builder{newChain(), newLargeChain(), newByKeyChain()}})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	g := grpc.NewServer()
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Node", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: answerCall}},
	}, nil)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	worked := make(chan error, 1)
	go func() { worked <- w.Run(ctx) }()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		g.Stop()
	}()
	select {
	case err := <-worked:
		return err
	case <-w.Ready():
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err == nil {
		_, err = fmt.Fprintln(out, port)
	}
	if err == nil {
		err = g.Serve(l)
	}
	cancel()
	return errors.Join(err, <-worked)
}

func answerCall(_ any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the signature is grpc's
	var text wrapperspb.StringValue
	return &text, read(&text)
}

type number struct {
	X int `json:"x"`
}

type document struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

type largeState struct {
	X         int        `json:"x"`
	Documents []document `json:"documents"`
}

var errNoDocuments = errors.New("the documents are missing")

// newChain is ten nodes that add one.
func newChain() *graph.Builder {
	add := graph.Typed(func(_ context.Context, n number) (any, error) { return number{n.X + 1}, nil })
	return chainOfNodes(graph.New(goChain).State(number{}), add)
}

// newLargeChain is ten nodes that add one, and read a large state.
func newLargeChain() *graph.Builder {
	return chainOfNodes(graph.New(goLarge).State(largeState{}), graph.Typed(func(_ context.Context, s largeState) (any, error) {
		if len(s.Documents) == 0 {
			return nil, errNoDocuments
		}
		return number{s.X + 1}, nil
	}))
}

// newByKeyChain is the same with nodes that read one channel, and leave the large one as it is.
func newByKeyChain() *graph.Builder {
	return chainOfNodes(graph.New(goByKey).State(largeState{}), func(_ context.Context, s graph.State) (any, error) {
		if !slices.Contains(s.Keys(), "documents") {
			return nil, errNoDocuments
		}
		var x int
		if err := s.Decode("x", &x); err != nil {
			return nil, err
		}
		return number{x + 1}, nil
	})
}

func chainOfNodes(g *graph.Builder, add graph.Func) *graph.Builder {
	names := []string{graph.Start}
	for i := range length {
		name := "n" + strconv.Itoa(i)
		g.Node(name, add)
		names = append(names, name)
	}
	return g.Chain(append(names, graph.End)...)
}
