package message

import "github.com/graphd-dev/graphd/internal/runtime/pregel"

// Types of results, for callers that speak for workers.
type (
	// Result is the outcome of one attempt of a task.
	Result = pregel.Result
	// Ask is one interrupt of a task.
	Ask = pregel.Ask
	// UsedAnswer is an answer that an attempt has used.
	UsedAnswer = pregel.UsedAnswer
	// Answer is the reply to an interrupt.
	Answer = pregel.Answer
	// Failure is a failed attempt.
	Failure = pregel.Failure
	// Journal is the record that a task must see again.
	Journal = pregel.Journal
)
