package checkpointtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// ChangeWithText is the first change of a thread, which says a text in every field
// that is the user's: as it is, and a hundred times in a large value. The text
// must need no escapes in JSON.
func ChangeWithText(thread, text string) *checkpoint.Change {
	value := payload.JSON(`"` + text + `"`)
	long := payload.JSON(`"` + strings.Repeat(text, 100) + `"`)
	labels := map[string]string{"label": text}
	failure := &checkpoint.Failure{Reason: "NODE_FAILED", Message: text, Type: text, Stack: text, Details: labels}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	questions := []checkpoint.Interrupt{{
		ID: "q", Thread: thread, Checkpoint: "c", Graph: "g", Node: "n", State: checkpoint.InterruptAnswered,
		Message: text, Value: value, Schema: value, Default: value, Assignees: []string{text},
		Response: value, Note: text, Responder: text, ResponderHow: text, ResponseMethod: text,
	}}
	return &checkpoint.Change{
		Thread: thread, Op: "1",
		Head: checkpoint.Head{
			Thread: thread, LogID: "log", Graph: "g", State: checkpoint.ThreadIdle, Created: at, Updated: at, Metadata: labels,
			Checkpoint: "c", Seq: 1, FirstEvent: 1, LastEvent: 2, Cancel: &checkpoint.Cancel{Run: "r", Reason: text, By: text},
		},
		Checkpoints: []*checkpoint.Checkpoint{{
			ID: "c", Seq: 1, Graph: "g", Time: at, Metadata: labels, Channels: []checkpoint.Channel{
				{Name: "long", Version: 1, Stored: 1, Value: long},
				{Name: "short", Version: 1, Stored: 1, Value: value},
				{Name: "list", Version: 1, Stored: 1, List: &checkpoint.List{
					Items: []payload.JSON{value, long}, Segments: []checkpoint.Segment{{ID: 1, Len: 2}}, Appended: 2,
				}},
			},
		}},
		Tasks: []checkpoint.Task{{
			ID: "task", Checkpoint: "c", State: checkpoint.TaskDone, Failure: failure,
			Writes: []checkpoint.Write{{Channel: "long", Value: long}},
			Update: value, Goto: []checkpoint.Send{{Node: "n", Input: value}},
		}},
		Memos:      []checkpoint.Memo{{Checkpoint: "c", Task: "task", Scope: "s", Key: "k", Value: value}},
		Interrupts: questions,
		Runs: []checkpoint.Run{{
			ID: "r", Thread: thread, Failure: failure, Metadata: labels, StartedBy: text, Output: value,
			Request: checkpoint.RunRequest{
				Input: value, Update: value, Context: value, Goto: []checkpoint.Send{{Node: "n", Input: value}},
			},
		}},
		Request: &checkpoint.Request{ID: "x", Digest: text},
		Events: []checkpoint.Event{
			{Seq: 1, Time: at, Kind: checkpoint.EventUpdate, Value: long, Failure: failure, Actor: text},
			{Seq: 2, Time: at, Kind: checkpoint.EventResolved, Interrupts: questions},
		},
	}
}

// ReadThread reads all records of a thread that Everywhere made, and reports the
// unreadable.
func ReadThread(t *testing.T, s checkpoint.Store, thread string) error {
	t.Helper()
	ctx := t.Context()
	_, head := s.Head(ctx, thread)
	_, cp := s.Checkpoint(ctx, thread, "", "")
	_, cps := s.Checkpoints(ctx, checkpoint.CheckpointQuery{Thread: thread})
	_, pending := s.Pending(ctx, thread, "c")
	_, events := s.Events(ctx, thread, 0, 0)
	_, run := s.Run(ctx, thread, "r")
	_, question := s.Interrupt(ctx, thread, "q")
	_, request := s.Request(ctx, thread, "x")
	return errors.Join(head, cp, cps, pending, events, run, question, request)
}
