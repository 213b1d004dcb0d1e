package superstep

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// applySuperstep puts the next checkpoint of the loop into a change.
func (s *superstep) applySuperstep(t *commit.Tx) (*pregel.State, []*pregel.Task, error) {
	fr := s.frame
	stamp := fr.writeTo(t).newCheckpointInfo(checkpoint.SourceLoop)
	done := s.reduced
	if done == nil {
		done = s.finishedWrites()
	}
	next, err := fr.state.ApplyStep(done, stamp)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := next.PlanTasks()
	if err != nil {
		return nil, nil, err
	}
	s.emitTaskEvents(t)
	s.consumeAnswers(t)
	if fr.maybeBegun || s.hasRecords || fr.stepMemos.hasAdded() {
		fr.writeTo(t).clearSuperstep(fr.state.Checkpoint().ID)
	}
	goesOn := fr.decideEnd(next, tasks, s.plannedTasks(), &progress{}) == nil
	fr.writeTo(t).putStateAndCheckpoint(next, tasks, goesOn)
	return next, tasks, nil
}
