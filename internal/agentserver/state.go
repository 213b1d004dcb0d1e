package agentserver

import (
	"encoding/json"
	"fmt"
	"net/http"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// state is a checkpoint of a thread as clients have it.
type state struct {
	Values           json.RawMessage `json:"values"`
	Next             []string        `json:"next"`
	Tasks            []stateTask     `json:"tasks"`
	Metadata         metadata        `json:"metadata"`
	Created          *string         `json:"created_at"`
	Checkpoint       *checkpoint     `json:"checkpoint"`
	Parent           *checkpoint     `json:"parent_checkpoint"`
	Interrupts       []shownQuestion `json:"interrupts"`
	CheckpointID     *string         `json:"checkpoint_id"`
	ParentCheckpoint *string         `json:"parent_checkpoint_id"`
}

// checkpoint names a checkpoint.
type checkpoint struct {
	Thread    string  `json:"thread_id"`
	ID        *string `json:"checkpoint_id"`
	Namespace string  `json:"checkpoint_ns"`
}

// stateTask is one task of a state.
type stateTask struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Path       []string        `json:"path"`
	Error      *string         `json:"error"`
	Interrupts []shownQuestion `json:"interrupts"`
	Checkpoint *checkpoint     `json:"checkpoint"`
	State      *state          `json:"state"`
	Result     json.RawMessage `json:"result"`
}

func newCheckpoint(thread string, ref *graphdv1.CheckpointRef) *checkpoint {
	if ref == nil {
		return nil
	}
	id := ref.GetCheckpointId()
	return &checkpoint{Thread: thread, ID: &id, Namespace: formatNamespace(ref.GetNamespace())}
}

// sourceName returns the name of what made a checkpoint.
func sourceName(source graphdv1.CheckpointSource) string {
	switch source {
	case graphdv1.CheckpointSource_CHECKPOINT_SOURCE_INPUT:
		return "input"
	case graphdv1.CheckpointSource_CHECKPOINT_SOURCE_UPDATE:
		return "update"
	case graphdv1.CheckpointSource_CHECKPOINT_SOURCE_FORK:
		return "fork"
	case graphdv1.CheckpointSource_CHECKPOINT_SOURCE_LOOP, graphdv1.CheckpointSource_CHECKPOINT_SOURCE_UNSPECIFIED:
	}
	return "loop"
}

// questionList chooses those of some interrupts that a state shows.
type questionList func([]*graphdv1.Interrupt) []shownQuestion

// newState returns a state with the questions that are open in it.
func newState(thread string, s *graphdv1.StateSnapshot) *state {
	return describeState(thread, s, newQuestions)
}

// newPastState returns a checkpoint with all questions that were asked there.
func newPastState(thread string, s *graphdv1.StateSnapshot) *state {
	return describeState(thread, s, newAskedQuestions)
}

func describeState(thread string, s *graphdv1.StateSnapshot, questions questionList) *state {
	shown := &state{Values: payloadText(s.GetValues()), Next: s.GetNext(), Tasks: []stateTask{}, Interrupts: questions(s.GetInterrupts())}
	if s.GetValues().GetJson() == "" {
		shown.Values = json.RawMessage("{}")
	}
	if shown.Next == nil {
		shown.Next = []string{}
	}
	if s.GetCheckpoint() != nil {
		made := formatTime(s.GetCreateTime())
		shown.Created, shown.Metadata = &made, newStateMetadata(thread, s)
		shown.Checkpoint, shown.Parent = newCheckpoint(thread, s.GetCheckpoint()), newCheckpoint(thread, s.GetParent())
		shown.CheckpointID = shown.Checkpoint.ID
		if shown.Parent != nil {
			shown.ParentCheckpoint = shown.Parent.ID
		}
	}
	for _, t := range s.GetTasks() {
		shown.Tasks = append(shown.Tasks, newStateTask(thread, t, questions))
	}
	return shown
}

// newStateMetadata returns the metadata of a checkpoint.
func newStateMetadata(thread string, s *graphdv1.StateSnapshot) metadata {
	m := readLabels(s.GetMetadata())
	m.setText("source", sourceName(s.GetSource()))
	m["step"], _ = encodeJSON(s.GetStep()) // a number has JSON
	m.setText("thread_id", thread)
	m.setText("graph_id", s.GetGraph())
	m.setText("assistant_id", defaultAssistant(s.GetGraph()))
	if s.GetRunId() != "" {
		m.setText("run_id", s.GetRunId())
	}
	return m
}

func newStateTask(thread string, t *graphdv1.SnapshotTask, questions questionList) stateTask {
	shown := stateTask{
		ID: dashID(t.GetTaskId()), Name: t.GetNode(), Path: []string{"__pregel_pull", t.GetNode()}, Interrupts: questions(t.GetInterrupts()), Result: payloadText(t.GetResult()),
	}
	if failure := t.GetFailure(); failure != nil {
		text := failureType(failure) + ": " + failure.GetMessage()
		shown.Error = &text
	}
	if t.GetState() != nil {
		shown.State = describeState(thread, t.GetState(), questions)
	} else if len(t.GetNamespace()) > 0 {
		shown.Checkpoint = &checkpoint{Thread: thread, Namespace: formatNamespace(t.GetNamespace())}
	}
	return shown
}

// checkpointChoice names a checkpoint in a request.
type checkpointChoice struct {
	Thread    string `json:"thread_id"`
	ID        string `json:"checkpoint_id"`
	Namespace string `json:"checkpoint_ns"`
}

// toRef returns the checkpoint as graphd has it, nil for none.
func (c *checkpointChoice) toRef() *graphdv1.CheckpointRef {
	if c == nil || c.ID == "" && c.Namespace == "" {
		return nil
	}
	return &graphdv1.CheckpointRef{CheckpointId: c.ID, Namespace: parseNamespace(c.Namespace)}
}

// getState answers GET /threads/{id}/state and GET /threads/{id}/state/{checkpoint}.
func getState(c *call) error {
	id, err := c.pathID("thread")
	if err != nil {
		return err
	}
	subgraphs, err := c.queryFlag("subgraphs")
	if err != nil {
		return err
	}
	chosen := &checkpointChoice{ID: c.r.PathValue("checkpoint"), Namespace: c.r.URL.Query().Get("checkpoint_ns")}
	return c.showState(&graphdv1.GetStateRequest{ThreadId: id, At: chosen.toRef(), Subgraphs: subgraphs})
}

// getStateAtCheckpoint answers POST /threads/{id}/state/checkpoint.
func getStateAtCheckpoint(c *call) error {
	var given struct {
		Checkpoint *checkpointChoice `json:"checkpoint"`
		Subgraphs  bool              `json:"subgraphs"`
	}
	id, err := c.pathID("thread")
	if err == nil {
		err = c.decodeBody(&given)
	}
	if err != nil {
		return err
	}
	return c.showState(&graphdv1.GetStateRequest{ThreadId: id, At: given.Checkpoint.toRef(), Subgraphs: given.Subgraphs})
}

func (c *call) showState(asked *graphdv1.GetStateRequest) error {
	found, err := c.threads.GetState(c.ctx, asked)
	if err != nil {
		return err
	}
	if id := asked.GetAt().GetCheckpointId(); id != "" && found.GetCheckpoint() == nil {
		return newError(http.StatusNotFound, "CHECKPOINT_NOT_FOUND", fmt.Sprintf("the thread has no checkpoint %.100q: it has none at all", id))
	}
	if asked.GetAt().GetCheckpointId() != "" {
		return c.writeJSON(http.StatusOK, newPastState(asked.GetThreadId(), found))
	}
	return c.writeJSON(http.StatusOK, newState(asked.GetThreadId(), found))
}

// stateUpdate writes to a state.
type stateUpdate struct {
	Values       json.RawMessage   `json:"values"`
	AsNode       string            `json:"as_node"`
	Checkpoint   *checkpointChoice `json:"checkpoint"`
	CheckpointID string            `json:"checkpoint_id"`
}

// copyNode is the name by which an update copies a checkpoint.
const copyNode = "__copy__"

// updateState answers POST /threads/{id}/state. Open questions become void, as in LangGraph.
func updateState(c *call) error {
	var given stateUpdate
	id, err := c.pathID("thread")
	if err == nil {
		err = c.decodeBody(&given)
	}
	if err != nil {
		return err
	}
	if !isAbsent(given.Values) && !isObject(given.Values) {
		return newError(http.StatusBadRequest, "INVALID_FIELD", "the field values is no object: want one whose keys are those of the state, or null").ofField("values")
	}
	if given.Checkpoint == nil && given.CheckpointID != "" {
		given.Checkpoint = &checkpointChoice{ID: given.CheckpointID}
	}
	written, err := c.threads.UpdateState(c.ctx, given.toRequest(id))
	if err != nil {
		return err
	}
	at := newCheckpoint(id, written.GetCheckpoint())
	return c.writeJSON(http.StatusOK, map[string]any{"checkpoint": at, "configurable": at, "checkpoint_id": at.ID})
}

func (u *stateUpdate) toRequest(thread string) *graphdv1.UpdateStateRequest {
	r := &graphdv1.UpdateStateRequest{ThreadId: thread, At: u.Checkpoint.toRef(), AsNode: u.AsNode, SupersedeInterrupts: true}
	if r.AsNode == startNode {
		r.AsNode = "__input__"
	}
	switch {
	case !isAbsent(u.Values):
		r.Values = newPayload(u.Values)
	case r.AsNode != "" && r.AsNode != endNode && r.AsNode != copyNode: // the node is done, and wrote nothing
		r.Values = newPayload(json.RawMessage("{}"))
	}
	return r
}
