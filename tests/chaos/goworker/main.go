// Command goworker is a worker of the chaos test in Go: it does what worker.py does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
)

// state is what the nodes see.
type state struct {
	N     int      `json:"n"`
	Round int      `json:"round"`
	Log   []string `json:"log"`
}

// chaos is the program: its ledger, and a number for each effect.
type chaos struct {
	ledger  *os.File
	effects atomic.Int64
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "goworker:", err)
		os.Exit(1)
	}
}

func run() error {
	ledger, err := os.OpenFile(os.Getenv("CHAOS_LEDGER"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600) //nolint:forbidigo,gosec // the test says it so to all workers
	if err != nil {
		return err
	}
	defer ledger.Close()
	c := &chaos{ledger: ledger}
	w, err := worker.Dial(os.Getenv("CHAOS_SERVER"), worker.Options{Nodes: []worker.Nodes{{ //nolint:forbidigo // as above
		Graph: "chaos",
		Functions: graph.Functions{
			"gather": graph.Typed(c.gather), "settle": graph.Typed(c.settle),
			"desk": c.review("desk"), "legal": c.review("legal"), "risk": c.review("risk"),
		},
		Routers: graph.Functions{"pick": graph.Typed(pick), "again": graph.Typed(again)},
	}}})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the program begins here
	defer stop()
	return w.Run(ctx)
}

// write adds one line in one write: processes that share the file don't mix them. A
// process that is killed may leave half a line, so each begins with a new one.
func (c *chaos) write(ctx context.Context, kind, key, value string) error {
	info := graph.TaskInfo(ctx)
	line, err := json.Marshal(map[string]any{"kind": kind, "key": key, "value": value, "thread": info.Thread, "task": info.Task})
	if err == nil {
		_, err = fmt.Fprintf(c.ledger, "\n%s\n", line)
	}
	return err
}

// sleepRandomly gives faults a chance to hit between any two lines.
func sleepRandomly() { time.Sleep(rand.N(100 * time.Millisecond)) } //nolint:forbidigo // whatever happens meanwhile

// once has a side effect that must not be repeated once its value is recorded.
func (c *chaos) once(ctx context.Context, key string) (string, error) {
	value, err := graph.Memo(ctx, key, func(ctx context.Context) (string, error) {
		value := fmt.Sprintf("%s-%d-%d", key, os.Getpid(), c.effects.Add(1))
		err := c.write(ctx, "ran", key, value)
		sleepRandomly()
		return value, err
	})
	if err != nil {
		return "", errors.Join(err, c.write(ctx, "refused", key, err.Error()))
	}
	err = c.write(ctx, "saw", key, value)
	sleepRandomly()
	return value, err
}

// ask shows what the workers in other languages show: Ask[string] would show a schema, too, and a
// worker in another language that goes on would ask anew.
func (s state) ask(ctx context.Context, what string) (string, error) {
	answer, err := graph.Ask[any](ctx, map[string]any{"n": s.N, "round": s.Round, "ask": what})
	return fmt.Sprint(answer), err
}

func (c *chaos) gather(ctx context.Context, s state) (any, error) {
	opened, err := c.once(ctx, "open")
	if err != nil {
		return nil, err
	}
	name, err := s.ask(ctx, "name")
	if err != nil {
		return nil, err
	}
	sleepRandomly()
	amount, err := s.ask(ctx, "amount")
	if err != nil {
		return nil, err
	}
	charge, err := c.once(ctx, "charge")
	if err != nil {
		return nil, err
	}
	log := []string{"open=" + opened, "name=" + name, "amount=" + amount, "charge=" + charge}
	return map[string]any{"round": s.Round + 1, "log": log}, nil
}

func (c *chaos) review(who string) graph.Func {
	return graph.Typed(func(ctx context.Context, s state) (any, error) {
		note, err := c.once(ctx, "note-"+who)
		if err != nil {
			return nil, err
		}
		said, err := s.ask(ctx, who)
		if err != nil {
			return nil, err
		}
		return map[string]any{"log": []string{"note-" + who + "=" + note, who + "=" + said}}, nil
	})
}

func (c *chaos) settle(ctx context.Context, _ state) (any, error) {
	settled, err := c.once(ctx, "settle")
	return map[string]any{"log": []string{"settle=" + settled}}, err
}

func pick(_ context.Context, s state) (any, error) {
	sleepRandomly()
	return []string{"desk", "legal", "risk"}[:1+s.N%3], nil
}

func again(_ context.Context, s state) (any, error) {
	if s.Round <= s.N%2 {
		return "gather", nil
	}
	return graph.End, nil
}
