package checkpoint

import "github.com/graphd-dev/graphd/internal/approval"

// ReadBytes bounds the bytes of a list that is read with a limit. A list of small
// records has as many as the limit says; a list of large records ends early, with
// the record at which their sizes come to ReadBytes. So a call for some records
// does not fill the memory.
const ReadBytes = 4 << 20

// Portion counts the records of a list that is read with a limit, by which
// stores end it and callers know whether it goes on.
type Portion struct {
	Limit int // 0 = all, however large they are
	count int
	bytes int
}

// Take counts in a record of a size.
func (p *Portion) Take(size int) {
	p.count++
	p.bytes += size
}

// Full reports whether the list ends here, so that there may be more of it.
func (p *Portion) Full() bool {
	return p.Limit > 0 && (p.count >= p.Limit || p.bytes >= ReadBytes)
}

// IsPart reports whether a list that was read with a limit may go on after its
// last record.
func IsPart[T any](list []T, limit int, size func(*T) int) bool {
	p := Portion{Limit: limit}
	for i := range list {
		p.Take(size(&list[i]))
	}
	return p.Full()
}

// Bytes of records besides their texts, about.
const (
	headerBytes  = 16 // of a text
	recordBytes  = 256
	channelBytes = 96
)

// Size estimates how many bytes a checkpoint holds, including those it shares with
// others.
func (c *Checkpoint) Size() int {
	n := recordBytes + sizeOfLabels(c.Metadata) + sizeOfLabels(c.Parents)
	for i := range c.Channels {
		ch := &c.Channels[i]
		n += channelBytes + len(ch.Name) + len(ch.Value)
		if ch.List != nil {
			n += headerBytes * len(ch.List.Segments)
			for _, item := range ch.List.Items {
				n += headerBytes + len(item)
			}
		}
	}
	for i := range c.Seen {
		n += headerBytes + len(c.Seen[i].Node) + 2*headerBytes*len(c.Seen[i].Versions)
	}
	return n + headerBytes*len(c.Updated) + sizeOfNext(c.Next)
}

// Size estimates how many bytes the progress after a checkpoint holds.
func (p *Pending) Size() (n int) {
	for i := range p.Tasks {
		n += p.Tasks[i].Size()
	}
	for i := range p.Memos {
		n += p.Memos[i].Size()
	}
	for i := range p.Interrupts {
		n += p.Interrupts[i].Size()
	}
	return n
}

// Size estimates how many bytes a task holds.
func (t *Task) Size() int {
	n := recordBytes + len(t.Update) + sizeOfFailure(t.Failure)
	for i := range t.Writes {
		n += headerBytes + len(t.Writes[i].Value)
	}
	for i := range t.Goto {
		n += 2*headerBytes + len(t.Goto[i].Node) + len(t.Goto[i].Input)
	}
	return n
}

// Size estimates how many bytes a memo holds.
func (m *Memo) Size() int { return recordBytes + len(m.Key) + len(m.Value) }

// Size estimates how many bytes an event holds.
func (e *Event) Size() int {
	n := recordBytes + len(e.Value) + len(e.Namespace) + len(e.Actor) + sizeOfNext(e.Next) + sizeOfFailure(e.Failure) + headerBytes*len(e.Triggers)
	for i := range e.Interrupts {
		n += e.Interrupts[i].Size()
	}
	return n
}

// Size estimates how many bytes an interrupt holds.
func (i *Interrupt) Size() int {
	n := 2*recordBytes + len(i.Namespace) + len(i.Message) + len(i.Value) + len(i.Schema) + len(i.Default) + len(i.Response) + len(i.Note) +
		len(i.Responder) + len(i.ResponderHow) + len(i.ResponseMethod) + i.Policy.Size() + approval.SizeOfVotes(i.Votes) + i.Trail.Size() +
		i.Hidden.Value.Size() + i.Hidden.Default.Size() + i.Hidden.Response.Size()
	changes := i.PropertyChanges()
	for _, d := range changes.Delegations {
		n += 2*headerBytes + len(d.From) + len(d.To)
	}
	for j := range i.Steps {
		n += i.Steps[j].Size()
	}
	for _, list := range [][]string{i.Assignees, i.DriftIgnore, i.Differs, i.Accepted, changes.AddedUsers, changes.AddedGroups, changes.Former, i.Secret} {
		for _, text := range list {
			n += headerBytes + len(text)
		}
	}
	return n
}

// Size estimates how many bytes a head holds.
func (h *Head) Size() int {
	n := 2*recordBytes + sizeOfLabels(h.Metadata)
	for _, list := range [][]string{h.Queue, h.RemoteTasks, h.Editors} {
		for _, text := range list {
			n += headerBytes + len(text)
		}
	}
	for i := range h.Later {
		n += recordBytes + len(h.Later[i].Run)
	}
	return n
}

// Size estimates how many bytes a run holds.
func (r *Run) Size() int {
	q := &r.Request
	n := 2*recordBytes + len(r.StartedBy) + sizeOfLabels(r.Metadata) + sizeOfFailure(r.Failure) +
		len(r.Output) + len(q.Input) + len(q.Update) + len(q.Context)
	for i := range q.Goto {
		n += 2*headerBytes + len(q.Goto[i].Node) + len(q.Goto[i].Input)
	}
	return n + headerBytes*(len(q.InterruptBefore)+len(q.InterruptAfter))
}

func sizeOfLabels(labels map[string]string) int {
	n := 0
	for key, value := range labels {
		n += 2*headerBytes + len(key) + len(value)
	}
	return n
}

func sizeOfNext(next []NextTask) int {
	n := 0
	for i := range next {
		n += 2*headerBytes + len(next[i].ID) + len(next[i].Node)
	}
	return n
}

func sizeOfFailure(f *Failure) int {
	if f == nil {
		return 0
	}
	return recordBytes + len(f.Message) + len(f.Stack) + sizeOfLabels(f.Details)
}
