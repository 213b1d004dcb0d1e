package questions

import (
	"context"
	"slices"
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/trail"
)

// RevealInterrupt returns the secret parts of a question when the entry that says who saw them is
// stored. Who may see them says the policy. A caller who may because of being allowed to answer sees
// those of the own answer only. The errors are *Error: INTERRUPT_NOT_FOUND, ACCESS_DENIED,
// TRAIL_FULL, THREAD_BUSY while a run works with the answer, INVALID_FIELD for a question without
// secret parts and for unknown pointers, CHECKPOINT_CORRUPT, and those of the store.
func (e *Editor) RevealInterrupt(ctx context.Context, c runtime.RevealRequest) (runtime.Revealed, error) {
	var shown runtime.Revealed
	_, err := e.opts.Change(ctx, c.Thread, func(t *commit.Tx) error {
		q, err := e.opts.Reader.Interrupt(ctx, c.Thread, c.Interrupt)
		if err != nil {
			return err
		}
		if shown, err = revealParts(t, &q, &c); err != nil {
			return err
		}
		t.Interrupts = append(t.Interrupts, q)
		return nil
	})
	if err != nil {
		return runtime.Revealed{}, err
	}
	return shown, nil
}

// revealParts appends the entry to the trail of a question, and returns what it tells of.
func revealParts(t *commit.Tx, q *checkpoint.Interrupt, c *runtime.RevealRequest) (runtime.Revealed, error) {
	a := newAttempt(t, q, c.By)
	if err := a.checkSecret(); err != nil {
		return runtime.Revealed{}, err
	}
	pointers, err := choosePointers(q, c.Pointers)
	if err != nil {
		return runtime.Revealed{}, err
	}
	if err := a.checkRevealer(); err != nil {
		return runtime.Revealed{}, err
	}
	if !q.IsWaiting() && t.Head.State == checkpoint.ThreadBusy { // the run would store the question without the entry
		return runtime.Revealed{}, runtime.Errorf(runtime.ReasonThreadBusy, "run %q works with the answer to question %q; try again when it has paused or ended", t.Head.Run, q.ID).
			With("activeRunId", t.Head.Run).With("interruptId", q.ID)
	}
	entry := withCaller(t, c.By, trail.Entry{Kind: trail.Revealed, Fields: pointers, Note: c.Note})
	q.Trail = q.FullTrail()
	if err := a.checkRoom(&entry, trail.MaxBytes); err != nil {
		return runtime.Revealed{}, err
	}
	q.AppendTrail(entry)
	if q.IsWaiting() { // the time of the others says when they ended
		q.Updated = t.Now
	}
	seesAnswer := q.VoterPolicy().NamesRevealer(a.by) || q.Responder == c.By.Name
	shown, err := restoreParts(q, pointers, seesAnswer)
	if err != nil {
		return runtime.Revealed{}, err
	}
	entries, err := readTrail(q)
	if err != nil {
		return runtime.Revealed{}, err
	}
	shown.Entry = entries[len(entries)-1]
	return shown, nil
}

// choosePointers returns the pointers of a question that a request names, or all.
func choosePointers(q *checkpoint.Interrupt, named []string) ([]string, error) {
	for i, pointer := range named {
		if !slices.Contains(q.Secret, pointer) {
			field := "pointers[" + strconv.Itoa(i) + "]"
			return nil, runtime.Errorf(runtime.ReasonInvalidField, "%s: question %q has no secret part %q", field, q.ID, pointer).
				WithViolation(field, "must be one of the secret parts of the question: %q", q.Secret)
		}
	}
	if len(named) == 0 {
		return q.Secret, nil
	}
	return slices.Compact(slices.Sorted(slices.Values(named))), nil
}

// restoreParts returns what a question shows with the parts at some pointers.
func restoreParts(q *checkpoint.Interrupt, pointers []string, seesAnswer bool) (shown runtime.Revealed, err error) {
	if shown.Value, err = q.Hidden.Value.RestoreAt(q.Value, pointers); err != nil {
		return shown, brokenPartsError(q, err)
	}
	if shown.Default, err = q.Hidden.Default.RestoreAt(q.Default, pointers); err != nil {
		return shown, brokenPartsError(q, err)
	}
	if shown.Response = q.Response; !seesAnswer {
		return shown, nil
	}
	if shown.Response, err = q.Hidden.Response.RestoreAt(q.Response, pointers); err != nil {
		return shown, brokenPartsError(q, err)
	}
	return shown, nil
}

func brokenPartsError(q *checkpoint.Interrupt, err error) *runtime.Error {
	return runtime.Errorf(runtime.ReasonCheckpointCorrupt, "question %q: %v", q.ID, err)
}
