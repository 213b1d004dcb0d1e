// Package embedded_test runs graphs in the process of the test, as programs do that have graphd in
// them: each test is a small program that other runtimes of this kind get wrong.
package embedded_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
)

// program is an engine of a test.
type program struct {
	*graphd.Engine

	t *testing.T
}

// open opens an engine on a store until the test ends.
func open(t *testing.T, store graphd.Store, graphs ...*graph.Builder) program {
	t.Helper()
	return openWith(t, store, graphd.Options{}, graphs...)
}

func openWith(t *testing.T, store graphd.Store, o graphd.Options, graphs ...*graph.Builder) program {
	t.Helper()
	e, err := graphd.OpenWith(t.Context(), store, o, graphs...)
	require.NoError(t, err)
	p := program{Engine: e, t: t}
	t.Cleanup(func() { p.close() })
	return p
}

// close closes the engine; a second time has no effect.
func (p program) close() {
	p.t.Helper()
	require.NoError(p.t, p.Close(context.WithoutCancel(p.t.Context())))
}

// file is a store in a file of the test.
func file(t *testing.T) graphd.Store { return graphd.SQLite(filepath.Join(t.TempDir(), "app.db")) }

// run starts a run on a thread, and returns when it has ended or asks.
func (p program) run(graphName, thread, input string) *client.Outcome {
	p.t.Helper()
	o, err := p.Invoke(p.t.Context(), client.Run{Graph: graphName, Thread: thread, Input: json.RawMessage(input)})
	require.NoError(p.t, err)
	return o
}

// answer answers questions.
func (p program) answer(thread string, answers ...client.Answer) *client.Outcome {
	p.t.Helper()
	o, err := p.Resume(p.t.Context(), thread, answers...)
	require.NoError(p.t, err)
	return o
}

// goOn goes on with a thread whose run has failed or was stopped.
func (p program) goOn(thread string) *client.Outcome {
	p.t.Helper()
	o, err := p.Invoke(p.t.Context(), client.Run{Thread: thread})
	require.NoError(p.t, err)
	return o
}

// requireOutput requires that the run has succeeded with an output.
func requireOutput(t *testing.T, o *client.Outcome, want string) {
	t.Helper()
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, o.Run.GetState(), "%v", o.Run.GetFailure())
	require.JSONEq(t, want, o.Run.GetOutput().GetJson())
}

// values returns the values of open questions, in their order.
func values(o *client.Outcome) []string {
	var all []string
	for _, q := range o.Questions {
		all = append(all, q.GetValue().GetJson())
	}
	return all
}

// question returns the id of the open question with a value.
func question(t *testing.T, o *client.Outcome, value string) string {
	t.Helper()
	for _, q := range o.Questions {
		if q.GetValue().GetJson() == value {
			return q.GetInterruptId()
		}
	}
	require.Failf(t, "no such question", "%s is not among %v", value, values(o))
	return ""
}

// counter counts what functions do.
type counter struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *counter) add(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count = make(map[string]int)
	}
	c.count[what]++
	return c.count[what]
}

func (c *counter) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[what]
}

// say is a node that writes a value to a channel.
func say(channel string, value any) graph.Func {
	return func(context.Context, graph.State) (any, error) { return map[string]any{channel: value}, nil }
}

// askInto is a node that asks, and writes the answer to a channel.
func askInto(channel string, what any, options ...graph.AskOption) graph.Func {
	return func(ctx context.Context, _ graph.State) (any, error) {
		answer, err := graph.Interrupt(ctx, what, options...)
		return map[string]any{channel: answer}, err
	}
}
