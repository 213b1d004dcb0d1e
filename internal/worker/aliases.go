package worker

import (
	"github.com/graphd-dev/graphd/internal/worker/attempt"
	"github.com/graphd-dev/graphd/internal/worker/coverage"
	"github.com/graphd-dev/graphd/internal/worker/kept"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// Types of the packages below, for callers that speak for workers.
type (
	// Hello is how a worker introduces itself.
	Hello = message.Hello
	// Welcome is the answer to a Hello.
	Welcome = message.Welcome
	// Message is something to be sent to a worker.
	Message = message.Message
	// Assignment is a task to run.
	Assignment = message.Assignment
	// CompletionReply answers a Completion that came on the stream.
	CompletionReply = message.CompletionReply
	// Completion is how a task ended, in the words of its worker.
	Completion = message.Completion
	// Receipt is the answer to a completion.
	Receipt = message.Receipt
	// Result is the outcome of one attempt of a task.
	Result = message.Result
	// Failure is a failed attempt.
	Failure = message.Failure
	// Capability is a node, or all nodes, that a worker runs.
	Capability = message.Capability
	// Coverage reports which tasks a process takes.
	Coverage = coverage.Coverage
	// Memos are the memos of one attempt.
	Memos = attempt.Memos
	// ValueDigest names a value that a worker keeps.
	ValueDigest = kept.Digest
)

// MaxKeptValues bounds the values that one worker keeps.
const MaxKeptValues = kept.MaxValues

// NewCoverage makes the coverage of some capabilities.
func NewCoverage(serves []Capability) *Coverage { return coverage.NewCoverage(serves) }
