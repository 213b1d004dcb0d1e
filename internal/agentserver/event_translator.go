package agentserver

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// eventOf is an event of protocol v2 without its number. One that the client does not want has a
// number, too: numbers do not depend on what is asked for.
type eventOf struct {
	method    string
	namespace []string
	node      string
	data      any
	isWanted  bool
}

// eventTranslator makes the events of protocol v2 of those of graphd, in their order.
type eventTranslator struct {
	call     *call
	request  *eventRequest
	graph    string
	list     []eventOf // of the event that is translated
	err      error
	begun    map[string][]string // subgraphs that have begun and not ended, by their names
	messages *messageBlocks
	held     int // bytes of messages that are counted

	// stoppedAt is the last event of a run that waits for a person. Clients that come to it don't see
	// that it has run: they would take back its questions, which they have of the state.
	stoppedAt uint64
}

func newEventTranslator(c *call, request *eventRequest, graph string) *eventTranslator {
	return &eventTranslator{
		call: c, request: request, graph: graph, begun: map[string][]string{}, messages: newMessageBlocks(),
	}
}

// translateEvent returns what an event shows.
func (t *eventTranslator) translateEvent(event *graphdv1.Event) ([]eventOf, error) {
	t.list = nil
	switch kind := event.GetKind().(type) {
	case *graphdv1.Event_RunState:
		t.showRunState(event, kind.RunState)
	case *graphdv1.Event_Values:
		if kind.Values.GetCheckpoint() != nil {
			t.addEvent("values", event, payloadText(kind.Values.GetValues()))
		}
	case *graphdv1.Event_Update:
		t.showUpdate(event, kind.Update)
	case *graphdv1.Event_Interrupt:
		t.showInterrupt(event, kind.Interrupt)
	case *graphdv1.Event_Task:
		t.showTask(event, kind.Task)
	case *graphdv1.Event_Message:
		t.showMessage(event, kind.Message)
	case *graphdv1.Event_Custom:
		t.showCustom(event, kind.Custom)
	}
	for t.err == nil && t.held < t.messages.size { // what is kept counts as what clients have not read
		if t.err = t.call.holdGathered(heldStep); t.err == nil {
			t.held += heldStep
		}
	}
	return t.list, t.err
}

// addEvent adds an event of the graph of an event of graphd.
func (t *eventTranslator) addEvent(method string, event *graphdv1.Event, data any) {
	t.addAt(method, method, listNamespace(event.GetNamespace()), event.GetNode(), data)
}

func (t *eventTranslator) addAt(channel, method string, namespace []string, node string, data any) {
	t.list = append(t.list, eventOf{method, namespace, node, data, t.request.includesEvent(channel, namespace)})
}

// listNamespace returns a namespace as clients have it.
func listNamespace(path []string) []string {
	if len(path) == 0 {
		return []string{}
	}
	return strings.Split(formatNamespace(path), "|")
}

// lifecycle says what has become of a graph.
type lifecycle struct {
	Event     string   `json:"event"`
	Namespace []string `json:"namespace,omitempty"`
	Graph     string   `json:"graph_name"`
	Trigger   string   `json:"trigger_call_id,omitempty"`
	Error     string   `json:"error,omitempty"`
}

// showRunState shows that the graph runs, or has stopped, with the subgraphs that have not ended.
func (t *eventTranslator) showRunState(event *graphdv1.Event, change *graphdv1.RunStateChanged) {
	state := change.GetState()
	status := agentStatus(state)
	if status == "running" && state != graphdv1.RunState_RUN_STATE_RUNNING {
		return // it waits for its turn, or is told to stop
	}
	if status != "running" {
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(t.begun))) { // the inner ones first
			t.endSubgraph(name, status)
		}
		t.messages.forgetAll()
	}
	t.addAt("lifecycle", "lifecycle", []string{}, "", lifecycle{Event: status, Graph: t.graph, Error: change.GetFailure().GetMessage()})
	if status == "running" && event.GetCursor().GetSequence() <= t.stoppedAt {
		t.list[len(t.list)-1].isWanted = false
	}
}

// beginSubgraph shows that a subgraph and those around it have begun, once.
func (t *eventTranslator) beginSubgraph(path []string) {
	namespace := listNamespace(path)
	for i := range namespace {
		outer := namespace[:i+1]
		name := strings.Join(outer, "|")
		if t.begun[name] != nil {
			continue
		}
		t.begun[name] = outer
		node, task, _ := strings.Cut(outer[i], ":")
		t.addAt("lifecycle", "lifecycle", outer, "", lifecycle{Event: "started", Namespace: outer, Graph: node, Trigger: task})
	}
}

// endSubgraph shows that a subgraph has stopped, if it has begun.
func (t *eventTranslator) endSubgraph(name, status string) {
	namespace := t.begun[name]
	if namespace == nil {
		return
	}
	delete(t.begun, name)
	node, _, _ := strings.Cut(namespace[len(namespace)-1], ":")
	t.addAt("lifecycle", "lifecycle", namespace, "", lifecycle{Event: status, Graph: node})
}

// subgraphOf returns the name of the subgraph that the task of an event may be.
func subgraphOf(event *graphdv1.Event) string {
	return formatNamespace(append(slices.Clone(event.GetNamespace()), event.GetNode()+":"+event.GetTaskId()))
}

// shownUpdate is what a node has written.
type shownUpdate struct {
	Node   string          `json:"node"`
	Values json.RawMessage `json:"values"`
}

func (t *eventTranslator) showUpdate(event *graphdv1.Event, update *graphdv1.NodeUpdate) {
	t.beginSubgraph(event.GetNamespace())
	t.endSubgraph(subgraphOf(event), "completed")
	values := payloadText(update.GetValues())
	t.addEvent("updates", event, shownUpdate{event.GetNode(), values})
	if isAbsent(values) {
		values = json.RawMessage("{}")
	}
	t.addEvent("tasks", event, taskResult{ID: dashID(event.GetTaskId()), Name: event.GetNode(), Result: values, Interrupts: []shownQuestion{}})
	t.finishMessages(event)
}

// requestedInput is a question.
type requestedInput struct {
	ID      string          `json:"interrupt_id"`
	Payload json.RawMessage `json:"payload"`
	Value   json.RawMessage `json:"value"` // the same: the Python SDK reads this
}

func (t *eventTranslator) showInterrupt(event *graphdv1.Event, raised *graphdv1.InterruptRaised) {
	t.beginSubgraph(event.GetNamespace())
	for _, q := range listQuestions(raised.GetInterrupts()) {
		t.addAt("input", "input.requested", listNamespace(event.GetNamespace()), q.GetNode(), requestedInput{q.GetInterruptId(), payloadText(q.GetValue()), payloadText(q.GetValue())})
	}
}

func (t *eventTranslator) showTask(event *graphdv1.Event, task *graphdv1.TaskChange) {
	switch task.GetPhase() { //nolint:exhaustive // the others do not show
	case graphdv1.TaskChange_PHASE_SCHEDULED:
		t.beginSubgraph(event.GetNamespace())
		t.addEvent("tasks", event, taskBegin{
			ID: dashID(event.GetTaskId()), Name: event.GetNode(), Input: payloadText(task.GetValue()), Triggers: nonNil(task.GetTriggers()), Metadata: metadata{},
		})
	case graphdv1.TaskChange_PHASE_FAILED:
		t.endSubgraph(subgraphOf(event), "failed")
		text := failureType(task.GetFailure()) + ": " + task.GetFailure().GetMessage()
		t.addEvent("tasks", event, taskResult{
			ID: dashID(event.GetTaskId()), Name: event.GetNode(), Error: &text, Result: json.RawMessage("{}"), Interrupts: []shownQuestion{},
		})
		t.messages.takeTask(event.GetTaskId())
	case graphdv1.TaskChange_PHASE_RESTARTED:
		t.messages.takeTask(event.GetTaskId())
	}
}

// customData is an event of the making of a node.
type customData struct {
	Name    string          `json:"name,omitempty"`
	Payload json.RawMessage `json:"payload"`
}

func (t *eventTranslator) showCustom(event *graphdv1.Event, custom *graphdv1.CustomEvent) {
	name := custom.GetName()
	if name == taskEvent {
		return
	}
	channel := "custom"
	if name != "" {
		channel = customPrefix + name
	}
	t.addAt(channel, "custom", listNamespace(event.GetNamespace()), event.GetNode(), customData{name, payloadText(custom.GetValue())})
}
