package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"

	"github.com/graphd-dev/graphd/bench/wire"
)

// KB returns a text of 1 KB.
func KB() string { return strings.Repeat("0123456789abcdef", 64) }

// List is the input of W4: a message of 1 KB is appended in each of so many
// steps.
func List(steps int) string { return fmt.Sprintf(`{"n":0,"until":%d,"message":%q}`, steps, KB()) }

// Loop is the input of so many steps that change 1 KB next to a ballast.
func Loop(steps, ballast int) string {
	return fmt.Sprintf(`{"n":0,"until":%d,"note":%q,"ballast":%q}`, steps, KB(), strings.Repeat("x", ballast))
}

// Steps runs a graph that takes one node so many times, and returns the time of
// each step, from update to update. The error reports a missing update or a wrong
// result.
func Steps(ctx context.Context, t Target, graph, thread, input string, steps int) ([]time.Duration, error) {
	request := encode(&graphdv1.StreamRequest{Run: run(graph, thread, input)})
	took, last := make([]time.Duration, 0, steps), time.Now()
	e, err := t.follow(ctx, 0, graph, request, func(e wire.Event) {
		if e.Kind == wire.Update {
			now := time.Now()
			took = append(took, now.Sub(last))
			last = now
		}
	})
	if err == nil && len(took) != steps {
		err = fmt.Errorf("%d updates came of %d", len(took), steps)
	}
	return took, e.check(err, graph, succeeded, fmt.Sprintf(`{"n":%d}`, steps))
}

// Around is the rate of the steps from one number to another. Several may come
// at once, so only their sum has a meaning.
func Around(took []time.Duration, from, to int) Sample {
	window, total := slices.Clone(took[max(from, 0):min(to, len(took))]), time.Duration(0)
	for _, d := range window {
		total += d
	}
	slices.Sort(window)
	return Sample{
		Rate: float64(len(window)) / total.Seconds(),
		P50:  window[len(window)/2].Seconds(), P99: window[len(window)*99/100].Seconds(),
	}
}
