package checkpointtest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

func valueCases() []testCase {
	return []testCase{
		{"values keep their bytes in every record", valueBytes},
		{"ids may hold anything", valueIDs},
		{"a channel's value may have any size", valueSizes},
	}
}

// largeChannel returns a channel whose value is too large to stand anywhere but alone.
func largeChannel(name string, seq uint64) checkpoint.Channel {
	return checkpoint.Channel{
		Name: name, Version: seq, Stored: seq,
		Value: payload.JSON(`{"text": "` + strings.Repeat("ü", 300) + `"}`),
	}
}

// oddNames are ids that tempt a store to quote, fold, split or cut them.
func oddNames() []string {
	return []string{
		"a", "A", "a ", " a", "a.b", "a'b", `a"b`, `a\b`, "a%b", "a_b", "a/b", "a{b}", "{a}", "a*?[b]", "a,b|c;d",
		"a\nb", "a\tb", "日本語", "é", "e\u0301", "😀", "\u2028", "--", "a;DROP TABLE threads", "$.a", "a[0]", "null", "0",
		strings.Repeat("x", 128), strings.Repeat("語", 128),
	}
}

func valueBytes(e *env) {
	for i, v := range []payload.JSON{
		"null", "true", "0", "-0", "1E+2", "1.10", "9007199254740993", "123456789012345678901234567890", `""`, "{}", "[]",
		`{"b":1,"a":2,"b":3}`, " {\n \"a\" : [ 1 ] }\n", `"\ud83d\ude00\u00e9\/\u0000"`, `"😀` + "\u2028" + `"`,
		payload.JSON(`"` + strings.Repeat("x", 1<<20) + `"`),
		payload.JSON(strings.Repeat("[", 200) + strings.Repeat("]", 200)),
	} {
		th := e.newThread(strings.Repeat("v", i+1))
		ch := checkpoint.Channel{Name: "v", Version: 1, Stored: 1, Value: v}
		th.applyEdits(addCheckpoint("", ch), addEvents(1), func(c *checkpoint.Change) {
			c.Events[0].Value = v
			in := newInterrupt(th.id, "q", checkpointID(1))
			in.Value, in.Response, in.Default, in.Schema = v, v, v, v
			c.Interrupts = []checkpoint.Interrupt{in}
			c.Runs = []checkpoint.Run{{ID: "r", Thread: th.id, Output: v, Request: checkpoint.RunRequest{Input: v, Context: v}}}
			c.Tasks = []checkpoint.Task{{ID: "t", Checkpoint: checkpointID(1), Writes: []checkpoint.Write{{Channel: "v", Value: v}}}}
			c.Memos = []checkpoint.Memo{{Task: "t", Checkpoint: checkpointID(1), Value: v}}
		})
		cp, err := e.store.Checkpoint(e.ctx, th.id, "", "")
		require.NoError(e, err)
		list, err := e.store.Events(e.ctx, th.id, 0, 0)
		require.NoError(e, err)
		in, err := e.store.Interrupt(e.ctx, th.id, "q")
		require.NoError(e, err)
		run, err := e.store.Run(e.ctx, th.id, "r")
		require.NoError(e, err)
		p, err := e.store.Pending(e.ctx, th.id, checkpointID(1))
		require.NoError(e, err)
		for where, got := range map[string]payload.JSON{
			"channel": cp.Channels[0].Value, "event": list[0].Value, "question": in.Value, "answer": in.Response,
			"default": in.Default, "schema": in.Schema, "output": run.Output, "input": run.Request.Input,
			"context": run.Request.Context, "write": p.Tasks[0].Writes[0].Value, "memo": p.Memos[0].Value,
		} {
			if got != v { // a diff of a large value is of no use
				require.FailNow(e, "other bytes", "%s: got %.80q, want %.80q", where, got, v)
			}
		}
	}
}

func valueIDs(e *env) {
	for _, id := range oddNames() {
		th := e.newThread(id)
		th.head.Graph, th.head.Run = id, id
		th.applyEdits(addCheckpoint(""), addCheckpoint(id), func(c *checkpoint.Change) {
			c.Checkpoints[0].Channels = []checkpoint.Channel{largeChannel(id, 1), listChannel(id+"2", 1)}
			in := newInterrupt(id, id, checkpointID(1))
			in.Node, in.Assignees = id, []string{id}
			c.Interrupts = []checkpoint.Interrupt{in}
			c.Runs = []checkpoint.Run{{ID: id, Thread: id, Order: 1}}
			c.Request = &checkpoint.Request{ID: id, Run: id, Created: testDay(0)}
			c.Tasks = []checkpoint.Task{{ID: id, Checkpoint: checkpointID(1), Node: id}}
			c.Memos = []checkpoint.Memo{{Task: id, Checkpoint: checkpointID(1), Scope: id, Key: id, Value: "1"}}
		})
	}
	for _, id := range oddNames() {
		h, err := e.store.Head(e.ctx, id)
		require.NoError(e, err)
		require.Equal(e, id, h.Graph)
		cp, err := e.store.Checkpoint(e.ctx, id, "", checkpointID(1))
		require.NoError(e, err)
		require.Equal(e, []checkpoint.Channel{largeChannel(id, 1), listChannel(id+"2", 1)}, cp.Channels)
		_, err = e.store.Checkpoint(e.ctx, id, id, "")
		require.NoError(e, err, "namespace %q", id)
		in, err := e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{Thread: id, Node: id, Tags: []string{checkpoint.UserTag(id)}})
		require.NoError(e, err)
		require.Len(e, in, 1, "%q", id)
		run, err := e.store.Run(e.ctx, id, id)
		require.NoError(e, err)
		require.Equal(e, id, run.ID)
		_, err = e.store.Request(e.ctx, id, id)
		require.NoError(e, err)
		p, err := e.store.Pending(e.ctx, id, checkpointID(1))
		require.NoError(e, err)
		require.Equal(e, id, p.Tasks[0].ID)
		require.Equal(e, id, p.Memos[0].Key)
		require.Equal(e, []string{id}, e.listThreads(checkpoint.ThreadQuery{Graph: id}))
	}
}

func valueSizes(e *env) {
	th := e.newThread("t")
	var channels []checkpoint.Channel
	for _, n := range []int{2, 127, 128, 129, 4096, 1 << 20} {
		channels = append(channels, checkpoint.Channel{
			Name: strings.Repeat("c", len(channels)+1), Version: 1, Stored: 1,
			Value: payload.JSON(`"` + strings.Repeat("x", n-2) + `"`),
		})
	}
	th.applyEdits(addCheckpoint("", channels...))
	th.applyEdits(addCheckpoint("", channels...))
	cp, err := e.store.Checkpoint(e.ctx, "t", "", "")
	require.NoError(e, err)
	require.Equal(e, channels, cp.Channels)
}
