package superstep

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// reducerCaller has workers combine writes with the reducers that they know.
type reducerCaller struct {
	frame   *frame
	canEmit bool // false while a change is built: there is no run whose events could be sent
}

// reduceWrites replaces the writes to channels with remote reducers by the reduced
// value. A failure names the channel.
func (c reducerCaller) reduceWrites(
	ctx context.Context, s *pregel.State, done []pregel.TaskWrites,
) ([]pregel.TaskWrites, string, *checkpoint.Failure) {
	for _, r := range s.Reductions(done) {
		value, f := c.callReducer(ctx, r)
		if f != nil {
			return nil, r.Channel, f
		}
		done = pregel.ReplaceWrites(done, r.Channel, value)
	}
	return done, "", nil
}

// callReduceTimeout is how long a call waits for the worker that combines its writes.
const callReduceTimeout = 10 * time.Second

// applyCallWrites applies the writes of a call, as State.Inject does, and returns
// them reduced. The thread is locked meanwhile, so the worker has
// callReduceTimeout.
func (fr *frame) applyCallWrites(s *pregel.State, writes []checkpoint.Write) (*pregel.State, []checkpoint.Write, error) {
	done := []pregel.TaskWrites{{Writes: writes}}
	if len(s.Reductions(done)) > 0 {
		ctx, cancel := context.WithTimeout(fr.thread.StoreCtx, callReduceTimeout)
		defer cancel()
		merged, channel, f := reducerCaller{frame: fr}.reduceWrites(ctx, s, done)
		if f != nil {
			return nil, nil, &pregel.UpdateError{Channel: channel, Problem: f.Message}
		}
		done = merged
	}
	next, err := s.InjectWrites(done[0].Writes)
	return next, done[0].Writes, err
}

// callReducer has a worker compute one reduction.
func (c reducerCaller) callReducer(ctx context.Context, r pregel.Reduction) (payload.JSON, *checkpoint.Failure) {
	fr := c.frame
	cp := fr.state.Checkpoint()
	fx := &effects{frame: fr, task: &pregel.Task{ID: pregel.ReductionID(cp.ID, cp.Namespace, r.Channel)}, attempt: 1}
	defer fx.endAttempt()
	if !c.canEmit {
		fx.endAttempt()
	}
	task := &runtime.Task{
		Thread: fr.thread.ID, Run: fr.run.ID, ID: fx.task.ID, Graph: fr.Graph(), Reduce: &r,
		Namespace: cp.Namespace, Step: fr.state.NextStep(), MaxStep: fr.maxStep, Attempt: 1,
		Context: fr.run.Request.Context, Checkpoint: cp.ID, CheckpointTime: cp.Time,
		Effects: fx, Host: fx, Metadata: fr.run.Metadata,
	}
	if c.canEmit {
		defer fx.trackRemoteTask(task)()
	}
	span := fr.traceReducer(ctx, task.ID, r.Function)
	task.Trace = carrierOf(span)
	value, f := reductionResult(r, fr.env.executeContained(within(ctx, span), task))
	if span != nil {
		endReducer(span, f)
	}
	return value, f
}

// reductionResult returns the value of a reduction, or its failure.
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

// reduceForRouting has workers reduce the writes of a task, for conditional edges that
// see the state with these writes.
func (at *attempt) reduceForRouting(ctx context.Context) *pregel.Failure {
	if !at.Graph().HasWorkerReducer() || len(at.task.Node.Branches) == 0 {
		return nil
	}
	own, err := at.state.OwnWrites(at.task, at.result)
	if err != nil {
		return nil // reported when the result is taken
	}
	for _, r := range at.state.Reductions([]pregel.TaskWrites{{Task: at.task, Writes: own}}) {
		value, f := reducerCaller{frame: at.frame, canEmit: true}.callReducer(ctx, r)
		if f != nil {
			return &pregel.Failure{Failure: *f}
		}
		if at.result.CombinedValues == nil {
			at.result.CombinedValues = make(map[string]payload.JSON, 1)
		}
		at.result.CombinedValues[r.Channel] = value
	}
	return nil
}
