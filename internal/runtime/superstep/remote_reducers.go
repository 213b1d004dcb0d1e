package superstep

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// reduceResults has workers combine the writes of a superstep, for the channels
// whose reducer they know. It returns nil when the superstep can be applied.
func (w *superstep) reduceResults(ctx context.Context) *End {
	l := w.loop
	if !l.Graph().HasWorkerReducer() {
		return nil
	}
	merged, channel, f := l.reduceWrites(ctx, l.state, w.finishedWrites(), true)
	if v := w.cutOffEnd(ctx); v != nil {
		return v
	}
	if f != nil {
		w.mergeFailure, w.mergeChannel = f, channel
		v := w.commitSuperstepEnd(*failedEnd(f))
		return &v
	}
	w.reduced = merged
	return nil
}

// reduceWrites replaces the writes to channels with remote reducers by the reduced
// value. A failure names the channel. canEmit is false while a change is built:
// there is no run whose events could be sent.
func (l *Loop) reduceWrites(
	ctx context.Context, s *pregel.State, done []pregel.TaskWrites, canEmit bool,
) ([]pregel.TaskWrites, string, *checkpoint.Failure) {
	for _, r := range s.Reductions(done) {
		value, f := l.callReducer(ctx, r, canEmit)
		if f != nil {
			return nil, r.Channel, f
		}
		done = pregel.ReplaceWrites(done, r.Channel, value)
	}
	return done, "", nil
}

// callReduceTimeout is how long a call waits for the worker that combines what it writes.
const callReduceTimeout = 10 * time.Second

// applyCallWrites applies the writes of a call, as State.Inject does, and returns
// them reduced. The thread is locked meanwhile, so the worker has
// callReduceTimeout.
func (l *Loop) applyCallWrites(s *pregel.State, writes []checkpoint.Write) (*pregel.State, []checkpoint.Write, error) {
	done := []pregel.TaskWrites{{Writes: writes}}
	if len(s.Reductions(done)) > 0 {
		ctx, cancel := context.WithTimeout(l.thread.StoreCtx, callReduceTimeout)
		defer cancel()
		merged, channel, f := l.reduceWrites(ctx, s, done, false)
		if f != nil {
			return nil, nil, &pregel.UpdateError{Channel: channel, Problem: f.Message}
		}
		done = merged
	}
	next, err := s.InjectWrites(done[0].Writes)
	return next, done[0].Writes, err
}

// callReducer has a worker compute one reduction.
func (l *Loop) callReducer(ctx context.Context, r pregel.Reduction, canEmit bool) (payload.JSON, *checkpoint.Failure) {
	cp := l.state.Checkpoint()
	fx := &effects{loop: l, task: &pregel.Task{ID: pregel.ReductionID(cp.ID, cp.Namespace, r.Channel)}, attempt: 1}
	defer fx.endAttempt()
	if !canEmit {
		fx.endAttempt()
	}
	task := &runtime.Task{
		Thread: l.thread.ID, Run: l.run.ID, ID: fx.task.ID, Graph: l.Graph(), Reduce: &r,
		Namespace: cp.Namespace, Step: l.state.NextStep(), MaxStep: l.maxStep, Attempt: 1,
		Context: l.run.Request.Context, Checkpoint: cp.ID, CheckpointTime: cp.Time,
		Effects: fx, Host: fx, Metadata: l.run.Metadata,
	}
	if canEmit {
		defer fx.trackRemoteTask(task)()
	}
	return reductionResult(r, l.env.executeContained(ctx, task))
}

// reductionResult is what came of a reduction.
func reductionResult(r pregel.Reduction, result pregel.Result) (payload.JSON, *checkpoint.Failure) {
	f := &checkpoint.Failure{Reason: runtime.FailedNode, Details: map[string]string{"channel": r.Channel, "reducer": r.Function}}
	switch {
	case result.Failure != nil:
		f.Reason, f.Type, f.Stack = result.Failure.Reason, result.Failure.Type, result.Failure.Stack
		f.Message = "reducer " + r.Function + " of channel " + r.Channel + ": " + result.Failure.Message
	case len(result.Asks)+len(result.WaitingInterrupts) > 0:
		f.Message = "reducer " + r.Function + " asked a question; only nodes can"
	case result.Update == "":
		f.Reason, f.Message = runtime.FailedInvalidUpdate, "reducer "+r.Function+" of channel "+r.Channel+" returned no value"
	default:
		return result.Update, nil
	}
	return "", f
}

// reduceForRouting has workers reduce what a task writes, for conditional edges
// that see the state with these writes.
func (o *outcome) reduceForRouting(ctx context.Context, l *Loop) *pregel.Failure {
	if !l.Graph().HasWorkerReducer() || len(o.task.Node.Branches) == 0 {
		return nil
	}
	own, err := l.state.OwnWrites(o.task, o.result)
	if err != nil {
		return nil // told when the result is taken
	}
	for _, r := range l.state.Reductions([]pregel.TaskWrites{{Task: o.task, Writes: own}}) {
		value, f := l.callReducer(ctx, r, true)
		if f != nil {
			return &pregel.Failure{Failure: *f}
		}
		if o.result.CombinedValues == nil {
			o.result.CombinedValues = make(map[string]payload.JSON, 1)
		}
		o.result.CombinedValues[r.Channel] = value
	}
	return nil
}
