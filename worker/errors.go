package worker

import (
	"errors"
	"fmt"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/worker/internal/session"
)

// OptionError says which option of a worker is wrong.
type OptionError struct {
	Field  string
	Reason string
}

// Error names the field and what would be right.
func (e *OptionError) Error() string { return "worker: " + e.Field + " " + e.Reason }

// GraphError says why a server does not take a graph.
type GraphError struct {
	Graph    string
	Problems []GraphProblem
}

// GraphProblem is one thing that is wrong with a graph.
type GraphProblem struct {
	// Field is its path in the description; "" = the whole.
	Field string
	// Description says what is wrong, and what would be right.
	Description string
}

// Error lists the problems, a line for each.
func (e *GraphError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the server does not take the graph %q:", e.Graph)
	for _, p := range e.Problems {
		text.WriteString("\n  ")
		if p.Field != "" {
			text.WriteString(p.Field + ": ")
		}
		text.WriteString(p.Description)
	}
	return text.String()
}

func newGraphError(g *graphdv1.GraphRegistration) *GraphError {
	e := &GraphError{Graph: g.GetGraph()}
	for _, p := range g.GetProblems() {
		e.Problems = append(e.Problems, GraphProblem{Field: p.GetField(), Description: p.GetDescription()})
	}
	return e
}

// UnfinishedError says that a worker has left before its tasks had ended.
type UnfinishedError struct {
	// Tasks is how many had not: other workers run them again.
	Tasks int
}

// Error has the number.
func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("the worker has left before %d of its tasks had ended; other workers run them again", e.Tasks)
}

// StoppedError is the cause with which the context of a node ends that the server has stopped.
type StoppedError struct{ Reason string }

// Error has the reason.
func (e *StoppedError) Error() string { return "the server has stopped the task: " + e.Reason }

// ErrHasRun refuses a second call of [Worker.Run].
var ErrHasRun = errors.New("the worker has run before: make a new one")

// Causes with which the context of a node ends.
var (
	// ErrLost is the cause when another worker has the task.
	ErrLost = session.ErrLost
	// ErrLeaving is the cause when the worker leaves, and the node takes too long.
	ErrLeaving = session.ErrLeaving
)
