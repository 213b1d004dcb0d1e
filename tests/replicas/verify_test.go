package replicas_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// expectedLog is the log that claim.yaml must end with, with no store and no fault
// in between.
func (p *threadPlan) expectedLog() []string {
	var log []string
	for i := range 3 + p.number%3 {
		log = append(log, fmt.Sprintf("collect %d", i))
	}
	for _, node := range []string{"decide", "book", "tell"} {
		log = append(log, node+" "+p.answerWord())
	}
	for i := range 3 + p.number%4 {
		log = append(log, fmt.Sprintf("settle %d", i))
	}
	return log
}

// verifyThread compares what became of the thread with what must have.
func (d *threadDriver) verifyThread(ctx context.Context, run *graphdv1.Run) error {
	resolved, note, err := d.verifyComplete(ctx, run)
	if err != nil {
		return err
	}
	if err := d.verifyAnswerUsed(ctx, note); err != nil {
		return err
	}
	return d.verifyAcknowledgements(resolved, note)
}

// verifyComplete checks that the thread ended as it must, and that all of it fits
// together. It returns the event of the answer and its note.
func (d *threadDriver) verifyComplete(ctx context.Context, run *graphdv1.Run) (resolved uint64, note string, err error) {
	if run.GetState() != graphdv1.RunState_RUN_STATE_SUCCEEDED || run.GetRunId() != d.runID {
		return 0, "", fmt.Errorf("run %s ended as %s: %s", run.GetRunId(), run.GetState(), run.GetFailure())
	}
	var got struct {
		N      int
		Log    []string
		Answer struct{ Word string }
	}
	if err := json.Unmarshal([]byte(run.GetOutput().GetJson()), &got); err != nil {
		return 0, "", fmt.Errorf("the output: %w", err)
	}
	if got.N != d.number || got.Answer.Word != d.answerWord() || !slices.Equal(got.Log, d.expectedLog()) {
		return 0, "", fmt.Errorf("the run ended with\n %+v\nand not with\n %v", got, d.expectedLog())
	}
	if err := d.verifyHistory(ctx); err != nil {
		return 0, "", err
	}
	return d.verifyEvents(ctx)
}

// verifyHistory checks that every checkpoint follows the one before.
func (d *threadDriver) verifyHistory(ctx context.Context) error {
	page, err := callUntilAnswered(ctx, d, func(ctx context.Context, c harness.Client) (*graphdv1.ListCheckpointsResponse, error) {
		return c.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{ThreadId: d.thread, PageSize: 500})
	})
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
	// Two checkpoints come before the first superstep; two nodes share one.
	if want := 2 + len(d.expectedLog()) - 1; len(list) != want {
		return fmt.Errorf("the history has %d checkpoints, not %d", len(list), want)
	}
	return nil
}

// verifyEvents checks the log: no number is missing or comes twice, the interrupt is
// raised once and answered once, no node ran again after its result was stored,
// and a follower has seen the same. It returns the event of the answer and its
// note.
func (d *threadDriver) verifyEvents(ctx context.Context) (resolved uint64, note string, err error) {
	var stored []uint64
	var raised, answered int
	var updates []string
	var wrong error
	_, err = callUntilAnswered(ctx, d, func(ctx context.Context, c harness.Client) (bool, error) {
		stored, raised, answered, updates = stored[:0], 0, 0, nil
		wrong = nil
		return harness.ReadStream(ctx, c, &graphdv1.WatchRequest{
			ThreadId: d.thread, Filter: harness.StoredEvents(), Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
		}, func(e *graphdv1.Event) {
			if !e.GetEphemeral() {
				stored = append(stored, e.GetCursor().GetSequence())
			}
			if u := e.GetUpdate(); u != nil && !u.GetCached() {
				updates = append(updates, updateText(e))
			} else if u != nil && !slices.Contains(updates, updateText(e)) {
				wrong = fmt.Errorf("event %d says again what was never said: %s", e.GetCursor().GetSequence(), updateText(e))
			}
			raised += len(e.GetInterrupt().GetInterrupts())
			for _, q := range e.GetInterruptResolved().GetInterrupts() {
				answered++
				resolved, note = e.GetCursor().GetSequence(), q.GetNote()
			}
		})
	})
	if err = errors.Join(err, wrong); err != nil {
		return 0, "", fmt.Errorf("events: %w", err)
	}
	for i, sequence := range stored {
		if sequence != stored[0]+uint64(i) {
			return 0, "", fmt.Errorf("event %d comes after %d", sequence, stored[i-1])
		}
	}
	if raised != 1 || answered != 1 {
		return 0, "", fmt.Errorf("the question was raised %d times and answered %d times", raised, answered)
	}
	slices.Sort(updates)
	if want := len(d.expectedLog()); len(updates) != want || len(slices.Compact(slices.Clone(updates))) != want {
		return 0, "", fmt.Errorf("the log has %d updates, and not %d different ones:\n%s", len(updates), want, strings.Join(updates, "\n"))
	}
	if d.isFollowed && !slices.Equal(d.seenEvents, stored) {
		return 0, "", errors.New("a follower has seen other events than are stored: " + fmt.Sprint(d.seenEvents, stored))
	}
	return resolved, note, nil
}

// updateText is who wrote what.
func updateText(e *graphdv1.Event) string {
	return fmt.Sprintf("step %d: %s of task %s writes %s", e.GetStep(), e.GetNode(), e.GetTaskId(), e.GetUpdate().GetValues().GetJson())
}

// verifyAnswerUsed checks that the interrupt was used with its answer.
func (d *threadDriver) verifyAnswerUsed(ctx context.Context, note string) error {
	q, err := callUntilAnswered(ctx, d, func(ctx context.Context, c harness.Client) (*graphdv1.Interrupt, error) {
		return c.GetInterrupt(ctx, &graphdv1.GetInterruptRequest{ThreadId: d.thread, InterruptId: d.interruptID})
	})
	if err != nil {
		return fmt.Errorf("question: %w", err)
	}
	want := fmt.Sprintf(`{"word":%q}`, d.answerWord())
	if q.GetState() != graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED || q.GetResponse().GetJson() != want || q.GetNote() != note {
		return fmt.Errorf("the question is %s with %s of %q, not with %s of %q",
			q.GetState(), q.GetResponse().GetJson(), q.GetNote(), want, note)
	}
	return nil
}

// verifyAcknowledgements checks what the two people were told: both that their
// answer is taken, and who came second that the answer was there already. Of two
// who come at once the second may learn of an event before the answer, never after
// it.
func (d *threadDriver) verifyAcknowledgements(resolved uint64, note string) error {
	first, second := d.answers[0], d.answers[1]
	if note != first.note {
		first, second = second, first
	}
	atOnce := d.secondAnswer == atTheSameTime
	switch {
	case first.note != note:
		return fmt.Errorf("the answer is of %q", note)
	case first.run != d.runID || second.run != d.runID:
		return fmt.Errorf("the answers were acknowledged with the runs %q and %q, not %q", first.run, second.run, d.runID)
	case first.appliedThrough >= resolved && (!atOnce || !d.repeatsRequest):
		return fmt.Errorf("%s set the run going with event %d, but heard of %d", first.note, resolved, first.appliedThrough)
	case atOnce:
	case note != d.answers[0].note:
		return fmt.Errorf("the answer is of %s, who came second", note)
	case d.repeatsRequest && first.appliedThrough != second.appliedThrough:
		return fmt.Errorf("the same request was acknowledged with event %d and with %d", first.appliedThrough, second.appliedThrough)
	case !d.repeatsRequest && second.appliedThrough < resolved:
		return fmt.Errorf("%s came second, and heard of event %d before the answer, %d", second.note, second.appliedThrough, resolved)
	}
	d.progress.applied.Add(1)
	d.progress.duplicates.Add(1)
	return nil
}
