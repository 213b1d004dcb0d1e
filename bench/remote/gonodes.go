package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// goChain is the graph of the worker in Go.
const goChain = "chain-go"

// serveNodes serves the chain to a graphd, and bare calls at a free port, which it writes when both
// are ready. It ends when in does.
func serveNodes(ctx context.Context, address string, in io.Reader, out io.Writer) error {
	w, err := worker.Dial(address, worker.Options{Graphs: []*graph.Builder{newChain()}})
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

// newChain is ten nodes that add one.
func newChain() *graph.Builder {
	add := graph.Typed(func(_ context.Context, n number) (any, error) { return number{n.X + 1}, nil })
	g, names := graph.New(goChain).State(number{}), []string{graph.Start}
	for i := range length {
		name := "n" + strconv.Itoa(i)
		g.Node(name, add)
		names = append(names, name)
	}
	return g.Chain(append(names, graph.End)...)
}
