package engine

import (
	"fmt"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// CountHeld counts what an engine holds for threads in memory.
func CountHeld(e *Engine) (sessions, topics, drifting int) {
	e.mu.Lock()
	sessions, drifting = len(e.sessions), len(e.maybeLeased)
	e.mu.Unlock()
	return sessions, e.feed.CountTopics(), drifting
}

// CountKeptEvents counts the events that an engine keeps in memory for a thread.
func CountKeptEvents(e *Engine, thread string) int { return e.feed.TopicState(thread).Events }

// IsConnected reports whether an engine gets what others do to a thread.
func IsConnected(e *Engine, thread string) bool { return e.feed.TopicState(thread).IsConnected }

// LastPublished is the newest durable event that an engine has heard.
func LastPublished(e *Engine, thread string) uint64 { return e.feed.TopicState(thread).LastEvent }

// LiveBytes is what the live runs of an engine hold, and how many wait for memory.
func LiveBytes(e *Engine) (held int64, waiting int) {
	return e.liveBytes.heldBytes.Load(), e.memoryQueue.Len()
}

// ReadBudgetBytes is what calls hold of large states.
func ReadBudgetBytes(e *Engine) int64 { return e.readBudget.CurrentBytes() }

// DescribeLeaks says what an engine without sessions still counts as held, "" = nothing.
func DescribeLeaks(e *Engine) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := &e.liveBytes
	if n := ReadBudgetBytes(e); len(e.sessions) == 0 && n != 0 {
		return fmt.Sprintf("calls hold %d", n)
	}
	if len(e.sessions) > 0 || b.heldBytes.Load() == 0 && b.heavyRuns.Load() == 0 && b.evictingBytes.Load() == 0 && e.evictedCount == 0 && len(e.grantedMemory) == 0 && e.offeredSlots == 0 && len(e.idleSessions) == 0 {
		return ""
	}
	return fmt.Sprintf("held %d, heavy %d, leaving %d, dismissed %d, called %v", b.heldBytes.Load(), b.heavyRuns.Load(), b.evictingBytes.Load(), e.evictedCount, e.grantedMemory)
}

// NopObserver observes nothing.
var NopObserver runtime.Observer = runtime.NopObserver{}
