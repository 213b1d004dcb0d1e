package checkpointtest

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

func listCases() []testCase {
	return []testCase{
		{"an append is read back whole at every checkpoint", listAppend},
		{"a fork shares what came before and goes its own way", listFork},
		{"a fork of a fork", listForkTwice},
		{"a list that is replaced begins a segment", listReplaced},
		{"two lists of one checkpoint are apart", listTwo},
		{"a rollback cuts a list exactly", listDrop},
		{"an unchanged list is not written again", listUnchanged},
		{"elements keep their bytes", listBytes},
	}
}

// listChannel returns a list of two elements that the checkpoint begins.
func listChannel(name string, seq uint64) checkpoint.Channel {
	return checkpoint.Channel{Name: name, Version: seq, Stored: seq, List: &checkpoint.List{
		Items: []payload.JSON{"1", `{"b": 2.0}`}, Segments: []checkpoint.Segment{{ID: seq, Len: 2}}, Appended: 2,
	}}
}

// listDriver writes the states of a list channel the way the runtime does.
type listDriver struct {
	*threadDriver
	states map[uint64]checkpoint.Channel
}

func (e *env) newListDriver() *listDriver {
	return &listDriver{threadDriver: e.newThread("t"), states: map[uint64]checkpoint.Channel{}}
}

// appendItems commits a checkpoint that appends n elements to the state at from; a
// from of 0 begins anew. fork says that the last segment belongs to another
// line of history.
func (l *listDriver) appendItems(from uint64, n int, fork bool) uint64 {
	l.Helper()
	seq := l.head.Seq + 1
	next := &checkpoint.List{Appended: n}
	if old := l.states[from].List; old != nil {
		next.Items = append(next.Items, old.Items...)
		next.Segments = append(next.Segments, old.Segments...)
	}
	for i := range n {
		next.Items = append(next.Items, payload.JSON(fmt.Sprintf(`"%d.%d"`, seq, i)))
	}
	if last := len(next.Segments) - 1; last >= 0 && !fork {
		next.Segments[last].Len += n
	} else {
		next.Segments = append(next.Segments, checkpoint.Segment{ID: seq, Len: n})
	}
	l.states[seq] = checkpoint.Channel{Name: "items", Version: seq, Stored: seq, List: next}
	l.applyEdits(addCheckpoint("", l.states[seq]))
	return seq
}

// requireStates checks every state that was written, read alone and together.
func (l *listDriver) requireStates() {
	l.Helper()
	for seq, want := range l.states {
		cp, err := l.store.Checkpoint(l.ctx, l.id, "", checkpointID(seq))
		require.NoError(l, err)
		require.Equal(l, want, cp.Channels[0], "at %d", seq)
	}
	all, err := l.store.Checkpoints(l.ctx, checkpoint.CheckpointQuery{Thread: l.id})
	require.NoError(l, err)
	require.Len(l, all, len(l.states))
	for _, cp := range all {
		require.Equal(l, l.states[cp.Seq], cp.Channels[0], "at %d", cp.Seq)
	}
}

func listAppend(e *env) {
	l := e.newListDriver()
	at := l.appendItems(0, 2, false)
	at = l.appendItems(at, 1, false)
	at = l.appendItems(at, 3, false)
	l.appendItems(at, 1, false)
	l.requireStates()
}

func listFork(e *env) {
	l := e.newListDriver()
	base := l.appendItems(0, 2, false)
	main := l.appendItems(base, 2, false)
	fork := l.appendItems(base, 1, true)
	l.appendItems(main, 2, false)
	l.appendItems(fork, 3, false)
	l.requireStates()
}

func listForkTwice(e *env) {
	l := e.newListDriver()
	a := l.appendItems(0, 3, false)
	b := l.appendItems(a, 2, false)
	c := l.appendItems(a, 2, true)
	d := l.appendItems(c, 1, false)
	f := l.appendItems(c, 1, true)
	l.appendItems(f, 2, false)
	l.appendItems(d, 1, false)
	l.appendItems(b, 1, false)
	l.requireStates()
}

func listReplaced(e *env) {
	l := e.newListDriver()
	a := l.appendItems(0, 3, false)
	l.appendItems(a, 1, false)
	b := l.appendItems(0, 2, false)
	l.appendItems(b, 1, false)
	l.requireStates()
}

func listTwo(e *env) {
	th := e.newThread("t")
	a, b := listChannel("a", 1), listChannel("b", 1)
	b.List.Items = []payload.JSON{"3", "4"}
	th.applyEdits(addCheckpoint("", a, b))
	cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, []checkpoint.Channel{a, b}, cp.Channels)
}

func listDrop(e *env) {
	l := e.newListDriver()
	a := l.appendItems(0, 2, false)
	b := l.appendItems(a, 2, false)
	l.appendItems(b, 5, false)
	fork := l.appendItems(a, 2, true)
	l.appendItems(fork, 1, false)
	l.applyEdits(dropAfter(b))
	for seq := range l.states {
		if seq > b {
			delete(l.states, seq)
		}
	}
	l.requireStates()
	l.appendItems(b, 1, false) // where elements were before
	l.appendItems(a, 2, true)
	l.requireStates()
}

func listUnchanged(e *env) {
	l := e.newListDriver()
	a := l.appendItems(0, 2, false)
	// The channel is carried as it is, with the Fresh of the checkpoint that
	// wrote it; writing its elements again would break the store's keys.
	for range 2 {
		l.applyEdits(addCheckpoint("", l.states[a]))
		l.states[l.head.Seq] = l.states[a]
	}
	l.requireStates()
	l.appendItems(a, 1, false)
	l.requireStates()
}

func listBytes(e *env) {
	th := e.newThread("t")
	items := []payload.JSON{
		"9007199254740993", "1.10", " {\n \"b\" : 1,\"a\":\"\\u00e9\\/\"} ", `""`, "null",
		payload.JSON(`"` + strings.Repeat("x", 1<<20) + `"`),
	}
	ch := checkpoint.Channel{Name: "items", Stored: 1, Version: 1, List: &checkpoint.List{
		Items: items, Segments: []checkpoint.Segment{{ID: 1, Len: len(items)}}, Appended: len(items),
	}}
	th.applyEdits(addCheckpoint("", ch))
	cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, items, cp.Channels[0].List.Items)
}
