package runtime

import (
	"context"

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
	w.merged = w.done()
	for _, r := range l.state.Reductions(w.merged) {
		value, f := l.reduce(ctx, r)
		if v := l.interrupted(ctx, w); v != nil {
			return v
		}
		if f != nil {
			w.unfit, w.channel = f, r.Channel
			v := l.settleWith(w, *failed(f))
			return &v
		}
		w.merged = pregel.Reduced(w.merged, r.Channel, value)
	}
	return nil
}

// reduce has a worker compute one reduction.
func (l *loop) reduce(ctx context.Context, r pregel.Reduction) (payload.JSON, *checkpoint.Failure) {
	cp := l.state.Checkpoint()
	fx := &effects{loop: l, task: &pregel.Task{ID: pregel.ReductionID(cp.ID, cp.Namespace, r.Channel)}, attempt: 1}
	defer fx.end()
	task := &Task{
		Thread: l.session.thread, Run: l.run.ID, ID: fx.task.ID, Graph: l.graph(), Reduce: &r,
		Namespace: cp.Namespace, Step: l.state.NextStep(), Stop: l.stop, Attempt: 1,
		Context: l.run.Request.Context, Checkpoint: cp.ID, Time: cp.Time,
		Effects: fx, Host: fx, Metadata: l.run.Metadata,
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
		value, f := l.reduce(ctx, r)
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
