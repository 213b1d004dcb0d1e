package runtime

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// combine has workers combine the writes of a superstep, for the channels
// whose reducer they know. It returns nil when the superstep can be applied.
func (l *loop) combine(ctx context.Context, w *work) *verdict {
	if !l.graph().ByWorker() {
		return nil
	}
	merged, channel, f := l.combined(ctx, l.state, w.done(), true)
	if v := l.interrupted(ctx, w); v != nil {
		return v
	}
	if f != nil {
		w.unfit, w.channel = f, channel
		v := l.settleWith(w, *failed(f))
		return &v
	}
	w.merged = merged
	return nil
}

// combined replaces what tasks wrote to channels that workers combine by what
// it comes to. A failure names the channel. While a change is being made, the
// worker has no voice: there is no run to tell anything to.
func (l *loop) combined(
	ctx context.Context, s *pregel.State, done []pregel.Done, voice bool,
) ([]pregel.Done, string, *checkpoint.Failure) {
	for _, r := range s.Reductions(done) {
		value, f := l.reduce(ctx, r, voice)
		if f != nil {
			return nil, r.Channel, f
		}
		done = pregel.Reduced(done, r.Channel, value)
	}
	return done, "", nil
}

// forCall is how long a call waits for the worker that combines what it writes.
const forCall = 10 * time.Second

// amended applies the writes of a call, as State.Inject does, and returns them
// in a form that needs no worker any more. The thread stands still meanwhile,
// so the worker must answer soon.
func (l *loop) amended(s *pregel.State, writes []checkpoint.Write) (*pregel.State, []checkpoint.Write, error) {
	done := []pregel.Done{{Writes: writes}}
	if len(s.Reductions(done)) > 0 {
		ctx, cancel := context.WithTimeout(l.session.calls, forCall)
		defer cancel()
		merged, channel, f := l.combined(ctx, s, done, false)
		if f != nil {
			return nil, nil, &pregel.UpdateError{Channel: channel, Problem: f.Message}
		}
		done = merged
	}
	next, err := s.Inject(done[0].Writes)
	return next, done[0].Writes, err
}

// reduce has a worker compute one reduction.
func (l *loop) reduce(ctx context.Context, r pregel.Reduction, voice bool) (payload.JSON, *checkpoint.Failure) {
	cp := l.state.Checkpoint()
	fx := &effects{loop: l, task: &pregel.Task{ID: pregel.ReductionID(cp.ID, cp.Namespace, r.Channel)}, attempt: 1}
	defer fx.end()
	if !voice {
		fx.end()
	}
	task := &Task{
		Thread: l.session.thread, Run: l.run.ID, ID: fx.task.ID, Graph: l.graph(), Reduce: &r,
		Namespace: cp.Namespace, Step: l.state.NextStep(), Stop: l.stop, Attempt: 1,
		Context: l.run.Request.Context, Checkpoint: cp.ID, Time: cp.Time,
		Effects: fx, Host: fx, Metadata: l.run.Metadata,
	}
	if voice {
		defer l.errand(task)()
	}
	return reduced(r, l.session.engine.guard(ctx, task))
}

// reduced is what came of a reduction.
func reduced(r pregel.Reduction, result pregel.Result) (payload.JSON, *checkpoint.Failure) {
	f := &checkpoint.Failure{Reason: FailedNode, Details: map[string]string{"channel": r.Channel, "reducer": r.Function}}
	switch {
	case result.Failure != nil:
		f.Reason, f.Type, f.Stack = result.Failure.Reason, result.Failure.Type, result.Failure.Stack
		f.Message = "reducer " + r.Function + " of channel " + r.Channel + ": " + result.Failure.Message
	case len(result.Asks)+len(result.Waiting) > 0:
		f.Message = "reducer " + r.Function + " asked a question; only nodes can"
	case result.Update == "":
		f.Reason, f.Message = FailedInvalidUpdate, "reducer "+r.Function+" of channel "+r.Channel+" returned no value"
	default:
		return result.Update, nil
	}
	return "", f
}

// foresee has workers combine what a task writes with the state, for its
// conditional edges, which see the state with these writes.
func (l *loop) foresee(ctx context.Context, o *outcome) *pregel.Failure {
	if !l.graph().ByWorker() || len(o.task.Node.Branches) == 0 {
		return nil
	}
	own, err := l.state.Own(o.task, o.result)
	if err != nil {
		return nil // told when the result is taken
	}
	for _, r := range l.state.Reductions([]pregel.Done{{Task: o.task, Writes: own}}) {
		value, f := l.reduce(ctx, r, true)
		if f != nil {
			return &pregel.Failure{Failure: *f}
		}
		if o.result.Foreseen == nil {
			o.result.Foreseen = make(map[string]payload.JSON, 1)
		}
		o.result.Foreseen[r.Channel] = value
	}
	return nil
}
