package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"

	"github.com/graphd-dev/graphd/bench/workload"
)

// fill asks so many questions over gRPC, in the order of their numbers, and tells on standard
// error how far it is.
func (b *inbox) fill(ctx context.Context, count, lanes int) error {
	p := &progress{store: b.setting, count: count, began: time.Now()}
	defer p.show(ctx)()
	_, err := workload.Repeat(ctx, lanes, 1, 1, func(ctx context.Context, lane int, _ *workload.Times) error {
		for number := int(p.next.Add(1)) - 1; number < count; number = int(p.next.Add(1)) - 1 {
			if err := b.ask(ctx, lane, number, count); err != nil {
				return err
			}
			p.done.Add(1)
		}
		return nil
	})
	return err
}

// patience is how long a run may take to its question.
const patience = time.Minute

// ask starts a run and waits until its question is open.
func (b *inbox) ask(ctx context.Context, lane, number, count int) error {
	q := questionAt(number, count)
	var run graphdv1.Run
	if err := call(ctx, b.many, lane, graphs+"StartRun", newAsk(threadOf(number), q), &run, nil); err != nil {
		return err
	}
	if run.GetState() != graphdv1.RunState_RUN_STATE_INTERRUPTED {
		return fmt.Errorf("question %d does not wait, its run is %s: %v", number, run.GetState(), run.GetFailure())
	}
	return nil
}

func threadOf(number int) string { return fmt.Sprintf("order-%d", number) }

func text(value string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: value}}
}

// progress is how far the filling of a store is.
type progress struct {
	store      string
	count      int
	began      time.Time
	next, done atomic.Int64
}

// show tells of it now and then until the returned function is called.
func (p *progress) show(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintln(os.Stderr, "inbox:", p.line(time.Now()))
			case <-ctx.Done():
				fmt.Fprintln(os.Stderr, "inbox:", p.line(time.Now()))
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// line is count, rate and expected end.
func (p *progress) line(now time.Time) string {
	done := int(p.done.Load())
	took := now.Sub(p.began)
	line := fmt.Sprintf("%s: %d of %d questions are open, %.0f a second", p.store, done, p.count, float64(done)/took.Seconds())
	if done == 0 || done >= p.count {
		return line
	}
	left := time.Duration(float64(took) / float64(done) * float64(p.count-done))
	return fmt.Sprintf("%s, all at %s, in %v", line, now.Add(left).Format(time.TimeOnly), left.Round(time.Second))
}
