package checkpointtest

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

func boundCases() []testCase {
	return []testCase{
		{"large checkpoints are told", boundedReads},
		{"large progress is told", boundedProgress},
		{"large checkpoints end a page early", boundCheckpoints},
		{"large lists end a page early", boundLists},
		{"checkpoints with much beside their values end a page early", boundManifests},
		{"large events end a page early", boundEvents},
		{"large runs end a page early", boundRuns},
		{"large questions end a page early", boundQuestions},
		{"threads with much metadata end a page early", boundThreads},
	}
}

// makeLargeValue returns a value of some bytes that does not compress to a few: a store must
// count the bytes in memory, not the bytes written.
func makeLargeValue(n int) payload.JSON {
	return payload.JSON(`"` + strings.Repeat("0123456789abcdef", n/16) + `"`)
}

// requirePages reads a list page by page and requires that each ends where it must: at
// the limit, or at the record with which there are ReadBytes. It returns how
// many records the pages had.
func requirePages[T any](e *env, all []T, limit int, size func(*T) int, read func(done int) []T) (counts []int) {
	e.Helper()
	for done := 0; ; {
		end, portion := done, checkpoint.Portion{Limit: limit}
		for end < len(all) && !portion.Full() {
			portion.Take(size(&all[end]))
			end++
		}
		page := read(done)
		require.Len(e, page, end-done, "from record %d on, with a limit of %d", done, limit)
		require.Equal(e, all[done:end], append([]T{}, page...))
		require.Equal(e, portion.Full(), checkpoint.IsPart(page, limit, size))
		if !portion.Full() {
			return counts
		}
		counts = append(counts, len(page))
		done = end
	}
}

// boundedReads reads checkpoints with a bound below, at and above their size.
func boundedReads(e *env) {
	reader, ok := e.store.(checkpoint.BoundedReader)
	if !ok {
		return
	}
	th := e.newThread("t")
	value := func(n int) checkpoint.Channel {
		seq := th.head.Seq + 1
		return checkpoint.Channel{Name: "a", Version: seq, Stored: seq, Value: makeLargeValue(n)}
	}
	list := func(items, n int) checkpoint.Channel {
		seq := th.head.Seq + 1
		l := &checkpoint.List{Segments: []checkpoint.Segment{{ID: seq, Len: items}}, Appended: items}
		for range items {
			l.Items = append(l.Items, makeLargeValue(n))
		}
		return checkpoint.Channel{Name: "l", List: l}
	}
	for _, channels := range [][]checkpoint.Channel{
		{value(16)}, {value(1 << 20)}, {list(1, 1<<20)}, {list(2000, 112)}, {list(3, 16)}, {value(192 << 10), list(10, 10<<10)},
	} {
		for i := range channels {
			seq := th.head.Seq + 1
			channels[i].Version, channels[i].Stored = seq, seq
			if l := channels[i].List; l != nil {
				l.Segments[0].ID = seq
			}
		}
		th.applyEdits(addCheckpoint("", channels...))
		cp, err := th.store.Checkpoint(e.ctx, th.id, "", "")
		require.NoError(e, err)
		size := cp.Size()
		for _, id := range []string{cp.ID, ""} {
			for _, most := range []int{1, size / 2, size - 1} {
				_, err := reader.CheckpointWithin(e.ctx, th.id, "", id, most)
				var told *checkpoint.LargeError
				require.ErrorAs(e, err, &told)
				require.Equal(e, cp.Seq, told.Seq)
				if told.Bytes > 0 {
					require.InDelta(e, size, told.Bytes, 1<<10)
				}
			}
			got, err := reader.CheckpointWithin(e.ctx, th.id, "", id, size+1<<10)
			require.NoError(e, err)
			require.Equal(e, cp, got)
		}
	}
	_, err := reader.CheckpointWithin(e.ctx, th.id, "", "none", 1)
	require.ErrorIs(e, err, checkpoint.ErrCheckpointNotFound)
}

// boundedProgress reads progress with a bound below, at and above its size.
func boundedProgress(e *env) {
	reader, ok := e.store.(checkpoint.BoundedReader)
	if !ok {
		return
	}
	th := e.newThread("t")
	th.applyEdits(addCheckpoint(""))
	cp, err := th.store.Checkpoint(e.ctx, th.id, "", "")
	require.NoError(e, err)
	none, err := reader.PendingWithin(e.ctx, th.id, cp.ID, 1)
	require.NoError(e, err)
	require.Empty(e, none)
	for _, edit := range []func(c *checkpoint.Change){
		func(c *checkpoint.Change) {
			c.Tasks = []checkpoint.Task{{ID: "t1", Checkpoint: cp.ID, Node: "n", State: checkpoint.TaskDone, Update: makeLargeValue(1 << 20)}}
		},
		func(c *checkpoint.Change) {
			for i := range 40 {
				c.Memos = append(c.Memos, checkpoint.Memo{Checkpoint: cp.ID, Task: "t1", Key: "k", Index: i, Value: makeLargeValue(10 << 10)})
			}
		},
		func(c *checkpoint.Change) {
			c.Interrupts = []checkpoint.Interrupt{{
				ID: "q", Thread: th.id, Checkpoint: cp.ID, State: checkpoint.InterruptOpen, Created: testDay(1), Updated: testDay(1), Value: makeLargeValue(1 << 20),
			}}
		},
	} {
		th.applyEdits(edit)
		p, err := th.store.Pending(e.ctx, th.id, cp.ID)
		require.NoError(e, err)
		size := p.Size()
		for _, most := range []int{1, size / 2, size - 1} {
			_, err := reader.PendingWithin(e.ctx, th.id, cp.ID, most)
			var told *checkpoint.LargeError
			require.ErrorAs(e, err, &told)
			require.Greater(e, told.Bytes, most)
			require.LessOrEqual(e, told.Bytes, size)
		}
		got, err := reader.PendingWithin(e.ctx, th.id, cp.ID, size)
		require.NoError(e, err)
		require.Equal(e, p, got)
	}
}

func boundCheckpoints(e *env) {
	th := e.newThread("t")
	for n := range 9 {
		seq := th.head.Seq + 1
		th.applyEdits(addCheckpoint("",
			checkpoint.Channel{Name: "a", Version: seq, Stored: seq, Value: makeLargeValue(n * 256 << 10)},
			checkpoint.Channel{Name: "b", Version: seq, Stored: seq, Value: makeLargeValue(1 << 20)},
			checkpoint.Channel{Name: "small", Version: seq, Stored: seq, Value: "1"},
		))
	}
	th.requirePages(1, 2, 3, 100)
}

// requirePages reads the history of the root in pages of some limits.
func (t *threadDriver) requirePages(limits ...int) {
	t.Helper()
	all, err := t.store.Checkpoints(t.ctx, checkpoint.CheckpointQuery{Thread: t.id})
	require.NoError(t, err)
	require.Len(t, all, int(t.head.Seq))
	for _, limit := range limits {
		for _, q := range []checkpoint.CheckpointQuery{{}, {AllNamespaces: true}, {AnyTask: true}} {
			q.Thread, q.Limit = t.id, limit
			requirePages(t.env, all, limit, func(cp **checkpoint.Checkpoint) int { return (*cp).Size() }, func(done int) []*checkpoint.Checkpoint {
				q.Before = 0
				if done > 0 {
					q.Before = all[done-1].Seq
				}
				page, err := t.store.Checkpoints(t.ctx, q)
				require.NoError(t, err)
				return page
			})
		}
	}
}

func boundLists(e *env) {
	l := e.newListDriver()
	items := make([]payload.JSON, 3000)
	for i := range items {
		items[i] = payload.JSON(fmt.Sprintf(`"%d%s"`, i, strings.Repeat("x", 700)))
	}
	l.applyEdits(addCheckpoint("", checkpoint.Channel{Name: "items", Version: 1, Stored: 1, List: &checkpoint.List{
		Items: items, Segments: []checkpoint.Segment{{ID: 1, Len: len(items)}}, Appended: len(items),
	}}))
	at := uint64(1)
	l.states[1] = checkpoint.Channel{Name: "items", List: &checkpoint.List{Items: items, Segments: []checkpoint.Segment{{ID: 1, Len: len(items)}}}}
	for range 5 {
		at = l.appendItems(at, 1, false)
	}
	fork := l.appendItems(1, 2, true)
	l.appendItems(fork, 1, false)
	l.requirePages(3, 100)
}

func boundManifests(e *env) {
	th := e.newThread("t")
	next := make([]checkpoint.NextTask, 4096)
	for i := range next {
		next[i] = checkpoint.NextTask{ID: fmt.Sprintf("%0200d", i), Node: strings.Repeat("n", 100)}
	}
	for range 11 {
		th.applyEdits(addCheckpoint(""), func(c *checkpoint.Change) { c.Checkpoints[0].Next = next })
	}
	th.requirePages(2, 100)
}

func boundEvents(e *env) {
	th := e.newThread("t")
	for n := range 8 {
		th.applyEdits(addEvents(1), func(c *checkpoint.Change) { c.Events[0].Value = makeLargeValue(n * 300 << 10) })
		th.applyEdits(addEvents(3), func(c *checkpoint.Change) { c.Events[1].Value = makeLargeValue(500 << 10) })
		th.applyEdits(addEvents(40))
	}
	all, err := e.store.Events(e.ctx, "t", 0, 0)
	require.NoError(e, err)
	require.Len(e, all, int(th.head.LastEvent))
	for _, limit := range []int{1, 7, 1000} {
		requirePages(e, all, limit, (*checkpoint.Event).Size, func(done int) []checkpoint.Event {
			page, err := e.store.Events(e.ctx, "t", uint64(done), limit)
			require.NoError(e, err)
			return page
		})
	}
}

func boundRuns(e *env) {
	th := e.newThread("t")
	for n := range 9 {
		th.applyEdits(func(c *checkpoint.Change) {
			c.Runs = []checkpoint.Run{{
				ID: fmt.Sprint("r", n), Thread: "t", State: checkpoint.RunSucceeded, Order: uint64(n + 1),
				Created: testDay(n), Updated: testDay(n), Request: checkpoint.RunRequest{Input: makeLargeValue(n * 300 << 10)},
			}}
		})
	}
	all, err := e.store.Runs(e.ctx, "t", 0, 0)
	require.NoError(e, err)
	require.Len(e, all, 9)
	for _, limit := range []int{1, 4, 100} {
		requirePages(e, all, limit, (*checkpoint.Run).Size, func(done int) []checkpoint.Run {
			before := uint64(0)
			if done > 0 {
				before = all[done-1].Order
			}
			page, err := e.store.Runs(e.ctx, "t", before, limit)
			require.NoError(e, err)
			return page
		})
	}
}

func boundQuestions(e *env) {
	for _, id := range []string{"t", "u"} {
		th := e.newThread(id)
		for n := range 7 {
			th.applyEdits(func(c *checkpoint.Change) {
				for k := range 3 {
					c.Interrupts = append(c.Interrupts, checkpoint.Interrupt{
						ID: fmt.Sprintf("q%d-%d", n, k), Thread: id, State: checkpoint.InterruptOpen,
						Created: testDay(10 - n), Updated: testDay(n), Value: makeLargeValue(k * n * 100 << 10),
					})
				}
			})
		}
	}
	for _, q := range []checkpoint.InterruptQuery{
		{}, {Thread: "t"}, {ByChange: true}, {Thread: "u", ByChange: true}, {States: []checkpoint.InterruptState{checkpoint.InterruptOpen}},
	} {
		all, err := e.store.Interrupts(e.ctx, q)
		require.NoError(e, err)
		for _, limit := range []int{1, 5, 100} {
			page := q
			page.Limit = limit
			requirePages(e, all, limit, (*checkpoint.Interrupt).Size, func(done int) []checkpoint.Interrupt {
				if done > 0 {
					last := &all[done-1]
					page.After = checkpoint.InterruptPosition{
						Created: last.Created, Thread: last.Thread, ID: last.ID, Change: last.Change,
					}
				}
				list, err := e.store.Interrupts(e.ctx, page)
				require.NoError(e, err)
				return list
			})
		}
	}
}

func boundThreads(e *env) {
	for n := range 70 {
		e.newThread(fmt.Sprintf("t%02d", n)).applyEdits(func(c *checkpoint.Change) {
			c.Head.Metadata = map[string]string{"k": strings.Repeat("v", 100<<10)}
		})
	}
	all, err := e.store.Threads(e.ctx, checkpoint.ThreadQuery{})
	require.NoError(e, err)
	require.Len(e, all, 70)
	got := 0
	var q checkpoint.ThreadQuery
	for q.Limit = 100; ; {
		page, err := e.store.Threads(e.ctx, q)
		require.NoError(e, err)
		got += len(page)
		if !checkpoint.IsPart(page, q.Limit, (*checkpoint.Head).Size) {
			break
		}
		require.Less(e, len(page), 70)
		last := &page[len(page)-1]
		q.Before = q.PositionOf(last)
	}
	require.Equal(e, 70, got)
}
