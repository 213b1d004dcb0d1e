package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/nodes"
	"github.com/graphd-dev/graphd/bench/process"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/wire"
	"github.com/graphd-dev/graphd/bench/workload"
)

// calls is who makes as many bare calls of the same process as a chain has
// nodes.
const calls = "bare gRPC calls"

// remote are processes with nodes. The Go process runs all the time. The Python
// process connects to the server of each round.
type remote struct {
	goNodes *process.Child
	bare    *wire.Client
}

// startNodes starts the Go process and adds its graph to the graphs that servers
// load: in a folder of its own, next to copies of the others.
func (b *bench) startNodes(ctx context.Context) error {
	if !b.chosen("remote") {
		return nil
	}
	child, err := process.StartChild(ctx, "", b.program.Self, "nodes")
	if err != nil {
		return err
	}
	b.remote = &remote{goNodes: child}
	address, err := child.Line()
	if err != nil {
		return err
	}
	if b.remote.bare, err = wire.Dial(address, 1); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "graphd-bench-graphs-")
	if err != nil {
		return err
	}
	err = os.CopyFS(folder, os.DirFS(b.program.Graphs))
	b.program.Graphs = folder
	return errors.Join(err, write(filepath.Join(folder, nodes.Graph+".yaml"), []byte(nodes.File(address))))
}

func (b *bench) stopNodes() {
	if b.remote == nil {
		return
	}
	_ = b.remote.bare.Close()
	b.remote.goNodes.Stop()
	_ = os.RemoveAll(b.program.Graphs)
}

// far runs the chain with nodes in other processes.
func far(r *round) [][]measure.Cell {
	if r.remote == nil || r.Setting != stand.Memory {
		return nil
	}
	groups := [][]measure.Cell{r.inTurn("remote nodes, Go", nodes.Graph, r.remote.bare)}
	if r.python == "" {
		return groups
	}
	python, err := process.StartChild(r.context, "", r.python, "remote/nodes.py", r.Server.Address())
	if err != nil {
		return append(groups, failing(r.key("remote nodes, Python", 1).As(graphd), err))
	}
	r.after = append(r.after, python.Stop)
	port, err := python.Line()
	if err != nil {
		return append(groups, failing(r.key("remote nodes, Python", 1).As(graphd), err))
	}
	bare, err := wire.Dial("127.0.0.1:"+port, 1)
	if err != nil {
		return append(groups, failing(r.key("remote nodes, Python", 1).As(graphd), err))
	}
	r.after = append(r.after, func() { _ = bare.Close() })
	return append(groups, r.inTurn("remote nodes, Python", "chain-python", bare))
}

// inTurn compares a chain with as many bare calls.
func (r *round) inTurn(name, graph string, bare *wire.Client) []measure.Cell {
	key := r.key(name, 1)
	load := func(one workload.One) func(context.Context) (workload.Sample, error) {
		return func(ctx context.Context) (workload.Sample, error) {
			if err := one(ctx, 0, &workload.Times{}); err != nil { // the first call connects
				return workload.Sample{}, err
			}
			return workload.Load(ctx, 1, r.long, workload.ChainLength, one)
		}
	}
	request, err := proto.Marshal(wrapperspb.String(`{"x":1}`))
	call := func(ctx context.Context, lane int, _ *workload.Times) error {
		for range workload.ChainLength {
			if answer, e := bare.Call(ctx, lane, nodes.Bare, request); e != nil || len(answer) != len(request) {
				return errors.Join(err, e, fmt.Errorf("the answer has %d bytes, not %d", len(answer), len(request)))
			}
		}
		return nil
	}
	return []measure.Cell{
		{Key: key.As(graphd), Take: load(workload.ChainOf(r.Graphd, graph))},
		{Key: key.As(calls), Take: load(call)},
	}
}

func failing(k measure.Key, err error) []measure.Cell {
	return []measure.Cell{{Key: k, Take: func(context.Context) (workload.Sample, error) { return workload.Sample{}, err }}}
}
