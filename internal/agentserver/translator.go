package agentserver

import (
	"bytes"
	"encoding/json"
	"slices"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// outgoing is a server-sent event without its id.
type outgoing struct {
	name string
	data []byte
}

// translator makes the events of protocol v1 of those of graphd, in their order.
type translator struct {
	call     *call
	leg      *leg // its modes and subgraphs
	thread   string
	run      string
	graph    string
	list     []outgoing // of the event that is translated
	err      error
	values   json.RawMessage // the last state of the root graph, nil = none was shown
	partial  json.RawMessage // that of a superstep that is not over, until it is shown
	below    *subgraphStates
	raised   []*graphdv1.Interrupt // questions of this leg
	triggers map[string][]string   // by task
	messages *messageLog
	held     int  // bytes of messages and subgraphs that are counted
	isPaused bool // the run has stopped at questions; the end of the stream says at which
	isOver   bool
}

func newTranslator(c *call, of *graphdv1.Run, id string, shown *leg) *translator {
	return &translator{
		call: c, leg: shown, thread: of.GetThreadId(), run: id, graph: of.GetGraph(), triggers: map[string][]string{}, messages: newMessageLog(), below: newSubgraphStates(),
	}
}

// translate returns what an event shows, and whether the leg is over.
func (t *translator) translate(event *graphdv1.Event) (list []outgoing, isOver bool, err error) {
	t.list = nil
	if t.isPaused && event.GetHeartbeat() == nil {
		t.showStop(event.GetEnd())
		return t.list, true, t.err
	}
	if showsProgress(event) {
		t.showPartial()
	}
	switch kind := event.GetKind().(type) {
	case *graphdv1.Event_RunState:
		t.showRunState(kind.RunState)
	case *graphdv1.Event_Values:
		t.showValues(event, kind.Values)
	case *graphdv1.Event_Update:
		t.showUpdate(event, kind.Update)
	case *graphdv1.Event_Interrupt:
		t.showInterrupt(event, kind.Interrupt)
	case *graphdv1.Event_Task:
		t.showTask(event, kind.Task)
	case *graphdv1.Event_Message:
		t.showMessage(event, kind.Message)
	case *graphdv1.Event_Custom:
		if t.has("custom") && kind.Custom.GetName() != taskEvent {
			t.add("custom", event.GetNamespace(), payloadText(kind.Custom.GetValue()))
		}
	case *graphdv1.Event_Checkpoint:
		t.showCheckpoint(event, kind.Checkpoint)
	}
	t.holdKept()
	return t.list, t.isOver, t.err
}

// heldStep is how many bytes are counted at once.
const heldStep = 16 << 10

// holdKept counts what is kept of messages and subgraphs with what clients have not read. Where that
// is too much the stream ends, and the client joins again.
func (t *translator) holdKept() {
	for t.err == nil && t.held < t.messages.size+t.below.size {
		if t.err = t.call.holdGathered(heldStep); t.err == nil {
			t.held += heldStep
		}
	}
}

// taskEvent is the name of custom events by which the SDKs tell of tasks that the code of a node
// calls.
const taskEvent = "graphd.task"

func (t *translator) has(mode string) bool { return slices.Contains(t.leg.Modes, mode) }

// add adds an event of a graph. Text of a state may have line breaks, which would end the data.
func (t *translator) add(mode string, namespace []string, value any) {
	data, err := encodeJSON(value)
	if err != nil {
		t.err = err
		return
	}
	name := mode
	if len(namespace) > 0 {
		name += "|" + formatNamespace(namespace)
	}
	t.list = append(t.list, outgoing{name, bytes.ReplaceAll(data, []byte("\n"), nil)})
}

// showRunState ends the leg when the run stops.
func (t *translator) showRunState(change *graphdv1.RunStateChanged) {
	switch state := change.GetState(); {
	case state == graphdv1.RunState_RUN_STATE_INTERRUPTED:
		t.isPaused = true
	case isStopped(state):
		t.isOver = true
		if failure := newRunFailure(state, change.GetFailure()); failure != nil {
			t.add("error", nil, failure)
		}
	}
}

func (t *translator) showValues(event *graphdv1.Event, shown *graphdv1.StateValues) {
	values := payloadText(shown.GetValues())
	isRoot := len(event.GetNamespace()) == 0
	t.messages.markSeen(values)
	switch {
	case isRoot && shown.GetCheckpoint() == nil:
		t.partial = values
		return
	case isRoot:
		t.values = values
	case shown.GetCheckpoint() == nil && t.below.hidesPartial(event.GetNamespace()):
		return
	}
	t.below.forgetBelow(event.GetNamespace())
	if t.has("values") {
		if !isRoot {
			t.below.keepState(event.GetNamespace(), subgraphState{values: values, isStored: shown.GetCheckpoint() != nil})
		}
		t.add("values", event.GetNamespace(), values)
	}
}

func (t *translator) showUpdate(event *graphdv1.Event, update *graphdv1.NodeUpdate) {
	values := payloadText(update.GetValues())
	if !update.GetCached() {
		for _, message := range t.messages.findNew(values) {
			t.addMessage(event, message, nil)
		}
	}
	if t.has("updates") {
		shown := map[string]any{event.GetNode(): values}
		if update.GetCached() {
			shown["__metadata__"] = map[string]bool{"cached": true}
		}
		t.add("updates", event.GetNamespace(), shown)
	}
	if isAbsent(values) {
		values = json.RawMessage("{}")
	}
	t.addTask(event, "task_result", taskResult{ID: dashID(event.GetTaskId()), Name: event.GetNode(), Result: values, Interrupts: []shownQuestion{}})
	t.addChainEvents(event, values)
}

// taskBegin is the begin of a task.
type taskBegin struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	Triggers []string        `json:"triggers"`
	Metadata metadata        `json:"metadata"`
}

// taskResult is the end of a task.
type taskResult struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Error      *string         `json:"error"`
	Result     json.RawMessage `json:"result"`
	Interrupts []shownQuestion `json:"interrupts"`
}

func (t *translator) showTask(event *graphdv1.Event, task *graphdv1.TaskChange) {
	switch task.GetPhase() { //nolint:exhaustive // the others do not show
	case graphdv1.TaskChange_PHASE_SCHEDULED:
		t.triggers[event.GetTaskId()] = task.GetTriggers()
		t.addTask(event, "task", taskBegin{
			ID: dashID(event.GetTaskId()), Name: event.GetNode(), Input: payloadText(task.GetValue()), Triggers: nonNil(task.GetTriggers()), Metadata: metadata{},
		})
	case graphdv1.TaskChange_PHASE_FAILED:
		text := failureType(task.GetFailure()) + ": " + task.GetFailure().GetMessage()
		t.addTask(event, "task_result", taskResult{
			ID: dashID(event.GetTaskId()), Name: event.GetNode(), Error: &text, Result: json.RawMessage("{}"), Interrupts: []shownQuestion{},
		})
	case graphdv1.TaskChange_PHASE_RESTARTED:
		t.messages.forgetTask(event.GetTaskId())
	}
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// addTask shows something of a task in the modes tasks and debug.
func (t *translator) addTask(event *graphdv1.Event, kind string, payload any) {
	if t.has("tasks") {
		t.add("tasks", event.GetNamespace(), payload)
	}
	t.addDebug(event, kind, payload)
}

func (t *translator) addDebug(event *graphdv1.Event, kind string, payload any) {
	if t.has("debug") {
		t.add("debug", event.GetNamespace(), map[string]any{
			"step": event.GetStep(), "timestamp": formatTime(event.GetTime()), "type": kind, "payload": payload,
		})
	}
}

// shownCheckpoint is a checkpoint in a stream.
type shownCheckpoint struct {
	Config   checkpointConfig  `json:"config"`
	Parent   *checkpointConfig `json:"parent_config"`
	Values   json.RawMessage   `json:"values"`
	Metadata metadata          `json:"metadata"`
	Next     []string          `json:"next"`
	Tasks    []taskRef         `json:"tasks"`
}

// checkpointConfig names a checkpoint.
type checkpointConfig struct {
	Configurable *checkpoint `json:"configurable"`
}

// taskRef names a task that is due.
type taskRef struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Interrupts []shownQuestion `json:"interrupts"`
	State      *state          `json:"state"`
}

func (t *translator) showCheckpoint(event *graphdv1.Event, saved *graphdv1.CheckpointSaved) {
	if !t.has("checkpoints") && !t.has("debug") {
		return
	}
	shown := shownCheckpoint{
		Config: checkpointConfig{newCheckpoint(t.thread, saved.GetCheckpoint())}, Values: payloadText(saved.GetValues()),
		Metadata: metadata{}, Next: []string{}, Tasks: []taskRef{},
	}
	shown.Metadata.setText("source", sourceName(saved.GetSource()))
	shown.Metadata["step"], _ = encodeJSON(event.GetStep()) // a number has JSON
	shown.Metadata.setText("thread_id", t.thread)
	shown.Metadata.setText("run_id", t.run)
	if parent := saved.GetParent(); parent != nil {
		shown.Parent = &checkpointConfig{newCheckpoint(t.thread, parent)}
	}
	for _, due := range saved.GetNext() {
		shown.Next = append(shown.Next, due.GetNode())
		shown.Tasks = append(shown.Tasks, taskRef{ID: dashID(due.GetTaskId()), Name: due.GetNode(), Interrupts: []shownQuestion{}})
	}
	if t.has("checkpoints") {
		t.add("checkpoints", event.GetNamespace(), shown)
	}
	t.addDebug(event, "checkpoint", shown)
}

// addChainEvents shows in the mode events that a node has ended.
func (t *translator) addChainEvents(event *graphdv1.Event, output json.RawMessage) {
	if !t.has("events") {
		return
	}
	about := map[string]any{"langgraph_node": event.GetNode(), "langgraph_step": event.GetStep(), "thread_id": t.thread}
	for _, kind := range []string{"on_chain_start", "on_chain_end"} {
		data := map[string]any{}
		if kind == "on_chain_end" {
			data["output"] = output
		}
		t.add("events", event.GetNamespace(), map[string]any{
			"event": kind, "name": event.GetNode(), "run_id": dashID(event.GetTaskId()), "data": data, "metadata": about, "tags": []string{}, "parent_ids": []string{t.run},
		})
	}
	t.add("events", event.GetNamespace(), map[string]any{
		"event": "on_chain_stream", "name": t.graph, "run_id": t.run, "data": map[string]any{"chunk": map[string]any{event.GetNode(): output}},
		"metadata": map[string]any{"thread_id": t.thread}, "tags": []string{}, "parent_ids": []string{},
	})
}

// messageNamespace returns the namespace of the task of an event.
func messageNamespace(event *graphdv1.Event) string {
	return formatNamespace(append(slices.Clone(event.GetNamespace()), event.GetNode()+":"+event.GetTaskId()))
}
