// Package function makes attempts of Go functions: it replays what earlier attempts have done,
// and turns what a function returns into a result. It serves functions in the process of a server
// and in workers.
package function

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Options tune a Runner. Zero fields mean the defaults in their comments.
type Options struct {
	// Schemas checks the schema and the default of an interrupt before it is
	// raised; unchecked when nil.
	Schemas Schemas
	// Limits bound every value of a function's result.
	Limits payload.Limits
	// Grace is the time that a function may run after its ctx has ended, before it
	// is abandoned; 500 ms.
	Grace time.Duration
	// SeparateGoroutines runs every function in a goroutine of its own, as those
	// with a time limit always are, so that Run ends with its ctx in any case.
	// It costs a few microseconds per call. Without it, a function that ignores the
	// end of its ctx holds its run for as long as it runs.
	SeparateGoroutines bool
	// StrictReplay fails a function that ends without using all entries of its
	// journal. Otherwise a line of the log says that.
	StrictReplay bool
	// NamesUsedAnswers names in a result every answer that the attempt has used. Without it a result
	// names those that were used for another question than was shown.
	NamesUsedAnswers bool
	Logger           *zap.Logger // silent when nil
}

// Schemas checks the questions of functions.
type Schemas interface {
	runtime.Schemas
	// CheckSchema returns an error for a schema against which no value can be checked.
	CheckSchema(schema payload.JSON) error
}

// Task is what an attempt of a function may depend on.
type Task struct {
	Info   api.Info
	Thread string // as the log names it
	Input  api.Values
	// Router, when set, makes the attempt decide a conditional edge.
	Router string
	// State is the form of the updates.
	State StateForm
	// HasTimeLimit says that the attempt has an idle timeout. That of ctx is known.
	HasTimeLimit bool

	Journal pregel.Journal
	Spec    *graph.Spec // has the drift policies of the graph; nil = it has none
	Effects Effects
	// BeginEffect waits until the effect of a memo may begin. The error keeps it from that. nil = it
	// may begin at once.
	BeginEffect func(context.Context) error
}

// What effects are.
type (
	// Emission is one event from inside a function.
	Emission = runtime.Emission
	// Memo is a value that a function has recorded.
	Memo = checkpoint.Memo
)

// Effects are the effects that a running function may have before it returns a result.
type Effects interface {
	// EmitEvent sends an event to the followers.
	EmitEvent(e Emission)
	// RecordMemo records a memo durably and returns the stored value. That is
	// the earlier value if the memo existed.
	RecordMemo(ctx context.Context, m Memo) (value payload.JSON, existed bool, err error)
}

// StateForm is the form of a graph's state.
type StateForm int

const (
	// Channels is a state of channels: updates are objects.
	Channels StateForm = iota
	// SingleValue is a state that is one value: an update is a value.
	SingleValue
	// UnknownForm takes every update: the server checks it.
	UnknownForm
)

// Runner makes attempts of functions. It is safe for concurrent use.
type Runner struct {
	options  Options
	log      *zap.Logger
	encoders sync.Pool // of *encoder
}

// NewRunner makes a Runner.
func NewRunner(options Options) *Runner {
	if options.Grace <= 0 {
		options.Grace = 500 * time.Millisecond
	}
	r := &Runner{options: options, log: options.Logger}
	if r.log == nil {
		r.log = zap.NewNop()
	}
	r.encoders.New = func() any { return newEncoder() }
	return r
}

// Run makes one attempt of a function. A panic of the function is a failure.
func (r *Runner) Run(ctx context.Context, t *Task, f api.Func) pregel.Result {
	c := &call{runner: r, task: t}
	c.replay.load(t, r.options.NamesUsedAnswers)
	return c.runFunction(ctx, f)
}
