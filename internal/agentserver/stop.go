package agentserver

import (
	"encoding/json"
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// interruptKey is the key of questions beside the keys of a state.
const interruptKey = "__interrupt__"

// showInterrupt shows questions in the graph that asks. Where subgraphs show, they also show in the
// graphs around it.
func (t *translator) showInterrupt(event *graphdv1.Event, raised *graphdv1.InterruptRaised) {
	t.raised = append(t.raised, raised.GetInterrupts()...)
	questions := newQuestions(raised.GetInterrupts())
	if len(questions) == 0 {
		return // breakpoints show when the run has stopped
	}
	namespace := event.GetNamespace()
	if !t.leg.Subgraphs {
		t.addQuestionUpdate(nil, questions)
	} else {
		t.showQuestions(namespace, questions)
	}
	if t.leg.Subgraphs || len(namespace) == 0 {
		t.showWaitingTasks(event, raised.GetInterrupts())
	}
	for t.leg.Subgraphs && len(namespace) > 0 {
		namespace = namespace[:len(namespace)-1]
		t.showQuestions(namespace, questions)
	}
}

// showQuestions shows that a graph waits for questions. The state of the root with all of them shows
// when the run has stopped.
func (t *translator) showQuestions(namespace []string, questions []shownQuestion) {
	t.addQuestionUpdate(namespace, questions)
	if len(namespace) == 0 || !t.has("values") || t.err != nil {
		return
	}
	values := t.below.findValues(namespace)
	if values == nil {
		values = t.readState(namespace)
	}
	t.below.keepState(namespace, subgraphState{values: values, isStored: true}) // what follows is partial
	if values != nil {
		t.addQuestionValues(namespace, values, questions)
	}
}

func (t *translator) addQuestionUpdate(namespace []string, questions []shownQuestion) {
	if t.has("updates") {
		t.add("updates", namespace, map[string]any{interruptKey: questions})
	}
}

func (t *translator) addQuestionValues(namespace []string, values json.RawMessage, questions []shownQuestion) {
	shown, err := addQuestions(values, questions)
	if err != nil {
		t.err = err
		return
	}
	t.add("values", namespace, shown)
}

// readState reads the values of a graph that were not shown in this stream, nil when none are stored.
func (t *translator) readState(namespace []string) json.RawMessage {
	asked := &graphdv1.GetStateRequest{ThreadId: t.thread}
	if len(namespace) > 0 {
		asked.At = &graphdv1.CheckpointRef{Namespace: namespace}
	}
	present, err := t.call.threads.GetState(t.call.ctx, asked)
	if err != nil {
		if len(namespace) == 0 || reasonOf(err) != "CHECKPOINT_NOT_FOUND" {
			t.err = err
		}
		return nil
	}
	return newState(t.thread, present).Values
}

// showWaitingTasks shows the tasks that wait for answers.
func (t *translator) showWaitingTasks(event *graphdv1.Event, raised []*graphdv1.Interrupt) {
	byTask := map[string][]*graphdv1.Interrupt{}
	var order []string
	for _, q := range raised {
		if byTask[q.GetTaskId()] == nil {
			order = append(order, q.GetTaskId())
		}
		byTask[q.GetTaskId()] = append(byTask[q.GetTaskId()], q)
	}
	for _, task := range order {
		t.addTask(event, "task_result", taskResult{
			ID: dashID(task), Name: byTask[task][0].GetNode(), Result: json.RawMessage("{}"), Interrupts: newQuestions(byTask[task]),
		})
	}
}

// showStop shows for what the run has stopped: the questions of this leg, those that wait since an
// earlier one, or that there are none but breakpoints. What the finished tasks of the superstep have
// written follows. end is nil when the run has gone on meanwhile.
func (t *translator) showStop(end *graphdv1.EndOfStream) {
	t.isOver = true
	asked := t.raised
	if open := end.GetRun().GetOpenInterruptIds(); !t.hasRaised(open) {
		waiting, err := t.call.readThread(t.thread)
		if err != nil {
			t.err = err
			return
		}
		asked = waiting.GetInterrupts()
		if questions := newQuestions(asked); len(questions) > 0 {
			t.addQuestionUpdate(nil, questions)
		}
	}
	questions := newQuestions(asked)
	if len(questions) == 0 && len(asked) > 0 {
		t.addQuestionUpdate(nil, questions) // it is at breakpoints
	}
	if t.has("values") && len(questions) > 0 {
		if t.values == nil {
			t.values = t.readState(nil)
		}
		if t.err == nil {
			t.addQuestionValues(nil, t.values, questions)
		}
	}
	t.showPartial()
}

// hasRaised reports whether the leg has asked all these questions.
func (t *translator) hasRaised(ids []string) bool {
	for _, id := range ids {
		if !slices.ContainsFunc(t.raised, func(q *graphdv1.Interrupt) bool { return q.GetInterruptId() == id }) {
			return false
		}
	}
	return true
}

// showsProgress reports whether an event shows that the run has gone on since the one before it.
func showsProgress(event *graphdv1.Event) bool {
	return event.GetRunState() == nil && event.GetHeartbeat() == nil && event.GetEnd() == nil
}

// showPartial shows the state of the root that no checkpoint holds: that of a superstep that is not
// over. Where the run stops in it, its questions come first.
func (t *translator) showPartial() {
	partial := t.partial
	t.partial = nil
	if partial == nil {
		return
	}
	if t.values == nil {
		t.values = partial
	}
	if t.has("values") {
		t.add("values", nil, partial)
	}
}

// subgraphStates are the last states of the subgraphs that run.
type subgraphStates struct {
	byName map[string]subgraphState // by namespace
	size   int                      // bytes of the names and states
}

// subgraphState is a state of a subgraph. The states of one that keeps no checkpoints are not stored.
type subgraphState struct {
	values   json.RawMessage
	isStored bool
}

func newSubgraphStates() *subgraphStates {
	return &subgraphStates{byName: map[string]subgraphState{}}
}

func (s *subgraphStates) keepState(namespace []string, state subgraphState) {
	name := formatNamespace(namespace)
	s.forgetState(name)
	s.byName[name] = state
	s.size += len(name) + len(state.values)
}

func (s *subgraphStates) findValues(namespace []string) json.RawMessage {
	return s.byName[formatNamespace(namespace)].values
}

// hidesPartial reports whether a state of a subgraph that no checkpoint holds is that of a superstep
// that is not over, which shows for the root alone.
func (s *subgraphStates) hidesPartial(namespace []string) bool {
	return s.byName[formatNamespace(namespace)].isStored
}

func (s *subgraphStates) forgetState(name string) {
	if state, ok := s.byName[name]; ok {
		s.size -= len(name) + len(state.values)
		delete(s.byName, name)
	}
}

// forgetBelow forgets the subgraphs of a graph whose superstep is over.
func (s *subgraphStates) forgetBelow(namespace []string) {
	prefix := ""
	if len(namespace) > 0 {
		prefix = formatNamespace(namespace) + "|"
	}
	for name := range s.byName {
		if strings.HasPrefix(name, prefix) {
			s.forgetState(name)
		}
	}
}
