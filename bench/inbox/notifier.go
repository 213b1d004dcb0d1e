package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/report"
	"github.com/graphd-dev/graphd/bench/workload"
)

const eventsSent = "events that are sent to an endpoint"

// leastSent is how many events a second are sent to an endpoint on the same machine.
const leastSent = 2000

// questionsOfARound is how many questions are asked in a round for each repetition. An endpoint that
// lets events wait for longer than ten seconds has failed.
const questionsOfARound = 10

// measureNotifier measures how fast waiting events are sent to an endpoint, by a server with an empty
// store of its own.
func (r *Result) measureNotifier(ctx context.Context, o options, setting string, series measure.Series) error {
	e, err := startEndpoint(ctx)
	if err != nil {
		return err
	}
	defer e.closeServer()
	dir, err := os.MkdirTemp("", "graphd-bench-endpoint-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	webhooks, err := e.writeOptions(dir)
	if err != nil {
		return err
	}
	b, err := startInbox(ctx, o, setting, webhooks...)
	if err != nil {
		return err
	}
	defer b.stop()
	for round := range o.rounds {
		sample, err := b.sendEvents(ctx, o, e, round)
		if err != nil {
			return err
		}
		series.Add(b.key(eventsSent, graphd), sample)
	}
	r.Sent = append(r.Sent, report.Line{
		Title: eventsSent, Against: storeName(setting), Ratio: series.Rate(b.key(eventsSent, graphd)), Bound: leastSent, Unit: "a second",
	})
	return nil
}

// sendEvents asks questions while the endpoint lets events wait, and then has it take all of them.
func (b *inbox) sendEvents(ctx context.Context, o options, e *endpoint, round int) (workload.Sample, error) {
	e.holdEvents()
	each := max(questionsOfARound*o.repeat/o.lanes, 1)
	names := &workload.Names{Prefix: fmt.Sprintf("sent-%d-", round)}
	if _, err := workload.Repeat(ctx, o.lanes, each, 1, func(ctx context.Context, lane int, _ *workload.Times) error {
		return call(ctx, b.many, lane, graphs+"StartRun", newAsk(names.Next(), question{graph: anyone}), nil, nil)
	}); err != nil {
		return workload.Sample{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began, all := time.Now(), each*o.lanes
	err := e.takeEvents(ctx, all)
	return workload.Sample{Rate: float64(all) / time.Since(began).Seconds()}, err
}
