package worker

import "github.com/graphd-dev/graphd/internal/runtime/pregel"

// The words in which a result is told, for those who speak for workers.
type (
	// Result is what one attempt of a task came to.
	Result = pregel.Result
	// Ask is one question of a task.
	Ask = pregel.Ask
	// Use is an answer that an attempt has used.
	Use = pregel.Use
	// Failure is a failed attempt.
	Failure = pregel.Failure
	// Journal is what a task must see again.
	Journal = pregel.Journal
)
