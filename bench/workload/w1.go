package workload

import (
	"context"
	"fmt"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/bench/wire"
)

// ChainLength is the number of nodes of W1.
const ChainLength = 10

// The numbers of graphdv1.RunState that streams end with.
const (
	interrupted = int(graphdv1.RunState_RUN_STATE_INTERRUPTED)
	succeeded   = int(graphdv1.RunState_RUN_STATE_SUCCEEDED)
)

// W1 runs the chain of ten in a new thread and follows it to its end. It times
// the steps, of which several may come at once: a tenth of a run each.
func W1(t Target) One {
	one := ChainOf(t, "chain")
	return func(ctx context.Context, lane int, times *Times) error {
		began := time.Now()
		err := one(ctx, lane, &Times{})
		times.Note(time.Since(began) / ChainLength)
		return err
	}
}

// ChainOf is W1 with another graph that does the same. It times the steps, from
// update to update.
func ChainOf(t Target, graph string) One {
	request := encode(&graphdv1.StreamRequest{Run: run(graph, "", `{"x":0}`)})
	return func(ctx context.Context, lane int, times *Times) error {
		updates, last := 0, time.Time{}
		e, err := t.follow(ctx, lane, Chain, request, func(e wire.Event) {
			if e.Kind != wire.Update {
				return
			}
			now := time.Now()
			if updates > 0 {
				times.Note(now.Sub(last))
			}
			updates, last = updates+1, now
		})
		if err == nil && updates != ChainLength {
			err = fmt.Errorf("%d updates came of %d", updates, ChainLength)
		}
		return e.check(err, "W1", succeeded, `{"x":10}`)
	}
}

// end is the end of a stream.
type end struct {
	seen   bool
	state  int
	output string
}

// check turns an end that was not wanted into an error. Without a wanted
// output any is right.
func (e end) check(err error, what string, state int, output string) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case !e.seen:
		return fmt.Errorf("%s: the stream broke off", what)
	case e.state != state || (output != "" && e.output != output):
		return fmt.Errorf("%s ended as %s with %q, not as %s with %q", what, graphdv1.RunState(e.state), e.output,
			graphdv1.RunState(state), output)
	}
	return nil
}

// follow makes a call and shows its events up to the end.
func (t Target) follow(ctx context.Context, lane int, call string, request []byte, see func(wire.Event)) (end, error) {
	var last end
	err := t.stream(ctx, lane, call, request, func(message []byte) error {
		e, err := wire.Look(message)
		if err != nil {
			return err
		}
		if e.Kind == wire.End {
			_, state, output := e.Ended()
			last = end{seen: true, state: state, output: string(output)}
		}
		see(e)
		return nil
	})
	return last, err
}

func run(graph, thread, input string) *graphdv1.RunSpec {
	return &graphdv1.RunSpec{
		ThreadId: thread, CreateThread: true, Graph: graph,
		Start: &graphdv1.RunSpec_Input{Input: text(input)},
	}
}

func text(value string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: value}}
}

// encode can't fail: requests are built here and valid.
func encode(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		return nil
	}
	return b
}
