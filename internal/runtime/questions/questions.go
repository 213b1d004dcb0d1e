// Package questions changes questions without answering them: it assigns, extends, claims,
// releases and delegates open questions, keeps what people say of them, takes answers back
// that are not in effect, and reveals secret parts of questions in any state. Each change
// puts its entry into the trail of the question.
package questions

import (
	"context"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/trail"
)

// Reader reads interrupts. Errors: INTERRUPT_NOT_FOUND, THREAD_NOT_FOUND and those of the
// store.
type Reader interface {
	Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error)
}

// Options are the collaborators of an Editor.
type Options struct {
	Reader Reader
	// Change makes one change to a thread that may be driven here.
	Change func(ctx context.Context, thread string, b commit.Build) (checkpoint.Head, error)
	// WakeScheduler makes the scheduler look for due threads.
	WakeScheduler func()
}

// Editor changes questions without answering them.
type Editor struct{ opts Options }

// NewEditor makes an editor.
func NewEditor(opts Options) *Editor { return &Editor{opts: opts} }

// UpdateInterrupt changes the assignees and the expiry of an interrupt, or ends the claim
// on it. The errors are *Error: INTERRUPT_NOT_FOUND, INTERRUPT_ALREADY_RESOLVED,
// ETAG_MISMATCH, and those of the store.
func (e *Editor) UpdateInterrupt(ctx context.Context, c runtime.UpdateInterruptRequest) (checkpoint.Interrupt, error) {
	changed, err := e.changeOpen(ctx, c.Question, func(t *commit.Tx, q *checkpoint.Interrupt) error {
		if c.Etag != 0 && c.Etag != q.Revision {
			return runtime.Errorf(runtime.ReasonEtagMismatch, "the record was changed; read it again").With("current", strconv.FormatUint(q.Revision, 10))
		}
		entry := trail.Entry{Kind: trail.Changed}
		if c.Assignees != nil {
			q.ChangeProperties(func(*checkpoint.PropertyChanges) { q.Assignees = *c.Assignees })
			entry.Assignees = *c.Assignees
			entry.Fields = append(entry.Fields, "assignees")
		}
		if c.Expires != nil {
			q.Expires, entry.Until = *c.Expires, *c.Expires
			entry.Fields = append(entry.Fields, "expire_time")
			t.ScheduleBy(q.DueTime())
		}
		if c.EndsClaim {
			q.ClaimedBy, q.ClaimExpires = "", time.Time{}
			entry.Fields = append(entry.Fields, "claimed_by")
		}
		q.AppendTrail(withCaller(t, c.By, entry)) // an operator's
		return nil
	})
	if err == nil {
		e.opts.WakeScheduler()
	}
	return changed, err
}

// ClaimInterrupt claims an open question for the caller, or extends the claim. The errors
// are *Error: INTERRUPT_NOT_FOUND, INTERRUPT_ALREADY_RESOLVED, INTERRUPT_EXPIRED,
// INTERRUPT_CLAIMED, ACCESS_DENIED, INVALID_FIELD for a breakpoint, and those of the store.
func (e *Editor) ClaimInterrupt(ctx context.Context, c runtime.ClaimRequest) (checkpoint.Interrupt, error) {
	return e.changeOpen(ctx, c.Question, func(t *commit.Tx, q *checkpoint.Interrupt) error {
		if err := newAttempt(t, q, c.By).checkClaim(); err != nil {
			return err
		}
		holder := q.ClaimHolder(t.Now)
		q.ClaimedBy, q.ClaimExpires = c.By.Name, t.Now.Add(c.Duration)
		if holder == "" { // that a claim is extended is no news
			appendEntry(t, q, c.By, trail.Entry{Kind: trail.Claimed, Until: q.ClaimExpires})
		}
		return nil
	})
}

// ReleaseInterrupt gives up the claim of the caller. Nothing changes when the caller holds none.
// The errors are *Error: INTERRUPT_NOT_FOUND, INTERRUPT_ALREADY_RESOLVED,
// INTERRUPT_CLAIMED by another caller, and those of the store.
func (e *Editor) ReleaseInterrupt(ctx context.Context, c runtime.ReleaseRequest) (checkpoint.Interrupt, error) {
	return e.changeOpen(ctx, c.Question, func(t *commit.Tx, q *checkpoint.Interrupt) error {
		if err := newAttempt(t, q, c.By).checkRelease(); err != nil {
			return err
		}
		if q.ClaimHolder(t.Now) == "" {
			return commit.ErrNoChange
		}
		q.ClaimedBy, q.ClaimExpires = "", time.Time{}
		appendEntry(t, q, c.By, trail.Entry{Kind: trail.Released, Note: c.Note})
		return nil
	})
}

// CommentInterrupt adds a comment to the trail of an open question. A repeated request adds
// nothing. The errors are *Error: INTERRUPT_NOT_FOUND, INTERRUPT_ALREADY_RESOLVED,
// INTERRUPT_EXPIRED, REQUEST_ID_CONFLICT, TRAIL_FULL, INVALID_FIELD for a breakpoint, and
// those of the store.
func (e *Editor) CommentInterrupt(ctx context.Context, c runtime.CommentRequest) (trail.Entry, error) {
	var added trail.Entry
	err := e.changeQuestion(ctx, c.Question, func(t *commit.Tx, q *checkpoint.Interrupt) error {
		earlier, err := findComment(q, &c)
		if err != nil {
			return err
		}
		if earlier != nil {
			added = *earlier
			return commit.ErrNoChange
		}
		a := newAttempt(t, q, c.By)
		if err := a.checkComment(); err != nil {
			return err
		}
		comment := trail.Entry{Kind: trail.Commented, Note: c.Text, Request: c.RequestID}
		if err := a.checkRoom(&comment, trail.MaxCommentBytes); err != nil {
			return err
		}
		appendEntry(t, q, c.By, comment)
		entries, err := readTrail(q)
		if err != nil {
			return err
		}
		added = entries[len(entries)-1]
		return nil
	})
	return added, err
}

// findComment returns the comment that an earlier call of a request has added, nil for none.
func findComment(q *checkpoint.Interrupt, c *runtime.CommentRequest) (*trail.Entry, error) {
	if c.RequestID == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	entries, err := readTrail(q)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if entry := &entries[i]; entry.Kind == trail.Commented && entry.Request == c.RequestID {
			if entry.Note != c.Text || entry.Principal != c.By.Name {
				return nil, runtime.Errorf(runtime.ReasonRequestIDConflict, "request id %q was used for another comment", c.RequestID).With("requestId", c.RequestID)
			}
			return entry, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// ListTrail returns what happened to a question. The errors are *Error:
// INTERRUPT_NOT_FOUND, CHECKPOINT_CORRUPT for a trail that is not what it was, and those of
// the store.
func (e *Editor) ListTrail(ctx context.Context, question runtime.Question) ([]trail.Entry, error) {
	q, err := e.opts.Reader.Interrupt(ctx, question.Thread, question.Interrupt)
	if err != nil {
		return nil, err
	}
	return readTrail(&q)
}

func readTrail(q *checkpoint.Interrupt) ([]trail.Entry, error) {
	log := q.FullTrail()
	entries, err := log.Entries()
	if err != nil {
		return nil, runtime.Errorf(runtime.ReasonCheckpointCorrupt, "question %q: %v", q.ID, err)
	}
	return entries, nil
}

// changeOpen makes one change of an open question, and returns it as it is then.
func (e *Editor) changeOpen(
	ctx context.Context, question runtime.Question, edit func(t *commit.Tx, q *checkpoint.Interrupt) error,
) (checkpoint.Interrupt, error) {
	err := e.changeQuestion(ctx, question, func(t *commit.Tx, q *checkpoint.Interrupt) error {
		if err := newAttempt(t, q, runtime.Actor{}).checkOpen(); err != nil {
			return err
		}
		return edit(t, q)
	})
	if err != nil {
		return checkpoint.Interrupt{}, err
	}
	return e.opts.Reader.Interrupt(ctx, question.Thread, question.Interrupt)
}

// changeQuestion makes one change of a question.
func (e *Editor) changeQuestion(ctx context.Context, question runtime.Question, edit func(t *commit.Tx, q *checkpoint.Interrupt) error) error {
	_, err := e.opts.Change(ctx, question.Thread, func(t *commit.Tx) error {
		q, err := e.opts.Reader.Interrupt(ctx, question.Thread, question.Interrupt)
		if err != nil {
			return err
		}
		if err := edit(t, &q); err != nil {
			return err
		}
		q.Updated = t.Now
		t.Interrupts = append(t.Interrupts, q)
		return nil
	})
	return err
}

// appendEntry appends an entry of a caller to the trail of a question, while there is room.
func appendEntry(t *commit.Tx, q *checkpoint.Interrupt, by runtime.Actor, entry trail.Entry) {
	entry = withCaller(t, by, entry)
	if q.Trail.HasRoom(&entry, trail.MaxBytes) {
		q.AppendTrail(entry)
	}
}

func newAttempt(t *commit.Tx, q *checkpoint.Interrupt, by runtime.Actor) *attempt {
	return &attempt{q, approval.Voter{Name: by.Name, Groups: by.Groups, IsContributor: t.Head.IsEditor(by.Name)}, t.Now}
}

func withCaller(t *commit.Tx, by runtime.Actor, entry trail.Entry) trail.Entry {
	entry.Time, entry.Principal, entry.How, entry.Method = t.Now, by.Name, by.How, by.Method
	return entry
}
