// Package node runs the nodes that need no other process: Go functions,
// expressions, and interrupts to people. It implements the runtime's Executor.
package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/node/function"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Options tune a Mux. Zero fields mean the defaults in their comments.
type Options struct {
	// Remote runs nodes of kind remote; without it they fail.
	Remote runtime.Executor
	// Reducers are functions that combine what nodes write, by name. Those that are not here
	// are of a worker.
	Reducers map[string]api.Reduce
	// Schemas, Grace, SeparateGoroutines and StrictReplay are those of [function.Options].
	Schemas            function.Schemas
	Grace              time.Duration
	SeparateGoroutines bool
	StrictReplay       bool
	// Limits bound every value of a node's result.
	Limits payload.Limits
	Logger *zap.Logger // silent when nil
}

// Mux runs each node by its kind. It is safe for concurrent use.
type Mux struct {
	functions api.Functions
	options   Options
	runner    *function.Runner
}

var _ runtime.Executor = (*Mux)(nil)

// New makes a Mux that knows the given functions, also as routers.
func New(functions api.Functions, options Options) *Mux {
	return &Mux{functions: maps.Clone(functions), options: options, runner: function.NewRunner(function.Options{
		Schemas: options.Schemas, Limits: options.Limits, Grace: options.Grace, SeparateGoroutines: options.SeparateGoroutines,
		StrictReplay: options.StrictReplay, Logger: options.Logger,
	})}
}

// HasFunction reports whether a function is registered under a name.
func (m *Mux) HasFunction(name string) bool { return m.functions[name] != nil }

// Execute makes one attempt of a node or of a router.
func (m *Mux) Execute(ctx context.Context, t *runtime.Task) (r pregel.Result) {
	ended := false
	defer func() {
		if !ended {
			r = pregel.Result{Failure: function.PanicFailure(recover())}
		}
	}()
	r = m.executeTask(ctx, t)
	ended = true
	return r
}

// executeTask executes a function, an expression or a question here, and passes every
// other task to a worker.
func (m *Mux) executeTask(ctx context.Context, t *runtime.Task) pregel.Result {
	if t.Reduce != nil {
		if reduce := m.options.Reducers[t.Reduce.Function]; reduce != nil {
			return m.checkResultSize(function.ReduceWrites(t.Reduce, reduce))
		}
	}
	switch {
	case t.Reduce != nil || t.InWorker:
		return m.executeRemote(ctx, t)
	case t.Router != "":
		return m.executeFunction(ctx, t, t.Router)
	}
	switch t.Node.Kind {
	case graph.KindFunction:
		return m.executeFunction(ctx, t, functionName(t.Node))
	case graph.KindExpr:
		return m.checkResultSize(executeExpr(ctx, t))
	case graph.KindAsk:
		return m.checkResultSize(executeAsk(ctx, t))
	case graph.KindRemote:
		return m.executeRemote(ctx, t)
	case graph.KindStart, graph.KindGraph:
	}
	return function.FailedResult(function.PermanentFailure(runtime.ReasonInternal, "Internal",
		fmt.Sprintf("node %q is not for an executor to run", t.Node.Name)))
}

// checkResultSize fails a result that expressions have made too large.
func (m *Mux) checkResultSize(r pregel.Result) pregel.Result {
	most := m.options.Limits.MaxBytes
	size := len(r.Update)
	for i := range r.Asks {
		size = max(size, len(r.Asks[i].Value)+r.Asks[i].Hidden.Value.Size())
	}
	for i := range r.Goto {
		size = max(size, len(r.Goto[i].Input))
	}
	if most <= 0 || size <= most {
		return r
	}
	return function.FailedResult(function.InvalidResult(&payload.LimitError{Limit: "bytes", Max: most, Got: size}))
}

func functionName(n *graph.Node) string {
	if s := n.Spec.Function; s != nil && s.Name != "" {
		return s.Name
	}
	return n.Name
}

func (m *Mux) executeRemote(ctx context.Context, t *runtime.Task) pregel.Result {
	if m.options.Remote != nil {
		return m.options.Remote.Execute(ctx, t)
	}
	what := "a reducer"
	if t.Node != nil {
		what = fmt.Sprintf("node %q", t.Node.Name)
	}
	return function.FailedResult(function.PermanentFailure(runtime.ReasonNoWorkerAvailable, "NoWorker",
		fmt.Sprintf("%s of graph %q runs in a worker, and this server connects to none", what, tenant.ClientName(t.Graph.Name))))
}

// executeFunction runs a registered function.
func (m *Mux) executeFunction(ctx context.Context, t *runtime.Task, name string) pregel.Result {
	f := m.functions[name]
	if f == nil {
		return function.FailedResult(function.PermanentFailure(runtime.FailedNode, "UnknownFunction",
			fmt.Sprintf("no function %q is registered in this process%s", name,
				graph.Suggest(name, slices.Sorted(maps.Keys(m.functions))))))
	}
	return m.runner.Run(ctx, newFunctionTask(t), f)
}
