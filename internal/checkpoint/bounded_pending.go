package checkpoint

// BoundedPending collects the progress after a checkpoint. Once that has more than Most
// bytes it holds nothing of it, and counts the rest.
type BoundedPending struct {
	Most    int // 0 = any number
	pending Pending
	bytes   int
}

// AddTask adds the record of a task.
func (b *BoundedPending) AddTask(t *Task) {
	if b.countRecord(t.Size()) {
		b.pending.Tasks = append(b.pending.Tasks, *t)
	}
}

// AddMemo adds a memo.
func (b *BoundedPending) AddMemo(m *Memo) {
	if b.countRecord(m.Size()) {
		b.pending.Memos = append(b.pending.Memos, *m)
	}
}

// AddInterrupt adds an interrupt.
func (b *BoundedPending) AddInterrupt(i *Interrupt) {
	if b.countRecord(i.Size()) {
		b.pending.Interrupts = append(b.pending.Interrupts, *i)
	}
}

// countRecord counts a record, and reports whether it is kept.
func (b *BoundedPending) countRecord(size int) bool {
	b.bytes += size
	if b.isLarge() {
		b.pending = Pending{}
		return false
	}
	return true
}

func (b *BoundedPending) isLarge() bool { return b.Most > 0 && b.bytes > b.Most }

// BuildPending returns the progress. The error is a *LargeError when it has more than Most
// bytes.
func (b *BoundedPending) BuildPending() (Pending, error) {
	if b.isLarge() {
		return Pending{}, &LargeError{Bytes: b.bytes}
	}
	return b.pending, nil
}
