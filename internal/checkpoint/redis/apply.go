package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Apply makes one change in one exchange with the server. An attempt whose
// answer was lost is repeated under its Op, which the server knows again; when
// another change has followed meanwhile, nobody can tell any more, and the
// error wraps ErrUnavailable, never ErrConflict.
func (s *Store) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if err := c.Check(); err != nil {
		return checkpoint.Receipt{}, err
	}
	done, err := s.enter(ctx)
	if err != nil {
		return checkpoint.Receipt{}, err
	}
	defer done()
	r, err := s.apply(ctx, c)
	return r, about(c.Thread, failed(ctx, err))
}

func (s *Store) apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	var a *call
	var told uint64
	if c.Delete {
		a = s.newCall(s.scripts.remove, c.Thread, true)
		a.num(c.Expect)
		a.text(c.LogID)
		a.text(c.Op)
		a.text(s.origin)
		a.text(c.Thread)
		a.text(s.mark)
	} else {
		old, err := s.outdated(ctx, c)
		if err != nil {
			return checkpoint.Receipt{}, err
		}
		var text string
		text, told = s.ear.untold(c.Thread)
		a = s.encode(c, old, text, isMore(c, old))
	}
	missed := &lost{}
	r := &rider{ctx: ctx, source: a.script.source, missed: missed}
	r.command, r.size = a.finish()
	var answer reply
	call := func() (err error) {
		answer, err = s.convoy(c.Thread).carry(r)
		return err
	}
	var err error
	if c.Op == "" || c.Delete {
		err = call() // nothing would tell a repetition from a second change
	} else {
		err = again(ctx, call)
	}
	if err != nil {
		return checkpoint.Receipt{}, missed.outcome(ctx, err)
	}
	if n, ok := answer.count(4); ok {
		s.ear.told(c.Thread, told, n)
	}
	if len(c.Interrupts) > 0 {
		s.ear.ask()
	}
	if answer.text(0) == "STORE" {
		return checkpoint.Receipt{}, missed.earlier(s.otherStore(s.keys.partition(c.Thread), answer.text(1)))
	}
	return receipt(c, answer, missed)
}

// receipt reads the answer of apply.lua or delete.lua. missed knows whether an
// earlier attempt had no answer.
func receipt(c *checkpoint.Change, answer reply, missed *lost) (r checkpoint.Receipt, err error) {
	switch verdict := answer.text(0); verdict {
	case "OK", "DONE":
	case "CONFLICT":
		if cause := missed.err(); cause != nil {
			return r, fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, cause)
		}
		return r, checkpoint.ErrConflict
	case "GAP":
		return r, gap(c, answer)
	case "LOST":
		return r, missing(answer.text(1), answer.list(2))
	default:
		return r, corrupt("unknown answer %q of a script", verdict)
	}
	if r.Revision, err = answer.unum(1); err != nil {
		return checkpoint.Receipt{}, err
	}
	if r.LeaseExpires, err = answer.instant(2); err != nil {
		return checkpoint.Receipt{}, err
	}
	list := answer.list(5)
	for i := range list {
		n, _ := list.count(i)
		r.Runs = append(r.Runs, uint64(max(0, n)))
	}
	r.Now, err = answer.instant(3)
	return r, err
}

// missing says that somebody took keys away from a thread.
func missing(had string, absent reply) error {
	names := make([]string, len(absent))
	for i := range absent {
		names[i] = absent.text(i)
	}
	if had == "0" {
		return corrupt("key %s is missing, and others of the thread are there", names[0])
	}
	return corrupt("keys of the thread were taken away: beside its head it had %s, and missing is at least one of %s",
		had, strings.Join(names, ", "))
}

// gap says how a change does not follow what the thread has.
func gap(c *checkpoint.Change, answer reply) error {
	event, err := answer.unum(1)
	if err != nil {
		return err
	}
	seq, err := answer.unum(2)
	if err != nil {
		return err
	}
	if err := c.Follows(event, seq); err != nil {
		return err
	}
	return corrupt("a change that follows event %d and checkpoint %d was refused", event, seq)
}
