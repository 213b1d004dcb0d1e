package views_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/views"
)

// chain is the changes of a thread, each from the head that the one before it left.
type chain struct {
	cache *views.Cache
	head  checkpoint.Head
}

func newChain(cache *views.Cache, thread string) *chain {
	return &chain{cache, checkpoint.Head{Thread: thread, LogID: "log", State: checkpoint.ThreadInterrupted}}
}

// change makes a change, and tells the cache of it.
func (c *chain) change(edit func(t *commit.Tx)) {
	t := commit.NewTx(&c.head, time.Unix(1, 0))
	edit(t)
	c.head = t.Head
	c.head.Revision++
	c.cache.NoteChange(t, &c.head)
}

func nothing(*commit.Tx) {}

// askAt makes the first checkpoint of a thread, at which a task asks.
func askAt(id string) func(t *commit.Tx) {
	return func(t *commit.Tx) {
		t.Head.Checkpoint, t.Head.Run = id, "run"
		t.Checkpoints = []*checkpoint.Checkpoint{{Namespace: "sub", ID: "other"}, {ID: id}}
		t.Runs = []checkpoint.Run{{ID: "run"}}
		t.Tasks = []checkpoint.Task{{ID: "b", Checkpoint: id}, {ID: "a", Checkpoint: id}, {ID: "z", Checkpoint: "other"}}
		t.Interrupts = []checkpoint.Interrupt{{ID: "q", Checkpoint: id}}
		t.RecordRequest("request", "digest", "run")
	}
}

func TestAViewHasWhatItsChangesMade(t *testing.T) {
	c := newChain(views.NewCache(1<<20), "t")
	c.change(askAt("1"))
	v := c.cache.FindView("t", "request")
	require.Equal(t, c.head, v.Head)
	require.Equal(t, "run", v.Run.ID)
	require.Equal(t, "1", v.Checkpoint.ID)
	require.Equal(t, []checkpoint.Task{{ID: "a", Checkpoint: "1"}, {ID: "b", Checkpoint: "1"}}, v.Pending.Tasks)
	require.Equal(t, []checkpoint.Interrupt{{ID: "q", Checkpoint: "1", Revision: 1}}, v.Pending.Interrupts)
	require.Equal(t, "digest", v.Requests["request"].Digest)
	require.Equal(t, map[string]*checkpoint.Request{"new": nil}, c.cache.FindView("t", "new").Requests, "none of that name was made")
	require.Nil(t, c.cache.FindView("t", "").Requests)

	c.change(func(t *commit.Tx) {
		t.Interrupts = []checkpoint.Interrupt{{ID: "q", Checkpoint: "1", State: checkpoint.InterruptConsumed}, {ID: "r", Checkpoint: "2"}}
		t.Head.Checkpoint = "2"
		t.Checkpoints = []*checkpoint.Checkpoint{{ID: "2"}}
		t.ClearTasks = []string{"1"}
	})
	next := c.cache.FindView("t", "request")
	require.Equal(t, "2", next.Checkpoint.ID)
	require.Empty(t, next.Pending.Tasks)
	require.Equal(t, []checkpoint.Interrupt{{ID: "r", Checkpoint: "2", Revision: 1}}, next.Pending.Interrupts)
	require.Len(t, *next.Interrupts, 2)
	require.EqualValues(t, 2, (*next.Interrupts)[0].Revision)
	require.NotNil(t, next.Requests["request"])
	require.Equal(t, "1", v.Checkpoint.ID, "views do not change")
	require.Len(t, *v.Interrupts, 1)
}

func TestQuestionsStayWhereTheTasksOfACheckpointAreCleared(t *testing.T) {
	c := newChain(views.NewCache(1<<20), "t")
	c.change(askAt("1"))
	c.change(func(t *commit.Tx) {
		t.ClearTasks = []string{"1"}
		t.Interrupts = []checkpoint.Interrupt{{ID: "another", Checkpoint: "1"}}
	})
	v := c.cache.FindView("t", "")
	require.Empty(t, v.Pending.Tasks)
	require.Equal(t, []checkpoint.Interrupt{{ID: "q", Checkpoint: "1", Revision: 1}, {ID: "another", Checkpoint: "1", Revision: 1}},
		v.Pending.Interrupts, "as a store has them")
}

func TestOnlyThreadsOfWhichAllIsKnownHaveAView(t *testing.T) {
	for name, edit := range map[string]func(t *commit.Tx){
		"it is deleted":               func(t *commit.Tx) { t.Delete = true },
		"its run is rolled back":      func(t *commit.Tx) { t.DropAfter = new(uint64) },
		"it is a copy":                func(t *commit.Tx) { t.IsCopy = true },
		"its checkpoint is not in it": func(t *commit.Tx) { t.Head.Checkpoint = "elsewhere" },
		"its run is not in it":        func(t *commit.Tx) { t.Head.Run = "elsewhere" },
		"a task is changed":           func(t *commit.Tx) { t.Tasks = []checkpoint.Task{{ID: "a", Checkpoint: "1"}} },
		"a question has secret parts": func(t *commit.Tx) {
			var parts redact.Builder
			parts.Add("/pin", "1234")
			t.Interrupts = []checkpoint.Interrupt{{ID: "p", Hidden: checkpoint.Hidden{Value: parts.Parts()}}}
		},
		"it is large": func(t *commit.Tx) {
			t.Interrupts = []checkpoint.Interrupt{{ID: "p", Value: payload.JSON(strings.Repeat("x", 64<<10))}}
		},
		"it has many questions":         func(t *commit.Tx) { t.Interrupts = questions(100) },
		"another server has changed it": func(t *commit.Tx) { t.Expect++ },
		"another thread has its name":   func(t *commit.Tx) { t.LogID = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(views.NewCache(16<<20), "t")
			c.change(askAt("1"))
			require.NotNil(t, c.cache.FindView("t", ""))
			c.change(edit)
			require.Nil(t, c.cache.FindView("t", ""))
			c.change(nothing)
			require.Nil(t, c.cache.FindView("t", ""), "what is not known stays so")
		})
	}
}

func TestAViewGoesOnWhileARunWorks(t *testing.T) {
	for name, work := range map[string]func(t *commit.Tx){
		"a server holds it": func(t *commit.Tx) { t.Head.Owner = "server" },
		"a run is active":   func(t *commit.Tx) { t.Head.State = checkpoint.ThreadBusy },
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(views.NewCache(16<<20), "t")
			c.change(askAt("1"))
			c.change(work)
			require.Nil(t, c.cache.FindView("t", ""), "no call goes on with it")
			c.change(func(t *commit.Tx) {
				t.Head.Owner, t.Head.State, t.Head.Checkpoint = "", checkpoint.ThreadInterrupted, "2"
				t.Checkpoints, t.ClearTasks = []*checkpoint.Checkpoint{{ID: "2"}}, []string{"1"}
			})
			v := c.cache.FindView("t", "request")
			require.Equal(t, c.head, v.Head)
			require.Equal(t, "2", v.Checkpoint.ID)
			require.Empty(t, v.Pending.Tasks)
		})
	}
}

func questions(n int) []checkpoint.Interrupt {
	list := make([]checkpoint.Interrupt, n)
	for i := range list {
		list[i].ID = fmt.Sprint(i)
	}
	return list
}

func TestTheViewsThatWereUsedLastHaveRoom(t *testing.T) {
	cache := views.NewCache(1 << 20)
	for n := range 1000 {
		newChain(cache, fmt.Sprint(n)).change(func(t *commit.Tx) {
			t.Interrupts = []checkpoint.Interrupt{{ID: "q", Value: payload.JSON(strings.Repeat("x", 10<<10))}}
		})
		require.NotNil(t, cache.FindView("0", ""), "it is used all the time")
	}
	kept := 0
	for n := range 1000 {
		if cache.FindView(fmt.Sprint(n), "") != nil {
			kept++
		}
	}
	require.Greater(t, kept, 50)
	require.Less(t, kept, 1<<20/(10<<10))
	require.NotNil(t, cache.FindView("999", ""))
	cache.DropView("999")
	cache.DropView("999")
	require.Nil(t, cache.FindView("999", ""))
}

// TestAThreadCountsOnce: a thread that changes often takes no room from others.
func TestAThreadCountsOnce(t *testing.T) {
	cache := views.NewCache(1 << 20)
	newChain(cache, "other").change(askAt("1"))
	busy := newChain(cache, "busy")
	busy.change(askAt("1"))
	for n := range 10_000 {
		busy.change(func(t *commit.Tx) { t.Head.Owner = []string{"", "server"}[n%2] })
	}
	require.NotNil(t, cache.FindView("other", ""))
}

// TestAViewThatWasGivenAwayStays, whatever the thread does next.
func TestAViewThatWasGivenAwayStays(t *testing.T) {
	c := newChain(views.NewCache(1<<20), "t")
	c.change(askAt("1"))
	given := c.cache.FindView("t", "")
	head := given.Head
	for n := range 3 {
		c.change(func(t *commit.Tx) {
			t.Head.Owner, t.Head.Checkpoint = "server", fmt.Sprint(n+2)
			t.Checkpoints = []*checkpoint.Checkpoint{{ID: t.Head.Checkpoint}}
			t.ClearTasks = []string{fmt.Sprint(n + 1)}
		})
	}
	require.Equal(t, head, given.Head)
	require.Equal(t, "1", given.Checkpoint.ID)
	require.Len(t, given.Pending.Tasks, 2)
}

func TestACacheWithoutRoomHasNoViews(t *testing.T) {
	c := newChain(views.NewCache(0), "t")
	c.change(askAt("1"))
	require.Nil(t, c.cache.FindView("t", ""))
}
