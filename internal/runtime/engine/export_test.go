package engine

import (
	"fmt"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
)

// CountHeld counts what an engine holds for threads in memory.
func CountHeld(e *Engine) (sessions, topics, drifting int) {
	sessions, drifting = e.held.CountThreads()
	return sessions, e.feed.CountTopics(), drifting
}

// CountKeptEvents counts the events that an engine keeps in memory for a thread.
func CountKeptEvents(e *Engine, thread string) int { return e.feed.TopicState(thread).Events }

// IsConnected reports whether an engine gets what others do to a thread.
func IsConnected(e *Engine, thread string) bool { return e.feed.TopicState(thread).IsConnected }

// LastPublished returns the newest durable event that an engine has heard.
func LastPublished(e *Engine, thread string) uint64 { return e.feed.TopicState(thread).LastEvent }

// LiveBytes returns the bytes that the live runs of an engine hold, and how many runs
// wait for memory.
func LiveBytes(e *Engine) (held int64, waiting int) {
	n := e.capacity.Counts()
	return n.HeldBytes, n.Waiters
}

// ReadBudgetBytes returns the bytes that calls hold of large states.
func ReadBudgetBytes(e *Engine) int64 { return e.readBudget.CurrentBytes() }

// DescribeLeaks says what an engine without sessions still counts as held, "" = nothing.
func DescribeLeaks(e *Engine) string {
	sessions, _ := e.held.CountThreads()
	if n := ReadBudgetBytes(e); sessions == 0 && n != 0 {
		return fmt.Sprintf("calls hold %d", n)
	}
	n := e.capacity.Counts()
	n.Waiters = 0
	if sessions > 0 || n == (capacity.Counts{}) {
		return ""
	}
	return fmt.Sprintf("%+v", n)
}

// FindRecentView returns the recent view of a thread, nil when there is none.
func FindRecentView(e *Engine, thread, request string) *checkpoint.ThreadView {
	return e.views.FindView(thread, request)
}

// NopObserver observes nothing.
var NopObserver runtime.Observer = runtime.NopObserver{}
