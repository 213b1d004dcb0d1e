package superstep

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
)

// Tracer traces the work of loops. Its methods don't block.
type Tracer interface {
	// TraceSuperstep begins the span of a superstep, inside the span of ctx.
	TraceSuperstep(ctx context.Context, s TracedStep) Span
	// TraceAttempt begins the span of an attempt, inside the span of ctx.
	TraceAttempt(ctx context.Context, a TracedAttempt) Span
}

// Span is work that is traced. A span that is not ended is not reported: the work is done
// again in another way.
type Span interface {
	// Within returns ctx with the span, for the work inside it.
	Within(ctx context.Context) context.Context
	// Carrier returns the W3C trace context of the span, for another process; nil = none.
	Carrier() map[string]string
	End(e SpanEnd)
}

// TracedStep is a superstep of a run.
type TracedStep struct {
	Run       *checkpoint.Run
	Graph     *graph.Graph // the one of the namespace
	Namespace string
	Step      int
}

// TracedAttempt is an attempt of a node, or of a reducer of a worker.
type TracedAttempt struct {
	TracedStep

	Node     *graph.Node // nil = a reducer
	Function string      // of the reducer
	Task     string
	Attempt  int
	Answered []string // interrupts of the task that have answers
}

// SpanEnd is how the work of a span has ended.
type SpanEnd struct {
	State  string   // a checkpoint.RunState or a checkpoint.Phase, "" = the graph goes on
	Reason string   // of a failure
	Asked  []string // interrupts for which it waits
}

// within returns ctx with a span, if there is one.
func within(ctx context.Context, span Span) context.Context {
	if span == nil {
		return ctx
	}
	return span.Within(ctx)
}

// traceStep begins the span of the superstep that is due, nil = nothing is traced.
func (fr *frame) traceStep(ctx context.Context) Span {
	if fr.env.Tracer == nil {
		return nil
	}
	return fr.env.Tracer.TraceSuperstep(ctx, fr.tracedStep())
}

func (fr *frame) tracedStep() TracedStep {
	return TracedStep{Run: fr.run, Graph: fr.Graph(), Namespace: fr.state.Namespace(), Step: fr.state.NextStep()}
}

// endStep ends the span of a superstep after which the graph ends with v, nil = it goes on.
func endStep(span Span, v *End) {
	var e SpanEnd
	if v != nil {
		e.State, e.Asked = string(v.State), v.openInterrupts
		if v.Failure != nil {
			e.Reason = v.Failure.Reason
		}
	}
	span.End(e)
}

// traceAttempt begins the span of the attempt, if attempts are traced.
func (at *attempt) traceAttempt(ctx context.Context) context.Context {
	if at.env.Tracer == nil || at.task.Node.Kind == graph.KindStart {
		return ctx
	}
	at.span = at.env.Tracer.TraceAttempt(ctx, TracedAttempt{
		TracedStep: at.tracedStep(), Node: at.task.Node, Task: at.task.ID, Attempt: at.attempt,
		Answered: at.pending.answeredIDs(at.task.ID),
	})
	return at.span.Within(ctx)
}

// endTrace ends the span of the attempt.
func (at *attempt) endTrace() {
	if at.span == nil {
		return
	}
	e := SpanEnd{State: string(at.taskPhase()), Asked: at.openInterrupts}
	if at.isAborted {
		e.State = string(checkpoint.RunCancelled)
	}
	if at.failure != nil {
		e.Reason = at.failure.Reason
	}
	at.span.End(e)
}

// traceReducer begins the span of a reducer of a worker, nil = nothing is traced.
func (fr *frame) traceReducer(ctx context.Context, task, function string) Span {
	if fr.env.Tracer == nil {
		return nil
	}
	return fr.env.Tracer.TraceAttempt(ctx, TracedAttempt{TracedStep: fr.tracedStep(), Function: function, Task: task, Attempt: 1})
}

// endReducer ends the span of a reducer.
func endReducer(span Span, f *checkpoint.Failure) {
	e := SpanEnd{State: string(checkpoint.PhaseSucceeded)}
	if f != nil {
		e.State, e.Reason = string(checkpoint.PhaseFailed), f.Reason
	}
	span.End(e)
}

// carrierOf returns the trace context of a span, nil = there is none.
func carrierOf(span Span) map[string]string {
	if span == nil {
		return nil
	}
	return span.Carrier()
}

// answeredIDs lists the interrupts of a task that have answers.
func (p *progress) answeredIDs(task string) []string {
	var ids []string
	for i := range p.interrupts[task] {
		if q := &p.interrupts[task][i]; isAnswered(q) {
			ids = append(ids, q.ID)
		}
	}
	return ids
}
