package threads

import (
	"context"
	"fmt"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
)

// Messenger holds the ephemeral events of threads that changes take along, and tells
// other servers of changed interrupts.
type Messenger interface {
	PendingText(thread string) (text string, last uint64)
	AcknowledgeMessages(thread string, last uint64, listeners int64)
	AnnounceInterruptChange()
}

// Writer applies changes of threads.
type Writer struct {
	database  *setup.Database
	reader    *Reader
	messenger Messenger
	origin    string // distinguishes the messages of this store from those of others
}

// NewWriter makes the writer of a store. reader reads the records that a change removes,
// and has the batchers that send it; origin distinguishes the messages of this store from
// those of others.
func NewWriter(d *setup.Database, reader *Reader, m Messenger, origin string) *Writer {
	return &Writer{database: d, reader: reader, messenger: m, origin: origin}
}

// ApplyChange makes a change in one exchange with the server. An attempt whose
// answer was lost is repeated under its Op, which the server knows again; when
// another change has followed meanwhile, the outcome is unknown, and the error
// wraps ErrUnavailable, never ErrConflict.
func (w *Writer) ApplyChange(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	var a *script.Call
	var published uint64
	if c.Delete {
		a = script.NewCall(w.database.Scripts.Remove, w.database.Keys.ChangeKeys(c.Thread, true))
		a.AppendUint(c.Expect)
		a.AppendText(c.LogID)
		a.AppendText(c.Op)
		a.AppendText(w.origin)
		a.AppendText(c.Thread)
		a.AppendText(w.database.Mark)
	} else {
		old, err := w.reader.findPruned(ctx, c)
		if err != nil {
			return checkpoint.Receipt{}, err
		}
		var text string
		text, published = w.messenger.PendingText(c.Thread)
		a = w.encodeChange(c, old, text, needsAllKeys(c, old))
	}
	missed := &script.Unanswered{}
	r := script.NewPendingCall(ctx, a, missed)
	sender := w.reader.batchers.OfPartition(w.database.Keys.PartitionOf(c.Thread))
	var answer script.Reply
	call := func() (err error) {
		answer, err = sender.SendCall(r)
		return err
	}
	var err error
	if c.Op == "" || c.Delete {
		err = call() // nothing would tell a repetition from a second change
	} else {
		err = script.Retry(ctx, call)
	}
	if err != nil {
		return checkpoint.Receipt{}, missed.WrapOutcome(ctx, err)
	}
	if n, ok := answer.IntAt(4); ok {
		w.messenger.AcknowledgeMessages(c.Thread, published, n)
	}
	if len(c.Interrupts) > 0 {
		w.messenger.AnnounceInterruptChange()
	}
	if answer.TextAt(0) == "STORE" {
		return checkpoint.Receipt{}, missed.WrapRefusal(w.database.OtherStoreError(w.database.Keys.PartitionOf(c.Thread), answer.TextAt(1)))
	}
	return parseReceipt(c, answer, missed)
}

// parseReceipt reads the answer of apply.lua or delete.lua. missed knows whether an
// earlier attempt had no answer.
func parseReceipt(c *checkpoint.Change, answer script.Reply, missed *script.Unanswered) (r checkpoint.Receipt, err error) {
	switch outcome := answer.TextAt(0); outcome {
	case "OK", "DONE":
	case "CONFLICT":
		if cause := missed.LoadCause(); cause != nil {
			return r, fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, cause)
		}
		return r, checkpoint.ErrConflict
	case "GAP":
		return r, sequenceGapError(c, answer)
	case "LOST":
		return r, missingKeysError(answer.TextAt(1), answer.ListAt(2))
	default:
		return r, layout.CorruptError("unknown answer %q of a script", outcome)
	}
	if r.Revision, err = answer.UintAt(1); err != nil {
		return checkpoint.Receipt{}, err
	}
	if r.LeaseExpires, err = answer.TimeAt(2); err != nil {
		return checkpoint.Receipt{}, err
	}
	list := answer.ListAt(5)
	for i := range list {
		n, _ := list.IntAt(i)
		r.Runs = append(r.Runs, uint64(max(0, n)))
	}
	r.Now, err = answer.TimeAt(3)
	return r, err
}

// missingKeysError reports that keys of a thread were removed.
func missingKeysError(had string, absent script.Reply) error {
	names := make([]string, len(absent))
	for i := range absent {
		names[i] = absent.TextAt(i)
	}
	if had == "0" {
		return layout.CorruptError("key %s is missing, and others of the thread are there", names[0])
	}
	return layout.CorruptError("keys of the thread were taken away: beside its head it had %s, and missing is at least one of %s",
		had, strings.Join(names, ", "))
}

// sequenceGapError says how a change does not continue the thread.
func sequenceGapError(c *checkpoint.Change, answer script.Reply) error {
	event, err := answer.UintAt(1)
	if err != nil {
		return err
	}
	seq, err := answer.UintAt(2)
	if err != nil {
		return err
	}
	if err := c.ValidateSequence(event, seq); err != nil {
		return err
	}
	return layout.CorruptError("a change that follows event %d and checkpoint %d was refused", event, seq)
}
