package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// graphState is the state of the graph in worker.py.
type graphState struct {
	N     int            `json:"n"`
	Round int            `json:"round"`
	Log   []string       `json:"log"`
	Count map[string]int `json:"count"`
}

// memoLookup returns the recorded value of a memo, in the order of its rounds.
type memoLookup func(key string, round int) string

// expectedState is the state that the thread must end with: what worker.py says, with
// no worker, no store and no fault in between.
func (d *threadDriver) expectedState(memo memoLookup) graphState {
	end := graphState{N: d.number, Count: make(map[string]int)}
	say := func(format string, args ...any) { end.Log = append(end.Log, fmt.Sprintf(format, args...)) }
	answer := func(round int, what string) string {
		var answer string
		_ = json.Unmarshal([]byte(d.answers[d.idsByRound[fmt.Sprintf("%d/%s", round, what)]]), &answer)
		return answer
	}
	for round := range 1 + d.number%2 {
		say("open=%s", memo("open", round))
		say("name=%s", answer(round, "name"))
		say("amount=%s", answer(round, "amount"))
		say("charge=%s", memo("charge", round))
		end.Count["gather"]++
		end.Round++
		for _, who := range []string{"desk", "legal", "risk"}[:1+d.number%3] {
			say("note-%s=%s", who, memo("note-"+who, round))
			say("%s=%s", who, answer(round+1, who))
			end.Count["review"]++
		}
		say("settle=%s", memo("settle", round))
		end.Count["settle"]++
	}
	if !d.counts {
		clear(end.Count)
	}
	return end
}

// verifyThread compares what became of the thread with what must have.
func (d *threadDriver) verifyThread(ctx context.Context, run *graphdv1.Run, values map[[2]string]string, ledger []ledgerEntry) error {
	if run.GetState() != graphdv1.RunState_RUN_STATE_SUCCEEDED {
		return fmt.Errorf("the run ended as %s: %s", run.GetState(), run.GetFailure())
	}
	got := graphState{Count: make(map[string]int)}
	if err := json.Unmarshal([]byte(run.GetOutput().GetJson()), &got); err != nil {
		return fmt.Errorf("the output: %w", err)
	}
	want := d.expectedState(memosByRound(ledger, values))
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		return fmt.Errorf("the run ended with\n %s\nand not with\n %s", g, w)
	}
	questions, err := d.verifyInterrupts(ctx)
	if err != nil {
		return err
	}
	if err := d.verifyHistory(ctx); err != nil {
		return err
	}
	return d.verifyEvents(ctx, questions)
}

// memosByRound finds the memos of one thread. A task is one round of a node; tasks
// come in the order in which they were begun.
func memosByRound(ledger []ledgerEntry, values map[[2]string]string) memoLookup {
	byKey := make(map[string][]string)
	for _, e := range ledger {
		at := [2]string{e.Task, e.Key}
		if v, ok := values[at]; ok && !slices.Contains(byKey[e.Key], v) {
			byKey[e.Key] = append(byKey[e.Key], v)
		}
	}
	return func(key string, round int) string {
		if round < len(byKey[key]) {
			return byKey[key][round]
		}
		return "no record"
	}
}

// verifyInterrupts checks that every interrupt was used with the answer it got.
func (d *threadDriver) verifyInterrupts(ctx context.Context) (map[string]bool, error) {
	page, _, err := callUntilAnswered(ctx, d.ListInterrupts, &graphdv1.ListInterruptsRequest{ThreadId: d.thread, PageSize: 100, Filter: `state = "CONSUMED"`})
	if err != nil {
		return nil, fmt.Errorf("questions: %w", err)
	}
	used := make(map[string]bool)
	for _, q := range page.GetInterrupts() {
		id := q.GetInterruptId()
		if used[id] {
			return nil, fmt.Errorf("question %s is listed twice", id)
		}
		used[id] = true
		if got := q.GetResponse().GetJson(); got != d.answers[id] {
			return nil, fmt.Errorf("question %s was used with %s, not with %s", id, got, d.answers[id])
		}
	}
	if len(used) != len(d.answers) {
		return nil, fmt.Errorf("%d questions were used, %d answered", len(used), len(d.answers))
	}
	return used, nil
}

// verifyHistory checks that every checkpoint follows the one before.
func (d *threadDriver) verifyHistory(ctx context.Context) error {
	page, _, err := callUntilAnswered(ctx, d.ListCheckpoints, &graphdv1.ListCheckpointsRequest{ThreadId: d.thread, PageSize: 500})
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	list := page.GetCheckpoints()
	for i, c := range list {
		parent := c.GetParent().GetCheckpointId()
		switch {
		case i == len(list)-1:
			if parent != "" || c.GetStep() != -1 {
				return fmt.Errorf("the history begins with step %d after %q", c.GetStep(), parent)
			}
		case parent != list[i+1].GetCheckpoint().GetCheckpointId() || c.GetStep() != list[i+1].GetStep()+1:
			return fmt.Errorf("the history is not linear at step %d", c.GetStep())
		}
	}
	// Each round takes three supersteps, and two checkpoints come before the first.
	if want := 2 + 3*(1+d.number%2); len(list) != want {
		return fmt.Errorf("the history has %d checkpoints, not %d", len(list), want)
	}
	return nil
}

// verifyEvents checks the log: no number is missing, each interrupt is asked once and
// answered once, and a follower has seen the same.
func (d *threadDriver) verifyEvents(ctx context.Context, questions map[string]bool) error {
	var stored []uint64
	raised, answered := make(map[string]int), make(map[string]int)
	for done := false; !done; {
		clear(raised)
		clear(answered)
		stored = stored[:0]
		var err error
		done, err = harness.ReadStream(ctx, d, &graphdv1.WatchRequest{
			ThreadId: d.thread, Filter: harness.StoredEvents(), Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
		}, func(e *graphdv1.Event) {
			if !e.GetEphemeral() {
				stored = append(stored, e.GetCursor().GetSequence())
			}
			for _, q := range e.GetInterrupt().GetInterrupts() {
				raised[q.GetInterruptId()]++
			}
			for _, q := range e.GetInterruptResolved().GetInterrupts() {
				if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_ANSWERED {
					answered[q.GetInterruptId()]++
				}
			}
		})
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("events: %w", err)
		}
	}
	for i, sequence := range stored {
		if i > 0 && sequence != stored[i-1]+1 {
			return fmt.Errorf("event %d comes after %d", sequence, stored[i-1])
		}
	}
	once := make(map[string]int)
	for id := range questions {
		once[id] = 1
	}
	if !maps.Equal(raised, once) || !maps.Equal(answered, once) {
		return fmt.Errorf("the questions %v were raised %v and answered %v", once, raised, answered)
	}
	if d.seenEvents != nil && !slices.Equal(d.seenEvents, stored) {
		return errors.New("a follower has seen other events than are stored: " + fmt.Sprint(d.seenEvents, stored))
	}
	return nil
}
