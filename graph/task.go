package graph

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// ErrNoTask says that the ctx is not the ctx of a node function.
var ErrNoTask = errors.New("not called with the context of a node function: want the ctx that the function was given")

// Task is the attempt that a function runs in. graphd implements it; a test of
// a function may bring its own.
type Task interface {
	// Ask returns the answer of a question. The error is an [*Interrupted], a
	// [*DismissedError], an [*ExpiredError] or a [*NonDeterministicError].
	Ask(ctx context.Context, q Question) (json.RawMessage, error)
	// Memo returns the record of a key, or runs and records it.
	Memo(ctx context.Context, scope, key string, run Effect) (json.RawMessage, error)
	// Emit sends an event. The error says that its value cannot be sent.
	Emit(e Event) error
}

// Effect is the function that a memo runs once. The idempotency key is the same
// on every attempt.
type Effect func(ctx context.Context, idempotencyKey string) (json.RawMessage, error)

// Info describes the task that a function runs as.
type Info struct {
	Thread       string
	Run          string
	Graph        string
	GraphVersion string
	Node         string
	// Task is the same on every attempt and different for every other visit
	// of the node: fit for an idempotency key.
	Task      string
	Namespace string // where in the thread a subgraph runs, "" = the root graph
	Step      int
	Attempt   int               // from 1
	Metadata  map[string]string // of the run; not to be changed
	Context   string            // JSON text that the run was started with, "" = none
	Input     string            // JSON text of the Send, "" = reached by an edge
	// Failed is set in an error handler: the failure that it handles.
	Failed *Failure
}

// Failure is why a task failed.
type Failure struct {
	Node    string
	Reason  string
	Type    string // the node's own error type, "" = unknown
	Message string
	Attempt int
	Details map[string]string
}

// Event is something a running node tells the followers of its run.
type Event struct {
	Name    string
	Message bool // part of a chat message; Name is empty
	Value   json.RawMessage
	Durable bool // kept in the log
}

// Question is the question that [Ask] sends.
type Question struct {
	Scope     string
	Key       string // "" = matched by position
	Reason    string // "approval", "input", …
	Message   string // prompt to show when nothing else is known
	Value     json.RawMessage
	Schema    json.RawMessage // JSON Schema of the answer, nil = any
	TTL       time.Duration   // 0 = waits for ever
	Expiry    ExpiryAction
	Default   json.RawMessage // answer when it expires, nil = none
	Assignees []string
	Priority  Priority
	Steps     []Step         // what happens while a question is undecided
	Undo      *time.Duration // how long an answer can be taken back, nil = as the server says
	People    *People        // nil = everybody may answer, and one answer decides
	Drift     Drift
	// DriftIgnore names parts that may differ when the function is run again.
	DriftIgnore []string
	// Secret names the parts of Value, Default and the answer that not everybody sees.
	Secret []string
}

type taskKey struct{}

type scopeKey struct{}

type taskBinding struct {
	info *Info
	task Task
}

// WithTask returns a ctx for a call of a function.
func WithTask(ctx context.Context, info *Info, t Task) context.Context {
	return context.WithValue(ctx, taskKey{}, taskBinding{info: info, task: t})
}

func boundTask(ctx context.Context) (taskBinding, error) {
	b, ok := ctx.Value(taskKey{}).(taskBinding)
	if !ok || b.task == nil {
		return taskBinding{}, ErrNoTask
	}
	return b, nil
}

// TaskInfo returns the Info of the function; the zero Info when ctx is not the
// ctx of a node function.
func TaskInfo(ctx context.Context) Info {
	b, err := boundTask(ctx)
	if err != nil || b.info == nil {
		return Info{}
	}
	return *b.info
}

// Failed returns, in an error handler, the failure it takes over, otherwise nil.
func Failed(ctx context.Context) *Failure { return TaskInfo(ctx).Failed }

// Scope makes questions and memos of ctx count apart from those of other scopes.
// Goroutines of a function need a scope each, with a name that is the same on
// replay, for example a tool call's id. A scope inside another is "outer/inner".
func Scope(ctx context.Context, name string) context.Context {
	if outer := scopeOf(ctx); outer != "" {
		name = outer + "/" + name
	}
	return context.WithValue(ctx, scopeKey{}, name)
}

func scopeOf(ctx context.Context) string {
	name, _ := ctx.Value(scopeKey{}).(string)
	return name
}
