package expr

import (
	"errors"
	"fmt"
	"math"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// The limits of an evaluation, as the options of the server that set them.
const (
	LimitSteps  = "max-expression-steps"
	LimitBytes  = "max-expression-bytes"
	LimitResult = "max-value-bytes"
	LimitDepth  = "max-depth"
	limitRegex  = "regular expressions" // always MaxRegexSize
)

// MaxRegexSize bounds the size of all constant regular expressions of an
// expression, and of each computed regular expression, in instructions of their
// programs.
const MaxRegexSize = 2_000

// newLimitError returns the error of an evaluation that needs more than most. It stops
// before it does the work or allocates the bytes, so need is a lower bound.
func newLimitError(limit string, most, need int64) *graph.LimitError {
	e := &graph.LimitError{Limit: limit, Max: most, Needed: need}
	if limit == limitRegex {
		e.Limit = "" // no option sets it
	}
	switch limit {
	case LimitSteps:
		e.Problem = fmt.Sprintf("the expression does too much work: more than %d steps (--%s); "+
			"loop over less, or use a function node", most, limit)
	case LimitBytes:
		e.Problem = fmt.Sprintf("the expression needs too much memory: at least %d bytes, more than the %d of --%s; "+
			"build less, or use a function node", need, most, limit)
	case LimitResult:
		e.Problem = fmt.Sprintf("the result of the expression is too large: at least %d bytes, more than the %d of --%s; "+
			"keep large values elsewhere and references to them in the state", need, most, limit)
	case LimitDepth:
		e.Problem = fmt.Sprintf("the result of the expression is nested more than %d levels deep (--%s)", most, limit)
	case limitRegex:
		e.Problem = fmt.Sprintf("the regular expressions are too large: %d instructions, the most is %d; "+
			"use smaller counts in braces", need, most)
	}
	return e
}

// meter counts the steps and bytes that an evaluation has left. Its methods end the
// evaluation by a panic that the interpreter and Program.Eval recover, so that an
// expression cannot catch it with || or orValue. A nil meter counts nothing: the
// library folds constants while it compiles.
type meter struct {
	steps, bytes   int64 // left
	limits         *Options
	largeEvalSlots chan struct{} // see acquireSlot
	hasSlot        bool
	cancelled      <-chan struct{} // the caller no longer waits; nil = it waits to the end
	exceeded       *graph.LimitError
	refused        error // why it ended, when no limit did it
}

// smallEvalBytes is how many bytes an evaluation may allocate before it needs a slot.
const smallEvalBytes = 1 << 20

func newMeter(limits *Options, slots chan struct{}, cancelled <-chan struct{}) meter {
	return meter{steps: limits.MaxSteps, bytes: limits.MaxBytes, limits: limits, largeEvalSlots: slots, cancelled: cancelled}
}

// chargeSteps charges work: about one per call, per pass of a loop, and per 32 bytes
// of text handled.
func (m *meter) chargeSteps(n int64) {
	if m == nil {
		return
	}
	if n > m.steps {
		m.stopEvaluation(LimitSteps, m.limits.MaxSteps, 0)
	}
	m.steps -= n
}

// chargeRead charges the work of looking at n bytes.
func (m *meter) chargeRead(n int64) { m.chargeSteps(1 + n/32) }

// chargeBytes charges n things of size bytes, before they are allocated.
func (m *meter) chargeBytes(n, size int64) {
	if m == nil || n <= 0 || size <= 0 {
		return
	}
	if n > m.bytes/size {
		need := int64(math.MaxInt64)
		if n < math.MaxInt64/size-m.limits.MaxBytes {
			need = n*size + m.limits.MaxBytes - m.bytes
		}
		m.stopEvaluation(LimitBytes, m.limits.MaxBytes, need)
	}
	m.bytes -= n * size
	if !m.hasSlot && m.limits.MaxBytes-m.bytes > smallEvalBytes {
		m.acquireSlot()
	}
}

// acquireSlot waits for a slot for evaluations that hold much memory. An
// evaluation with a slot waits for nothing, and its steps are bounded, so the wait
// ends. It ends early when the caller no longer waits.
func (m *meter) acquireSlot() {
	select {
	case m.largeEvalSlots <- struct{}{}:
		m.hasSlot = true
	case <-m.cancelled:
		m.refuseEvaluation(ErrCancelled, interpreter.ContextCancelled)
	}
}

// ErrCancelled says that an evaluation has ended because its caller no longer waits.
var ErrCancelled = errors.New("the evaluation was cancelled")

// refuseNumber ends an evaluation that looks into a number beyond the range of
// fractions: as infinity it would equal every other such number.
func (m *meter) refuseNumber(text payload.JSON) ref.Val {
	err := fmt.Errorf("the number %s is beyond the range of fractions, about 1.8e308; expressions can carry it, not look into it", clipNumber(text))
	if m != nil {
		m.refuseEvaluation(err, interpreter.CostLimitExceeded)
	}
	return types.WrapErr(err)
}

// clipNumber shortens a number for a message.
func clipNumber(text payload.JSON) string {
	const most = 40
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// refuseEvaluation ends the evaluation with an error that expressions can't catch.
func (m *meter) refuseEvaluation(err error, cause interpreter.CancellationCause) {
	m.refused = err
	//nolint:forbidigo // how the interpreter is stopped; Eval returns it as an error
	panic(interpreter.EvalCancelledError{Cause: cause, Message: err.Error()})
}

func (m *meter) releaseSlot() {
	if m.hasSlot {
		m.hasSlot = false
		<-m.largeEvalSlots
	}
}

func (m *meter) stopEvaluation(limit string, most, need int64) {
	m.exceeded = newLimitError(limit, most, need)
	//nolint:forbidigo // how the interpreter is stopped; Eval returns it as an error
	panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: m.exceeded.Error()})
}
