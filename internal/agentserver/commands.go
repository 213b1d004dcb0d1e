package agentserver

import (
	"encoding/json"
	"fmt"
	"net/http"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// threadCommand is the body of POST /threads/{id}/commands, of protocol v2.
type threadCommand struct {
	ID     *int64          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// commandAnswer is the answer to a command, with the status 200 also for one that is refused.
type commandAnswer struct {
	Type    string       `json:"type"` // success or error
	ID      *int64       `json:"id"`
	Result  any          `json:"result,omitempty"`
	Meta    *commandMeta `json:"meta,omitempty"`
	Error   string       `json:"error,omitempty"`
	Message string       `json:"message,omitempty"`
}

// commandMeta says which events are older than the command.
type commandMeta struct {
	AppliedThrough uint64 `json:"applied_through_seq"`
}

// startedRun is the result of a command that has begun a run, or gone on with one.
type startedRun struct {
	ID string `json:"run_id"`
}

// runCommandOnThread answers POST /threads/{id}/commands.
func runCommandOnThread(c *call) error {
	thread, err := c.pathID("thread")
	if err != nil {
		return err
	}
	var command threadCommand
	if err := c.decodeBody(&command); err != nil {
		return err
	}
	if command.ID == nil || command.Method == "" {
		return c.writeJSON(http.StatusBadRequest, commandAnswer{
			Type: "error", Error: "invalid_argument", Message: "a command needs an id, which is a whole number, and a method",
		})
	}
	result, meta, err := c.runCommand(thread, &command)
	if err == nil {
		return c.writeJSON(http.StatusOK, commandAnswer{Type: "success", ID: command.ID, Result: result, Meta: meta})
	}
	refusal := toAPIError(err)
	code := commandErrorCode(refusal)
	if code == "" {
		return err // of the caller or the server, not of the command
	}
	return c.writeJSON(http.StatusOK, commandAnswer{Type: "error", ID: command.ID, Error: code, Message: refusal.Detail})
}

// commandErrorCode returns what protocol v2 calls a refusal of a command, "" for one that has the
// same HTTP status for every request.
func commandErrorCode(e *apiError) string {
	switch e.Reason {
	case "INTERRUPT_NOT_FOUND", "INTERRUPT_ALREADY_RESOLVED", "ETAG_MISMATCH":
		return "no_such_interrupt"
	case "THREAD_NOT_INTERRUPTED", "THREAD_NOT_FOUND", "RUN_NOT_FOUND":
		return "no_such_run"
	case "UNKNOWN_COMMAND":
		return "unknown_command"
	case "FEATURE_DISABLED":
		return "not_supported"
	}
	switch e.status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return "invalid_argument"
	case http.StatusNotFound, http.StatusConflict:
		return "unknown_error"
	}
	return ""
}

func (c *call) runCommand(thread string, command *threadCommand) (result any, meta *commandMeta, err error) {
	switch command.Method {
	case "run.start":
		return c.startByCommand(thread, command.Params)
	case "input.respond":
		return c.respondByCommand(thread, command.Params)
	case "agent.getTree":
		result, err = c.showTree(thread)
		return result, nil, err
	case "input.inject", "subscription.subscribe", "subscription.unsubscribe", "subscription.reconnect", "state.get", "state.listCheckpoints", "state.fork":
		return nil, nil, newError(http.StatusUnprocessableEntity, "FEATURE_DISABLED", command.Method+" is not served over HTTP: docs/langgraph-api.md says what is")
	}
	return nil, nil, newError(http.StatusUnprocessableEntity, "UNKNOWN_COMMAND",
		fmt.Sprintf("there is no command %.100q: want run.start, input.respond or agent.getTree", command.Method))
}

// startParams are the parameters of run.start.
type startParams struct {
	Assistant string          `json:"assistant_id"`
	Input     json.RawMessage `json:"input"`
	Config    *runConfig      `json:"config"`
	Metadata  metadata        `json:"metadata"`
	Multitask string          `json:"multitaskStrategy"`
	Tracer    json.RawMessage `json:"langsmith_tracer"`
}

// startByCommand starts a run with an input, on a thread that it makes if there is none. Without an
// input the run goes on with what the thread has left to do. An input is no answer: what the thread
// has asked is dropped.
func (c *call) startByCommand(thread string, params json.RawMessage) (any, *commandMeta, error) {
	var given startParams
	if err := decodeParams(params, &given); err != nil {
		return nil, nil, err
	}
	if !isAbsent(given.Tracer) {
		return nil, nil, invalidField("params.langsmith_tracer", "is not served: there is no LangSmith to trace to")
	}
	r := &runRequest{
		Assistant: given.Assistant, Input: given.Input, Config: given.Config, Metadata: given.Metadata, Multitask: given.Multitask,
		StreamMode: textOrList{"values"}, IfNotExists: "create", StreamSubgraphs: true,
	}
	if err := r.validate(); err != nil {
		return nil, nil, err
	}
	p, err := c.newPlan(r, thread)
	if err != nil {
		return nil, nil, err
	}
	of, err := c.findThread(thread)
	if err != nil {
		return nil, nil, err
	}
	before, err := c.findNewestRun(of)
	if err != nil {
		return nil, nil, err
	}
	if err := p.planRun(c, p.assistant.graph); err != nil {
		return nil, nil, refuseAssistant(err)
	}
	return c.beginByCommand(p, before.GetAppliedThrough())
}

// findNewestRun returns the newest run of a thread, nil without one.
func (c *call) findNewestRun(of *graphdv1.Thread) (*graphdv1.Run, error) {
	if of.GetRunId() == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	run, err := c.graphs.GetRun(c.ctx, &graphdv1.GetRunRequest{ThreadId: of.GetThreadId(), RunId: of.GetRunId()})
	if reasonOf(err) == "RUN_NOT_FOUND" {
		return nil, nil //nolint:nilnil // it was dropped meanwhile
	}
	return run, err
}

// beginByCommand begins what is planned. before is the newest event of the thread from before.
func (c *call) beginByCommand(p *plan, before *graphdv1.Cursor) (any, *commandMeta, error) {
	of, err := p.beginRun(c, 0)
	if err != nil {
		return nil, nil, err
	}
	meta := &commandMeta{}
	if before != nil {
		meta.AppliedThrough = sequenceNumber(eventID{sequence: before.GetSequence(), number: mostEventsOfOne})
	}
	return startedRun{p.settleLeg(of).ID}, meta, nil
}

// respondParams are the parameters of input.respond: one answer, or several that count together.
type respondParams struct {
	respondEntry

	Responses []respondEntry  `json:"responses"`
	Update    json.RawMessage `json:"update"`
	Goto      gotoList        `json:"goto"`
	Config    *runConfig      `json:"config"`
	Metadata  metadata        `json:"metadata"`
}

// respondEntry is an answer to a question. Its namespace says no more than the id.
type respondEntry struct {
	Interrupt string          `json:"interrupt_id"`
	Response  json.RawMessage `json:"response"`
}

// listAnswers returns the answers of a command.
func (p *respondParams) listAnswers() ([]respondEntry, error) {
	all := p.Responses
	switch {
	case p.Interrupt != "" && len(all) > 0:
		return nil, invalidField("params.responses", "stands beside interrupt_id: want one of them")
	case p.Interrupt != "":
		all = []respondEntry{p.respondEntry}
	case len(all) == 0:
		return nil, invalidField("params.interrupt_id", "is missing: want the id of an open question, or several in responses")
	}
	for _, one := range all {
		if !isQuestionID(one.Interrupt) {
			return nil, noOpenQuestion(one.Interrupt)
		}
		if len(one.Response) == 0 {
			return nil, invalidField("params.response", "is missing: want the answer")
		}
	}
	return all, nil
}

func noOpenQuestion(id string) error {
	return newError(http.StatusUnprocessableEntity, "INTERRUPT_NOT_FOUND",
		fmt.Sprintf("the thread has no open question %.100q: read its state before answering", id))
}

// respondByCommand answers questions, all or none.
func (c *call) respondByCommand(thread string, params json.RawMessage) (any, *commandMeta, error) {
	var given respondParams
	if err := decodeParams(params, &given); err != nil {
		return nil, nil, err
	}
	answers, err := given.listAnswers()
	if err != nil {
		return nil, nil, err
	}
	waiting, err := c.readWaitingRun(thread)
	if err != nil {
		return nil, nil, err
	}
	if waiting == nil {
		return nil, nil, noOpenQuestion(answers[0].Interrupt)
	}
	r := &runRequest{
		Assistant: waiting.GetGraph(), Config: given.Config, Metadata: given.Metadata, StreamMode: textOrList{"values"}, StreamSubgraphs: true,
		Command: &runCommand{Update: given.Update, Goto: given.Goto},
	}
	if err := r.validate(); err != nil {
		return nil, nil, err
	}
	p := &plan{request: r, thread: thread, assistant: &chosenAssistant{graph: waiting.GetGraph()}}
	if err := p.planResume(waiting); err != nil {
		return nil, nil, err
	}
	etags, err := c.openEtags(waiting)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range answers {
		etag, isOpen := etags[one.Interrupt]
		if !isOpen {
			return nil, nil, noOpenQuestion(one.Interrupt)
		}
		p.resume.Responses = append(p.resume.Responses, newResponse(one.Interrupt, one.Response, etag))
	}
	return c.beginByCommand(p, &graphdv1.Cursor{Sequence: p.leg.After})
}

// decodeParams reads the parameters of a command.
func decodeParams(params json.RawMessage, to any) error {
	if !isObject(params) {
		return invalidField("params", "is no object: want the parameters of the command")
	}
	return (&call{body: params}).decodeBody(to)
}

// agentTree is a graph that runs, and its subgraphs.
type agentTree struct {
	Namespace []string `json:"namespace"`
	Status    string   `json:"status"`
	Graph     string   `json:"graph_name"`
}

// showTree returns the graph of the newest run of a thread.
func (c *call) showTree(thread string) (any, error) {
	of, err := c.threads.GetThread(c.ctx, &graphdv1.GetThreadRequest{ThreadId: thread})
	if err != nil {
		return nil, err
	}
	run, err := c.findNewestRun(of)
	if err != nil {
		return nil, err
	}
	if run == nil {
		return nil, newError(http.StatusNotFound, "RUN_NOT_FOUND", "the thread has no run")
	}
	return map[string]any{"tree": agentTree{[]string{}, agentStatus(run.GetState()), run.GetGraph()}}, nil
}

// agentStatus returns what protocol v2 calls the state of a run.
func agentStatus(state graphdv1.RunState) string {
	switch state { //nolint:exhaustive // the others are not over
	case graphdv1.RunState_RUN_STATE_SUCCEEDED:
		return "completed"
	case graphdv1.RunState_RUN_STATE_FAILED, graphdv1.RunState_RUN_STATE_TIMED_OUT:
		return "failed"
	case graphdv1.RunState_RUN_STATE_INTERRUPTED, graphdv1.RunState_RUN_STATE_CANCELLED, graphdv1.RunState_RUN_STATE_SUPERSEDED:
		return "interrupted"
	}
	return "running"
}
