// Package workload puts load on a server and checks the answers: a missing event
// or a wrong result is an error.
package workload

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/bench/wire"
)

// Target is a server: graphd, or a server that does the same for its clients
// without a graph engine.
type Target struct {
	*wire.Client
	// Method returns the name of a workload's call at this server.
	Method func(call string) string

	hear func(call string, message []byte)
}

// Graphd is the target that is graphd itself.
func Graphd(c *wire.Client) Target {
	return Target{Client: c, Method: func(call string) string {
		switch call {
		case Answer:
			return "/graphd.v1.GraphService/Resume"
		case Watch:
			return "/graphd.v1.GraphService/Watch"
		case Create:
			return "/graphd.v1.ThreadService/CreateThread"
		case Go:
			return "/graphd.v1.GraphService/StartRun"
		default:
			return "/graphd.v1.GraphService/Stream"
		}
	}}
}

// The calls of workloads.
const (
	Chain    = "chain"
	Question = "question"
	Answer   = "answer"
	Fan      = "fan"
	Watch    = "watch"
	// Create makes the watched thread, and Go begins the run for which its
	// watchers wait.
	Create = "create"
	Go     = "go"
	// WatchEncoded is Watch at a limit that encodes messages for each watcher.
	WatchEncoded = "watch-encoded"
)

// Sample is the result of one contestant in one round.
type Sample struct {
	// Rate is the number of operations a second.
	Rate float64 `json:"rate"`
	// P50 and P99 are of the timed parts, in seconds; 0 without any.
	P50 float64 `json:"p50,omitempty"`
	P99 float64 `json:"p99,omitempty"`
	// Processor is the time in seconds for which processors worked for the server, per
	// operation; 0 where it was not measured.
	Processor float64 `json:"processor,omitempty"`
}

// One is one operation of a client, which notes how long its parts took.
type One func(ctx context.Context, lane int, times *Times) error

// Times collects durations of one client.
type Times struct{ all []time.Duration }

// Note adds a duration.
func (t *Times) Note(d time.Duration) { t.all = append(t.all, d) }

// Time adds how long something takes.
func (t *Times) Time(do func() error) error {
	began := time.Now()
	err := do()
	t.Note(time.Since(began))
	return err
}

// Load has so many clients repeat an operation for so long. An operation adds
// counts to the rate. The error is the first error of an operation.
func Load(ctx context.Context, clients int, long time.Duration, counts int, one One) (Sample, error) {
	began := time.Now()
	return load(ctx, clients, counts, one, func(int) bool { return time.Since(began) < long })
}

// Repeat does an operation so many times for each of so many clients at once.
// The errors are those of Load.
func Repeat(ctx context.Context, clients, times, counts int, one One) (Sample, error) {
	return load(ctx, clients, counts, one, func(done int) bool { return done < times })
}

// RepeatUpTo is Repeat for one client, who begins no further operation after so long.
func RepeatUpTo(ctx context.Context, times int, long time.Duration, one One) (Sample, error) {
	began := time.Now()
	return load(ctx, 1, 1, one, func(done int) bool { return done < times && (done == 0 || time.Since(began) < long) })
}

func load(ctx context.Context, clients, counts int, one One, again func(done int) bool) (Sample, error) {
	ctx, fail := context.WithCancelCause(ctx) // the first error stops all
	defer fail(nil)
	done, times := make([]int, clients), make([]Times, clients)
	began := time.Now()
	var all sync.WaitGroup
	for lane := range clients {
		all.Go(func() {
			for again(done[lane]) {
				if err := one(ctx, lane, &times[lane]); err != nil {
					fail(err)
					return
				}
				done[lane]++
			}
		})
	}
	all.Wait()
	took := time.Since(began).Seconds()
	if err := context.Cause(ctx); err != nil {
		return Sample{}, err
	}
	s := Sample{}
	for _, n := range done {
		s.Rate += float64(n*counts) / took
	}
	s.P50, s.P99 = quantiles(times)
	return s, nil
}

func quantiles(times []Times) (p50, p99 float64) {
	var all []time.Duration
	for _, t := range times {
		all = append(all, t.all...)
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)/2].Seconds(), all[len(all)*99/100].Seconds()
}
