package checkpoint

import (
	"fmt"
	"strings"
)

// Validate refuses a Change that contradicts itself, on any thread. The error
// wraps ErrInvalid and names the field, its value and the right value.
func (c *Change) Validate() error {
	if c.Thread == "" {
		return invalidField("Thread", "is empty", "must name a thread")
	}
	if c.Delete {
		if c.Expect == 0 {
			return invalidField("Expect", "is 0", "a deleted thread must have existed")
		}
		return nil
	}
	if c.Head.Thread != c.Thread {
		return invalidField("Head.Thread", fmt.Sprintf("is %q", c.Head.Thread), fmt.Sprintf("must be %q", c.Thread))
	}
	if err := c.validateEvents(); err != nil {
		return err
	}
	if err := c.validateRecords(); err != nil {
		return err
	}
	return c.validateCheckpoints()
}

func (c *Change) validateEvents() error {
	n := uint64(len(c.Events))
	if n > c.Head.LastEvent {
		return invalidField("Head.LastEvent", fmt.Sprintf("is %d", c.Head.LastEvent),
			fmt.Sprintf("must count the %d events of the change", n))
	}
	for i := range c.Events {
		want := c.Head.LastEvent - n + uint64(i) + 1
		if e := &c.Events[i]; e.Seq != want {
			return invalidField(fmt.Sprintf("Events[%d].Seq", i), fmt.Sprintf("is %d", e.Seq),
				fmt.Sprintf("must be %d, so that the last one is Head.LastEvent", want))
		}
		if c.Events[i].Ephemeral {
			return invalidField(fmt.Sprintf("Events[%d]", i), "is ephemeral", "only durable events are stored")
		}
	}
	return nil
}

func (c *Change) validateCheckpoints() error {
	if c.DropBefore > 0 && (len(c.Checkpoints) > 0 || c.DropAfter != nil) {
		return invalidField("DropBefore", fmt.Sprintf("is %d", c.DropBefore),
			"must stand alone: the change adds checkpoints or takes back newer ones")
	}
	for i, cp := range c.Checkpoints {
		if cp.ID == "" {
			return invalidField(fmt.Sprintf("Checkpoints[%d].ID", i), "is empty", "must be unique in the thread")
		}
		if cp.Seq > c.Head.Seq {
			return invalidField(fmt.Sprintf("Checkpoints[%d].Seq", i), fmt.Sprintf("is %d", cp.Seq),
				fmt.Sprintf("must be at most Head.Seq, %d", c.Head.Seq))
		}
		if i == 0 {
			continue
		}
		if prev := c.Checkpoints[i-1]; cp.Seq <= prev.Seq || cp.ID <= prev.ID {
			return invalidField(fmt.Sprintf("Checkpoints[%d]", i), fmt.Sprintf("is %q (%d)", cp.ID, cp.Seq),
				fmt.Sprintf("must sort after %q (%d)", prev.ID, prev.Seq))
		}
	}
	return nil
}

func (c *Change) validateRecords() error {
	for i := range c.Interrupts {
		if in := &c.Interrupts[i]; in.ID == "" || in.Thread != c.Thread {
			return invalidField(fmt.Sprintf("Interrupts[%d]", i), fmt.Sprintf("is %q of thread %q", in.ID, in.Thread),
				fmt.Sprintf("must have an ID and belong to %q", c.Thread))
		}
	}
	for i := range c.Runs {
		if r := &c.Runs[i]; r.ID == "" || r.Thread != c.Thread {
			return invalidField(fmt.Sprintf("Runs[%d]", i), fmt.Sprintf("is %q of thread %q", r.ID, r.Thread),
				fmt.Sprintf("must have an ID and belong to %q", c.Thread))
		}
	}
	return nil
}

// ValidateSequence refuses a Change whose numbers do not continue those of the
// thread: event is the number of its last event, seq that of its last
// checkpoint, both 0 for a new thread. The error wraps ErrInvalid. Validate
// must have passed.
func (c *Change) ValidateSequence(event, seq uint64) error {
	if first := c.Head.LastEvent - uint64(len(c.Events)); first != event {
		return invalidField("Head.LastEvent", fmt.Sprintf("is %d with %d new events", c.Head.LastEvent, len(c.Events)),
			fmt.Sprintf("must be %d", event+uint64(len(c.Events))))
	}
	if c.DropAfter != nil {
		seq = min(seq, *c.DropAfter)
	}
	if len(c.Checkpoints) > 0 && c.Checkpoints[0].Seq <= seq {
		return invalidField("Checkpoints[0].Seq", fmt.Sprintf("is %d", c.Checkpoints[0].Seq),
			fmt.Sprintf("must be greater than %d", seq))
	}
	return nil
}

func invalidField(field, is, want string) error {
	return fmt.Errorf("%w: %s %s, %s", ErrInvalid, field, is, want)
}

// NodePath strips the task ids off a namespace: "a:1|b:2" becomes "a|b".
// CheckpointQuery.AnyTask compares by it.
func NodePath(namespace string) string {
	if !strings.Contains(namespace, ":") {
		return namespace
	}
	parts := strings.Split(namespace, "|")
	for i, p := range parts {
		parts[i], _, _ = strings.Cut(p, ":")
	}
	return strings.Join(parts, "|")
}
