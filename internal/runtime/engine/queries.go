package engine

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Thread returns the head of a thread. Errors: those of runtime.TranslateThreadError.
func (e *Engine) Thread(ctx context.Context, thread string) (checkpoint.Head, error) {
	return e.reader.Thread(ctx, thread)
}

// Threads lists threads by update time, newest first. Errors: those of
// runtime.TranslateStoreError, and those of the wait for memory.
func (e *Engine) Threads(ctx context.Context, memory *runtime.CallMemory, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	return e.reader.Threads(ctx, memory, q)
}

// SkipThreads passes over the first n threads of a query, and returns the place of the last, zero
// when there are fewer. Errors: those of runtime.TranslateStoreError.
func (e *Engine) SkipThreads(ctx context.Context, q checkpoint.ThreadQuery, n int) (checkpoint.ThreadPosition, error) {
	return e.reader.SkipThreads(ctx, q, n)
}

// CountThreads returns how many threads a query selects, or atMost if it selects more. Errors:
// those of runtime.TranslateStoreError.
func (e *Engine) CountThreads(ctx context.Context, q checkpoint.ThreadQuery, atMost int) (int, error) {
	return e.reader.CountThreads(ctx, q, atMost)
}

// Run returns a run of a thread; with an empty id the newest. The errors are
// *Error: THREAD_NOT_FOUND, RUN_NOT_FOUND, and those of the store.
func (e *Engine) Run(ctx context.Context, memory *runtime.CallMemory, thread, run string) (checkpoint.Run, error) {
	return e.reader.Run(ctx, memory, thread, run)
}

// Runs lists a thread's runs, newest first, of Order smaller than before (0 = all): at
// most limit, and fewer when their bytes, with the outputs, exceed bytes (0 = no limit),
// but at least one run. more reports whether others follow.
func (e *Engine) Runs(
	ctx context.Context, memory *runtime.CallMemory, thread string, before uint64, limit, bytes int,
) (runs []checkpoint.Run, more bool, err error) {
	return e.reader.Runs(ctx, memory, thread, before, limit, bytes)
}

// WaitRun returns a run, the newest for an empty id, when it has stopped: it has ended,
// or it waits for answers. Errors: *Error THREAD_NOT_FOUND, RUN_NOT_FOUND, those of the
// store, and the cause of ctx.
func (e *Engine) WaitRun(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	return e.reader.WaitRun(ctx, thread, run)
}

// Interrupts lists interrupts over all threads. Errors: those of
// runtime.TranslateStoreError, and those of the wait for memory.
func (e *Engine) Interrupts(ctx context.Context, memory *runtime.CallMemory, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return e.reader.Interrupts(ctx, memory, q)
}

// LatestInterruptChange returns a number that every later change of an interrupt exceeds.
// Errors: those of runtime.TranslateStoreError.
func (e *Engine) LatestInterruptChange(ctx context.Context) (uint64, error) {
	return e.reader.LatestInterruptChange(ctx)
}

// CurrentTime returns the time by which claims and leases end: that of the store, as far as it is
// known.
func (e *Engine) CurrentTime() time.Time { return e.now() }

// CountInterrupts returns how many open interrupts of a tenant have each of some tags. Errors:
// those of runtime.TranslateStoreError.
func (e *Engine) CountInterrupts(ctx context.Context, owner string, tags []string) ([]int, error) {
	return e.reader.CountInterrupts(ctx, owner, tags)
}

// ReadQuestionStatistics returns what became of the questions of a tenant, as far as this server
// did it.
func (e *Engine) ReadQuestionStatistics(q runtime.StatisticsQuery) runtime.QuestionStatistics {
	return e.statistics.ReadQuestions(q)
}

// ReadAnswerStatistics returns how the questions of a node of a tenant's graph were answered, as
// far as this server did it.
func (e *Engine) ReadAnswerStatistics(owner, graph, node string) runtime.AnswerStatistics {
	return e.statistics.ReadAnswers(owner, graph, node)
}

// Interrupt returns one interrupt. The errors are *Error: THREAD_NOT_FOUND,
// INTERRUPT_NOT_FOUND, and those of the store.
func (e *Engine) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	return e.reader.Interrupt(ctx, thread, id)
}

// OpenInterruptIDs returns the ids of at most that many open interrupts of a thread, the oldest
// first. Errors: those of runtime.TranslateStoreError.
func (e *Engine) OpenInterruptIDs(ctx context.Context, thread string, most int) ([]string, error) {
	return e.reader.OpenInterruptIDs(ctx, thread, most)
}

// OpenInterrupts returns at most that many open interrupts of a thread, the oldest first. whole says
// that they are all of those: large ones are not. Errors: those of Interrupts.
func (e *Engine) OpenInterrupts(
	ctx context.Context, memory *runtime.CallMemory, thread string, most int,
) (open []checkpoint.Interrupt, whole bool, err error) {
	return e.reader.OpenInterrupts(ctx, memory, thread, most)
}

// OutputOfWaiting returns the output keys of the newest state of a run that waits for answers, ""
// when the thread has gone on with another run. The errors are those of State.
func (e *Engine) OutputOfWaiting(ctx context.Context, memory *runtime.CallMemory, run *checkpoint.Run) (payload.JSON, error) {
	return e.snapshots.ReadOutputOfWaiting(ctx, memory, run)
}

// State reads a state. The newest state includes the writes of the finished tasks of its
// superstep. An older state is as it was. The errors are *Error: THREAD_NOT_FOUND,
// CHECKPOINT_NOT_FOUND, GRAPH_NOT_FOUND, INVALID_FIELD, and those of the store.
func (e *Engine) State(ctx context.Context, req runtime.StateRequest) (runtime.Snapshot, error) {
	return e.snapshots.ReadState(ctx, req, runtime.ReadWaitTimeout)
}

// States lists older states of a namespace, newest first: at most as many as the query
// says, and fewer when they are large. more says that there may be others. Errors:
// *Error THREAD_NOT_FOUND, and those of State for each state.
func (e *Engine) States(ctx context.Context, q runtime.HistoryQuery) (list []runtime.Snapshot, more bool, err error) {
	return e.snapshots.ListStates(ctx, q)
}

// ValuesAt returns the values at a checkpoint. Its errors are those of InputAt, and
// *Error THREAD_NOT_FOUND.
func (e *Engine) ValuesAt(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id string) (payload.JSON, error) {
	return e.snapshots.ReadValues(ctx, memory, thread, namespace, id)
}

// InputAt returns the view that a node has of the state at a checkpoint. The errors are
// *Error: CHECKPOINT_NOT_FOUND, GRAPH_NOT_FOUND, and those of the store; a node that the
// graph no longer has sees nothing.
func (e *Engine) InputAt(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id, node string) (payload.JSON, error) {
	return e.snapshots.ReadInput(ctx, memory, thread, namespace, id, node)
}
