package agentserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// plan is what graphd has to do for a run request: start a run, go on with one, or nothing.
type plan struct {
	request     *runRequest
	assistant   *chosenAssistant
	thread      string
	leg         *leg
	start       *graphdv1.RunSpec    // nil = no run is started
	resume      *graphdv1.ResumeSpec // nil = no run goes on
	isTemporary bool                 // the thread is deleted when the run ends
	denied      error                // why the run may drop no questions, nil = it was not asked, or it may
}

// webhookTTL is how long the thread of a stateless run with a webhook is kept after its last change:
// as long as the webhook is tried, and some more.
const webhookTTL = 4 * time.Hour

// temporaryTTL is how long the thread of a stateless run is kept when no request sees its end.
const temporaryTTL = 5 * time.Minute

// readPlan reads the run request in the body, and decides what to do for it.
func (c *call) readPlan() (*plan, error) {
	r, err := c.readRunRequest()
	if err != nil {
		return nil, err
	}
	p, err := c.newPlan(r, c.r.PathValue("thread"))
	if err != nil {
		return nil, err
	}
	if p.thread == "" {
		err = p.planStateless(c, p.assistant.graph)
		return p, err
	}
	if p.thread, err = c.pathID("thread"); err != nil {
		return nil, err
	}
	return p, refuseAssistant(p.planRun(c, p.assistant.graph))
}

// newPlan finds the assistant of a request, and completes the request by what it is configured with.
func (c *call) newPlan(r *runRequest, thread string) (*plan, error) {
	if err := c.checkWebhook(r); err != nil {
		return nil, err
	}
	of, err := c.findAssistant(r.Assistant)
	if err != nil {
		return nil, refuseAssistant(err)
	}
	p := &plan{request: r, thread: thread, assistant: of}
	if r.Command.isResume() && isAbsent(r.Context) && r.Config == nil {
		return p, nil // the run goes on as it was configured
	}
	return p, r.applyAssistant(of)
}

// refuseAssistant makes an unknown graph a wrong field of the request.
func refuseAssistant(err error) error {
	if reason := reasonOf(err); reason == "GRAPH_NOT_FOUND" || reason == "ASSISTANT_NOT_FOUND" {
		shown := *toAPIError(err)
		shown.status = http.StatusUnprocessableEntity
		return shown.ofField("assistant_id")
	}
	return err
}

// planStateless makes a thread for the run.
func (p *plan) planStateless(c *call, graph string) error {
	p.thread = uuid.NewString()
	wanted := &graphdv1.Thread{Graph: graph}
	if p.request.OnCompletion != "keep" {
		p.isTemporary = true
		wanted.Expiration = &graphdv1.Thread_Ttl{Ttl: durationpb.New(temporaryTTL + p.request.delay().AsDuration())}
	}
	if p.isTemporary && p.request.Webhook != "" { // the thread has to be there when the webhook is called
		p.isTemporary = false
		wanted.Expiration = &graphdv1.Thread_Ttl{Ttl: durationpb.New(webhookTTL + p.request.delay().AsDuration())}
	}
	if p.request.Command.isResume() {
		return invalidField("command.resume", "is an answer without a thread: POST it to /threads/{thread_id}/runs")
	}
	if err := p.planStart(graph); err != nil {
		return err
	}
	p.start.OpenInterrupts = graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_UNSPECIFIED // a new thread has no questions
	_, err := c.threads.CreateThread(c.ctx, &graphdv1.CreateThreadRequest{ThreadId: p.thread, Thread: wanted})
	return refuseAssistant(err)
}

// dropThread deletes the thread that was made for a run that has not begun.
func (p *plan) dropThread(c *call) {
	if c.r.PathValue("thread") == "" {
		_, _ = c.threads.DeleteThread(c.ctx, &graphdv1.DeleteThreadRequest{ThreadId: p.thread, Force: true}) // the client learns why the run has not begun
	}
}

// planRun decides what to do on a thread.
func (p *plan) planRun(c *call, graph string) error {
	r := p.request
	switch {
	case r.Command.isResume():
		return p.planAnswer(c, graph)
	case r.Command.endsThread():
		return p.endThread(c)
	case r.Command != nil, !isAbsent(r.Input), r.checkpointRef() != nil:
		return p.planStart(graph)
	}
	return p.planGoOn(c, graph)
}

// planStart starts a run.
func (p *plan) planStart(graph string) error {
	r := p.request
	id := uuid.NewString()
	p.leg = newLeg(id, 0, r)
	p.leg.Temporary, p.leg.Assistant = p.isTemporary, p.assistant.id()
	labels, err := r.allMetadata().toLabels()
	if err != nil {
		return err
	}
	key, text, err := p.leg.toLabel()
	if err != nil {
		return err
	}
	labels[key] = text
	p.start = &graphdv1.RunSpec{
		ThreadId: p.thread, RunId: id, Graph: graph, CreateThread: r.IfNotExists == "create", Context: r.runContext(), Metadata: labels,
		InterruptBefore: r.InterruptBefore, InterruptAfter: r.InterruptAfter, StepLimit: r.stepLimit(), Concurrency: r.concurrency(),
		BeginAfter: r.delay(), Webhook: r.Webhook,
	}
	if id := p.assistant.id(); id != "" {
		p.start.ThreadMetadata = map[string]string{assistantLabel: id}
	}
	at := r.checkpointRef()
	switch {
	case r.Command != nil:
		p.start.Update, p.start.GotoTargets = givenUpdate(r.Command), leadingOn(r.Command.Goto)
		p.start.OpenInterrupts = graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_DISCARD
	case !isAbsent(r.Input):
		p.start.Start = &graphdv1.RunSpec_Input{Input: newPayload(r.Input)}
		p.start.InputAt = at
		p.start.OpenInterrupts = graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_DISCARD
	case at != nil:
		p.start.Start = &graphdv1.RunSpec_ReplayFrom{ReplayFrom: at}
		p.start.OpenInterrupts = graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_DISCARD
	}
	return nil
}

func givenUpdate(command *runCommand) *graphdv1.Payload {
	if isAbsent(command.Update) {
		return nil
	}
	return newPayload(command.Update)
}

// leadingOn returns the targets that are nodes.
func leadingOn(targets gotoList) gotoList {
	return slices.DeleteFunc(slices.Clone(targets), func(g *graphdv1.Goto) bool { return g.GetNode() == endNode })
}

// planAnswer answers questions. Only open ones take an answer, and only one answer each.
func (p *plan) planAnswer(c *call, graph string) error {
	waiting, err := c.readWaitingRun(p.thread)
	if err != nil {
		return err
	}
	if err := checkGraph(waiting.GetGraph(), graph); err != nil {
		return err
	}
	if err := p.planResume(waiting); err != nil {
		return err
	}
	etags, err := c.openEtags(waiting)
	if err != nil {
		return err
	}
	given := p.request.Command.Resume
	byID := map[string]json.RawMessage{}
	if isObject(given) && json.Unmarshal(given, &byID) == nil && areQuestionIDs(byID) {
		for id, value := range byID {
			p.resume.Responses = append(p.resume.Responses, newResponse(id, value, etagOf(etags, id)))
		}
		return nil
	}
	p.resume.Single, err = newSingleResponse(given, etags)
	return err
}

// readWaitingRun returns the newest run of a thread with its open questions, nil when it has none.
func (c *call) readWaitingRun(thread string) (*graphdv1.Run, error) {
	newest, err := c.graphs.GetRun(c.ctx, &graphdv1.GetRunRequest{ThreadId: thread, View: graphdv1.RunView_RUN_VIEW_INTERRUPTS})
	if reasonOf(err) == "RUN_NOT_FOUND" {
		return nil, nil //nolint:nilnil // the thread has no run that could wait
	}
	return newest, err
}

// openEtags returns the etags of the questions of a run that are open, by their ids. It reads
// them with the thread when not all of them are known.
func (c *call) openEtags(of *graphdv1.Run) (map[string]string, error) {
	open := of.GetInterrupts()
	if len(open) < len(of.GetOpenInterruptIds()) || len(open) >= mostInRun {
		found, err := c.readThread(of.GetThreadId())
		if err != nil {
			return nil, err
		}
		open = found.GetInterrupts()
	}
	etags := map[string]string{}
	for _, q := range listQuestions(open) {
		etags[q.GetInterruptId()] = q.GetEtag()
	}
	return etags, nil
}

// newSingleResponse returns an answer that names no question. It fits only the one question that was
// open before: its caller has not seen a question that opens meanwhile.
func newSingleResponse(given json.RawMessage, etags map[string]string) (*graphdv1.InterruptResponse, error) {
	switch len(etags) {
	case 0:
		return nil, newError(http.StatusConflict, "THREAD_NOT_INTERRUPTED", "the thread has no open question: read its state before answering").ofField("command.resume")
	case 1:
		return newResponse("", given, slices.Collect(maps.Values(etags))[0]), nil
	}
	return newResponse("", given, closedQuestion), nil // graphd refuses it and says which questions are open
}

// mostInRun is how many interrupts graphd returns with a run at most.
const mostInRun = 500

// checkGraph refuses an assistant of another graph than that of the thread.
func checkGraph(ofThread, graph string) error {
	if ofThread == "" || ofThread == graph {
		return nil
	}
	return invalidField("assistant_id", "is of the graph %.100q, and the thread is of %.100q: a thread stays with its graph", graph, ofThread)
}

// closedQuestion is an etag that no question has: an answer to a question that was not open before is
// refused if the question has opened meanwhile. One that was answered before refuses another answer;
// the same answer counts as given.
const closedQuestion = "9223372036854775807" // an etag is the number of a change

func etagOf(etags map[string]string, id string) string {
	if etag, isOpen := etags[id]; isOpen {
		return etag
	}
	return closedQuestion
}

func areQuestionIDs(answers map[string]json.RawMessage) bool {
	for key := range answers {
		if !isQuestionID(key) {
			return false
		}
	}
	return len(answers) > 0
}

func newResponse(id string, value json.RawMessage, etag string) *graphdv1.InterruptResponse {
	return &graphdv1.InterruptResponse{InterruptId: id, Outcome: &graphdv1.InterruptResponse_Value{Value: newPayload(value)}, Etag: etag}
}

// planResume goes on with the run that a thread waits for, nil for none.
func (p *plan) planResume(waiting *graphdv1.Run) error {
	r := p.request
	p.resume = &graphdv1.ResumeSpec{ThreadId: p.thread, Settings: r.newSettings(), Metadata: map[string]string{}, Webhook: r.Webhook}
	if r.Command != nil {
		p.resume.Update, p.resume.GotoTargets = givenUpdate(r.Command), leadingOn(r.Command.Goto)
	}
	if at := r.checkpointRef(); at != nil {
		p.resume.ExpectedCheckpointId = at.GetCheckpointId()
	}
	p.leg = newLeg(uuid.NewString(), 0, r)
	if waiting == nil {
		return nil // graphd refuses the answer
	}
	legs := readLegs(waiting)
	before := legs[len(legs)-1]
	p.leg.Number, p.leg.Assistant = before.Number+1, cmp.Or(p.assistant.id(), before.Assistant)
	p.leg.After, p.leg.Log = waiting.GetAppliedThrough().GetSequence(), waiting.GetAppliedThrough().GetLogId()
	if given := r.allMetadata(); len(given) > 0 {
		p.leg.Metadata = given
	}
	key, text, err := p.leg.toLabel()
	p.resume.Metadata[key] = text
	return err
}

// newSettings returns what the run goes by from here on, nil = as before.
func (r *runRequest) newSettings() *graphdv1.RunSettings {
	s := &graphdv1.RunSettings{Context: r.runContext(), InterruptBefore: r.InterruptBefore, InterruptAfter: r.InterruptAfter, StepLimit: r.stepLimit()}
	if s.Context == nil && len(s.InterruptBefore) == 0 && len(s.InterruptAfter) == 0 && s.StepLimit == 0 {
		return nil
	}
	return s
}

// planGoOn goes on with what a thread has left to do. One that waits for a person does nothing.
func (p *plan) planGoOn(c *call, graph string) error {
	found, err := c.readThread(p.thread)
	switch {
	case reasonOf(err) == "THREAD_NOT_FOUND" && p.request.IfNotExists == "create":
		return p.planStart(graph)
	case err != nil:
		return err
	}
	if err := checkGraph(found.GetGraph(), graph); err != nil {
		return err
	}
	switch {
	case found.GetState() != graphdv1.ThreadState_THREAD_STATE_INTERRUPTED:
		return p.planStart(graph)
	case len(listQuestions(found.GetInterrupts())) > 0:
		return nil
	}
	if p.request.delay() != nil {
		return invalidField("after_seconds", "is for a run with an input: the thread waits at a breakpoint, and goes on when it is told to")
	}
	waiting, err := c.graphs.GetRun(c.ctx, &graphdv1.GetRunRequest{ThreadId: p.thread, RunId: found.GetRunId()})
	if err != nil {
		return err
	}
	if err := p.planResume(waiting); err != nil {
		return err
	}
	if p.resume.GetSettings() == nil { // the breakpoints of the run before end with it
		p.resume.Settings = &graphdv1.RunSettings{}
	}
	return nil
}

// endThread drops what a thread has left to do.
func (p *plan) endThread(c *call) error {
	_, err := c.threads.UpdateState(c.ctx, &graphdv1.UpdateStateRequest{ThreadId: p.thread, AsNode: endNode, SupersedeInterrupts: true})
	return err
}

// doesNothing reports whether no run begins or goes on.
func (p *plan) doesNothing() bool { return p.start == nil && p.resume == nil }

// hasNothingLeft reports whether an error says that a thread has nothing left to do. Its present
// values are the answer then.
func (p *plan) hasNothingLeft(err error) bool {
	return p.start != nil && p.start.GetStart() == nil && p.request.Command == nil && reasonOf(err) == "NOTHING_TO_DO"
}

// beginRun starts the run or goes on with it, and waits for its next stop as long as told.
func (p *plan) beginRun(c *call, wait time.Duration) (*graphdv1.Run, error) {
	if p.start != nil {
		begun, err := p.startRun(c, wait)
		if err != nil && !p.hasNothingLeft(err) {
			p.dropThread(c)
		}
		return begun, refuseAssistant(err)
	}
	return c.graphs.ResumeRun(c.ctx, &graphdv1.ResumeRunRequest{Resume: p.resume, RequestId: p.leg.ID, Wait: durationpb.New(wait), View: graphdv1.RunView_RUN_VIEW_FULL})
}

// startRun starts the run, without dropping questions where the caller may not.
func (p *plan) startRun(c *call, wait time.Duration) (*graphdv1.Run, error) {
	request := &graphdv1.StartRunRequest{Run: p.start, RequestId: p.leg.ID, Wait: durationpb.New(wait), View: graphdv1.RunView_RUN_VIEW_FULL}
	begun, err := c.graphs.StartRun(c.ctx, request)
	if p.keepsQuestions(err) {
		begun, err = c.graphs.StartRun(c.ctx, request)
	}
	return begun, p.explainQuestions(err)
}

// keepsQuestions reports whether the run is to be started again without dropping questions: the
// caller may not, and the thread may have none.
func (p *plan) keepsQuestions(err error) bool {
	if p.start == nil || p.denied != nil || ruleOf(err) != "right: discard-questions" {
		return false
	}
	p.denied = err
	p.start.OpenInterrupts = graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_UNSPECIFIED
	return true
}

// explainQuestions returns the error of a run that can't begin without dropping questions: that the
// caller may not drop them.
func (p *plan) explainQuestions(err error) error {
	if p.denied != nil && reasonOf(err) == "THREAD_INTERRUPTED" {
		return p.denied
	}
	return err
}

// checkWebhook refuses a webhook that would not be called, before anything begins.
func (c *call) checkWebhook(r *runRequest) error {
	if r.Webhook == "" {
		return nil
	}
	if err := c.server.opts.CheckWebhook(r.Webhook); err != nil {
		return invalidField("webhook", "is refused: %s", err)
	}
	return nil
}

// settleLeg finds the leg that a request has begun. An answer to a run that another answer has set
// going belongs to the leg of that one.
func (p *plan) settleLeg(of *graphdv1.Run) *leg {
	legs := readLegs(of)
	if own := chooseLeg(legs, p.leg.ID); own != nil {
		return own
	}
	return legs[len(legs)-1]
}
