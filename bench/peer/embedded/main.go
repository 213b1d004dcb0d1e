// Command embedded drives graphd in its own process, as a library, see ../README.md. It is a program
// of a user: it imports only what is public.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/bench/peer/libraries/drive"
	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
)

const length = 10

func main() {
	d := &driver{}
	drive.Answer("graphd embedded", "github.com/graphd-dev/graphd", d.open)
}

// driver has one engine at a time: each measurement has an empty store.
type driver struct{ engine *graphd.Engine }

func (d *driver) open(r drive.Request) (drive.One, error) {
	ctx := context.Background() //nolint:forbidigo // the program begins here
	store := graphd.Memory()
	switch r.Store {
	case "memory":
	case "sqlite":
		store = graphd.SQLite(r.URL)
	case "redis":
		store = graphd.Redis(r.URL)
	default:
		return nil, fmt.Errorf("no store %s", r.Store)
	}
	if d.engine != nil {
		_ = d.engine.Close(ctx) // its store was emptied, and it says so
	}
	var err error
	if d.engine, err = graphd.Open(ctx, store, newChain(), newQuestion()); err != nil {
		return nil, err
	}
	switch r.Workload {
	case "W1":
		return d.chain, nil
	case "W2", "W5":
		return d.question, nil
	default:
		return nil, fmt.Errorf("no workload %s", r.Workload)
	}
}

type state struct {
	X      int    `json:"x"`
	Answer string `json:"answer,omitempty"`
}

func add(_ context.Context, s state) (any, error) { return state{X: s.X + 1}, nil }

func newChain() *graph.Builder {
	g, names := graph.New("chain").State(state{}), []string{graph.Start}
	for i := range length {
		name := "n" + strconv.Itoa(i)
		g.Node(name, graph.Typed(add))
		names = append(names, name)
	}
	return g.Chain(append(names, graph.End)...)
}

func newQuestion() *graph.Builder {
	return graph.New("question").State(state{}).
		Node("a", graph.Typed(add)).
		Node("ask", graph.Typed(func(ctx context.Context, s state) (any, error) {
			answer, err := graph.Ask[string](ctx, s.X)
			return map[string]any{"answer": answer}, err
		})).
		Node("z", graph.Typed(add)).
		Chain(graph.Start, "a", "ask", "z", graph.End)
}

func (d *driver) chain(ctx context.Context, thread string) (time.Duration, error) {
	o, err := d.engine.Invoke(ctx, client.Run{Graph: "chain", Thread: thread, Input: state{}})
	return 0, check(o, err, state{X: length})
}

func (d *driver) question(ctx context.Context, thread string) (time.Duration, error) {
	o, err := d.engine.Invoke(ctx, client.Run{Graph: "question", Thread: thread, Input: state{}})
	if err != nil {
		return 0, err
	}
	if len(o.Questions) != 1 {
		return 0, errors.New("no question came")
	}
	began := time.Now()
	o, err = d.engine.Resume(ctx, thread, client.Answer{Value: "yes"})
	return time.Since(began), check(o, err, state{X: 2, Answer: "yes"})
}

func check(o *client.Outcome, err error, want state) error {
	if err != nil {
		return err
	}
	got, err := client.Output[state](o)
	if err == nil && got != want {
		err = fmt.Errorf("wrong result: %+v", got)
	}
	return err
}
