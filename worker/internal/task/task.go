// Package task runs the code of a task that a server has assigned to a worker, and turns what came
// of it into a result.
package task

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/node/function"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// StateForm is the form of the state of a graph.
type StateForm = function.StateForm

// Forms of states.
const (
	SingleValue = function.SingleValue
	UnknownForm = function.UnknownForm
)

// Code is what runs for a task: a function, or a reducer.
type Code struct {
	Function graph.Func
	Reduce   graph.Reduce
	// State is the form of the state of the graph.
	State StateForm
}

// Host is what a running task needs of its session.
type Host interface {
	// BeginEffect waits until it is certain that the task is this worker's. The error says that it is
	// not.
	BeginEffect(ctx context.Context) error
	// RecordMemo records a memo, however long that takes.
	RecordMemo(ctx context.Context, r *graphdv1.RecordMemoRequest) (*graphdv1.RecordMemoResponse, error)
	// Emit sends an event, soon.
	Emit(e *graphdv1.EmitItem)
}

// Limits are the bounds of a server.
type Limits struct {
	MaxResultBytes int // of a result, all values together; 0 = 4 MiB
}

// maxResultBytes is what a server takes that says nothing.
const maxResultBytes = 4 << 20

// Runner runs tasks. It is safe for concurrent use.
type Runner struct {
	functions *function.Runner
	tracer    trace.Tracer // nil = tasks have no spans
}

// NewRunner makes a Runner. Options that concern a worker are set. Without a tracer tasks have no
// spans.
func NewRunner(options function.Options, tracer trace.Tracer) *Runner {
	options.NamesUsedAnswers = true
	options.Limits.MaxBytes = maxResultBytes
	return &Runner{functions: function.NewRunner(options), tracer: tracer}
}

// Run runs a task to its end, and returns its result. A panic is a failure of the task.
func (r *Runner) Run(ctx context.Context, a *graphdv1.TaskAssignment, code Code, host Host, limits Limits) *graphdv1.TaskResult {
	ctx, span := r.beginTrace(ctx, a)
	out := r.runUntraced(ctx, a, code, host, limits)
	endTrace(span, out)
	return out
}

func (r *Runner) runUntraced(ctx context.Context, a *graphdv1.TaskAssignment, code Code, host Host, limits Limits) *graphdv1.TaskResult {
	var result pregel.Result
	if code.Reduce != nil {
		result = reduce(a.GetReduction(), code.Reduce)
	} else {
		result = r.functions.Run(ctx, newFunctionTask(a, code, host), code.Function)
	}
	out, err := wire.TaskResultToProto(&result, a.GetJournal().GetDriftIgnore())
	if err != nil {
		out = failedResult(function.InvalidResult(err))
	}
	most := limits.MaxResultBytes
	if most <= 0 {
		most = maxResultBytes
	}
	if size := proto.Size(out); size > most {
		out = failedResult(function.InvalidResult(&payload.LimitError{Limit: "bytes", Max: most, Got: size}))
	}
	return out
}

func failedResult(f *pregel.Failure) *graphdv1.TaskResult {
	out, _ := wire.TaskResultToProto(&pregel.Result{Failure: f}, nil) // a failure has no secret parts
	return out
}

// NotServed is the result of a task for which there is no code.
func NotServed(what string) *graphdv1.TaskResult {
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Failed{Failed: &graphdv1.TaskFailed{
		Type: "UnknownFunction", Message: what, Cause: graphdv1.TaskFailed_CAUSE_NOT_SERVED,
	}}}
}

// Cancelled is the result of a task that has ended because the server had asked for it.
func Cancelled(note string) *graphdv1.TaskResult {
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Cancelled{Cancelled: &graphdv1.TaskCancelled{Note: note}}}
}

// NotTaken is the result of a task whose result the server refuses. Silence would have the task run
// again, by one worker after the other.
func NotTaken(err error) *graphdv1.TaskResult {
	return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Failed{Failed: &graphdv1.TaskFailed{
		Type: "ResultNotTaken", Message: "the server did not take the result: " + function.ClipText(err.Error()), NonRetryable: true,
		Cause: graphdv1.TaskFailed_CAUSE_INVALID_UPDATE,
	}}}
}

// reduce combines writes by a reducer. A panic of the reducer is a failure.
func reduce(r *graphdv1.Reduction, by graph.Reduce) (result pregel.Result) {
	in := pregel.Reduction{Channel: r.GetChannel(), Current: payload.JSON(r.GetCurrent().GetJson())}
	for _, w := range r.GetWrites() {
		in.Writes = append(in.Writes, payload.JSON(w.GetJson()))
	}
	if len(in.Writes) == 0 {
		return function.FailedResult(function.InvalidResult(fmt.Errorf("the reducer of channel %q got nothing to combine", in.Channel)))
	}
	if caught := contain.Call(func() { result = function.ReduceWrites(&in, by) }); caught != nil {
		return function.FailedResult(function.FailureOf(graph.OfType("panic", caught)))
	}
	return result
}

// newFunctionTask returns what an attempt of a function may depend on.
func newFunctionTask(a *graphdv1.TaskAssignment, code Code, host Host) *function.Task {
	in := newInput(a)
	journal, drift := wire.JournalFromProto(a.GetJournal())
	state := code.State
	if _, isRoot := a.GetChannels()[rootChannel]; isRoot {
		state = function.SingleValue
	}
	return &function.Task{
		Info: graph.Info{
			Thread: a.GetThreadId(), Run: a.GetRunId(), Graph: a.GetGraph(), GraphVersion: a.GetGraphVersion(), Node: a.GetNode(),
			Task: a.GetTaskId(), Namespace: strings.Join(a.GetNamespace(), "|"), Step: int(a.GetStep()), Attempt: int(a.GetAttempt()),
			Metadata: a.GetMetadata(), Context: a.GetContext().GetJson(), Input: a.GetSendInput().GetJson(), Failed: newFailure(a.GetFailure()),
		},
		Thread: a.GetThreadId(), Input: in, Router: router(a), State: state,
		Journal: journal, Spec: drift, Effects: effects{a.GetLease().GetToken(), host}, BeginEffect: host.BeginEffect,
	}
}

func router(a *graphdv1.TaskAssignment) string {
	if a.GetKind() == graphdv1.TaskKind_TASK_KIND_ROUTER {
		return a.GetFunction()
	}
	return ""
}

func newFailure(f *graphdv1.Failure) *graph.Failure {
	if f == nil {
		return nil
	}
	return &graph.Failure{
		Node: f.GetNode(), Reason: f.GetReason(), Type: f.GetType(), Message: f.GetMessage(), Attempt: int(f.GetAttempt()), Details: f.GetDetails(),
	}
}

// effects are those of a function in a worker.
type effects struct {
	lease []byte
	host  Host
}

// EmitEvent sends an event to the followers.
func (e effects) EmitEvent(event function.Emission) {
	item := &graphdv1.EmitItem{
		Channel: graphdv1.Channel_CHANNEL_CUSTOM, Name: event.Name, Value: wire.JSONToProto(event.Value), Durable: event.Durable,
	}
	if event.Name == "" { // only messages have none
		item.Channel = graphdv1.Channel_CHANNEL_MESSAGES
	}
	e.host.Emit(item)
}

// RecordMemo records a memo.
func (e effects) RecordMemo(ctx context.Context, m function.Memo) (payload.JSON, bool, error) {
	r, err := e.host.RecordMemo(ctx, &graphdv1.RecordMemoRequest{
		LeaseToken: e.lease, Scope: m.Scope, Key: m.Key, Index: wire.ClampUint32(m.Index), Value: wire.JSONToProto(m.Value),
	})
	return payload.JSON(r.GetValue().GetJson()), r.GetExisted(), err
}
