package edit

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// stateUpdate is one update of a state. It checks the request and builds the change.
type stateUpdate struct {
	editor *Editor
	req    runtime.BulkUpdateStateRequest
	isBulk bool // the request has lists of writes, and errors name their place
	head   checkpoint.Head
	state  *pregel.State
	// reservation is for the reads; it has memory when these are large.
	reservation *runtime.ReadReservation
}

// checkWrites refuses a list of writes that means nothing.
func (u *stateUpdate) checkWrites() error {
	if len(u.req.Supersteps) == 0 {
		return runtime.Errorf(runtime.ReasonInvalidField, "there is nothing to write").WithViolation("supersteps", "must have at least one superstep")
	}
	for i, writes := range u.req.Supersteps {
		if len(writes) == 0 {
			field := fmt.Sprintf("supersteps[%d].updates", i)
			return runtime.Errorf(runtime.ReasonInvalidField, "a superstep without updates").WithViolation(field, "must have at least one update")
		}
		for at, w := range writes {
			switch {
			case len(writes) == 1:
			case w.AsNode == "":
				return runtime.Errorf(runtime.ReasonInvalidField, "it must be clear which node each of several updates is of").
					WithViolation(u.fieldPath(i, at, "as_node"), "must be set when a superstep has several updates")
			case w.AsNode == runtime.AsInput, w.AsNode == runtime.AsNewInput, w.AsNode == runtime.AsCopy, w.AsNode == runtime.AsEnd:
				return runtime.Errorf(runtime.ReasonInvalidField, "an update as %s must be alone in its superstep", w.AsNode).
					WithViolation(u.fieldPath(i, at, "as_node"), "must be a node when a superstep has several updates")
			}
		}
	}
	return nil
}

// fieldPath is where in the request a write, or a part of it, stands.
func (u *stateUpdate) fieldPath(step, at int, part string) string {
	if !u.isBulk {
		return part
	}
	return fmt.Sprintf("supersteps[%d].updates[%d].%s", step, at, part)
}

// checkUpdatable refuses an update that would lose something.
func (u *stateUpdate) checkUpdatable(ctx context.Context, head *checkpoint.Head) error {
	if head.Graph == "" {
		return runtime.Errorf(runtime.ReasonInvalidField, "thread %q has no graph yet; create it with one, or run it first", tenant.ClientName(head.Thread)).
			WithViolation("thread_id", "must name a thread that has a graph")
	}
	if err := runtime.CheckExpected(head, u.req.Expected); err != nil {
		return err
	}
	if head.State == checkpoint.ThreadBusy {
		return runtime.Errorf(runtime.ReasonThreadBusy, "run %q of the thread is active", head.Run).With("activeRunId", head.Run)
	}
	if head.Open == 0 || u.req.SupersedeInterrupts {
		return nil
	}
	var dropped []string
	if err := u.editor.reader.EachWaitingInterrupt(ctx, head.Thread, func(q *checkpoint.Interrupt) {
		if isQuestionWithin(q, u.req.Namespace) {
			dropped = append(dropped, q.ID)
		}
	}); err != nil || len(dropped) == 0 {
		return err
	}
	what := "open questions; answer them"
	switch {
	case head.Retractable > 0:
		what = "questions that wait for an answer, or for its effect; let them be answered"
	case len(dropped) == 1:
		what = "open question; answer it"
	}
	return runtime.Errorf(runtime.ReasonThreadInterrupted, "an update would drop %d %s first, or set supersede_interrupts", len(dropped), what).
		WithIDs("openInterruptIds", dropped).With("count", strconv.Itoa(len(dropped)))
}

// isQuestionWithin reports whether an interrupt asks something in a namespace, or below it.
func isQuestionWithin(q *checkpoint.Interrupt, namespace string) bool {
	return q.Reason != checkpoint.ReasonBreakpoint && isWithinNamespace(q.Namespace, namespace)
}

// isWithinNamespace reports whether a namespace is outer or lies below it. outer may
// lack the task ids.
func isWithinNamespace(ns, outer string) bool {
	if !strings.Contains(outer, ":") {
		ns = pregel.NodePath(ns)
	}
	return outer == "" || ns == outer || strings.HasPrefix(ns, outer+"|")
}

func (u *stateUpdate) putUpdate(ctx context.Context, t *commit.Tx) error {
	t.Actor = u.req.By.Name
	t.Head.AddEditor(u.req.By.Name)
	state := u.state
	run := &checkpoint.Run{ID: u.head.Run, Graph: state.Graph().Name, Metadata: state.Checkpoint().Metadata}
	edit := u.editor.newEdit(t.Thread, run, state, u.req.Namespace == "")
	for i, writes := range u.req.Supersteps {
		step := &stateStep{update: u, number: i, writes: writes, state: state, edit: edit}
		next, err := step.applyStep(ctx, t)
		if err != nil {
			return err
		}
		edit.SetState(next)
		state = next
	}
	t.RecordRequest(u.req.RequestID, u.req.Digest, t.Head.Run)
	return u.settleThread(ctx, t)
}

// settleThread settles the thread: interrupts that the update made pointless are
// closed, and a failed thread is well again.
func (u *stateUpdate) settleThread(ctx context.Context, t *commit.Tx) error {
	if u.req.Namespace != "" {
		return u.supersedeBelow(ctx, t)
	}
	if t.Head.State == checkpoint.ThreadIdle {
		return nil
	}
	if t.Head.State == checkpoint.ThreadInterrupted && !u.req.SupersedeInterrupts {
		return nil // a breakpoint: Resume goes on from the new checkpoint
	}
	if t.Head.State == checkpoint.ThreadInterrupted || u.req.SupersedeInterrupts && t.Head.Open > 0 {
		if err := superstep.SupersedeInterrupts(ctx, u.editor.reader, t); err != nil {
			return fmt.Errorf("close the questions: %w", err)
		}
	}
	t.Head.State = checkpoint.ThreadIdle
	return nil
}

// supersedeBelow closes the interrupts of a subgraph that has moved on without
// answers.
func (u *stateUpdate) supersedeBelow(ctx context.Context, t *commit.Tx) error {
	if t.Head.Open == 0 {
		return nil
	}
	var closed []checkpoint.Interrupt
	if err := u.editor.reader.EachWaitingInterrupt(ctx, t.Thread, func(q *checkpoint.Interrupt) {
		if isQuestionWithin(q, u.state.Namespace()) {
			closed = append(closed, *q)
		}
	}); err != nil || len(closed) == 0 {
		return err
	}
	for i := range closed {
		t.EndWait(&closed[i], checkpoint.InterruptSuperseded)
	}
	t.Interrupts = append(t.Interrupts, closed...)
	t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: closed})
	return nil
}
