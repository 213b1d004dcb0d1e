package agentserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// waitForRun answers POST /threads/{id}/runs/wait and POST /runs/wait.
func waitForRun(c *call) error {
	p, err := c.readPlan()
	if err != nil {
		return err
	}
	if p.doesNothing() {
		return c.showValues(p.thread)
	}
	if p.request.OnDisconnect == "cancel" {
		return p.waitAsStream(c)
	}
	return p.waitForEnd(c)
}

// waitForEnd begins the run, and answers with what it stops with.
func (p *plan) waitForEnd(c *call) error {
	begun, err := p.beginRun(c, quickPart)
	if p.hasNothingLeft(err) {
		return c.showValues(p.thread)
	}
	if err != nil {
		return err
	}
	l := p.settleLeg(begun)
	c.setLocation(p.thread, l.ID, "join")
	c.hasEffect = true
	if !isStopped(begun.GetState()) {
		c.showLife() // the client learns where the run is, and joins it when the connection breaks
	}
	return c.showResult(begun, l)
}

// joinRun answers GET /threads/{id}/runs/{run}/join.
func joinRun(c *call) error {
	of, l, err := c.pathLeg()
	if err != nil {
		return err
	}
	cancels, err := c.queryFlag("cancel_on_disconnect")
	if err != nil {
		return err
	}
	c.setLocation(of.GetThreadId(), l.ID, "join")
	defer c.cancelIfLeft(cancels, of)
	return c.showResult(of, l)
}

// waitAsStream waits for a run that ends with the connection of the client.
func (p *plan) waitAsStream(c *call) error {
	source, err := p.beginStream(c, &graphdv1.EventFilter{Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_TASKS}, Depth: new(uint32)})
	if err != nil {
		return err
	}
	var last *graphdv1.Run
	for {
		event, err := source.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if p.hasNothingLeft(err) {
			return c.showValues(p.thread)
		}
		if err != nil {
			if last == nil {
				p.dropThread(c)
			}
			return refuseAssistant(err)
		}
		if opened := event.GetOpened().GetRun(); opened != nil {
			last = opened
		}
		if ended := event.GetEnd().GetRun(); ended != nil {
			last = ended
		}
	}
	l := p.settleLeg(last)
	c.setLocation(p.thread, l.ID, "join")
	return c.showResult(last, l)
}

// showResult waits until a leg of a run stops, and answers with its result.
func (c *call) showResult(of *graphdv1.Run, l *leg) error {
	for l.next == 0 && !isStopped(of.GetState()) {
		next, err := c.graphs.WaitRun(c.ctx, &graphdv1.WaitRunRequest{ThreadId: of.GetThreadId(), RunId: of.GetRunId(), Wait: durationpb.New(waitPart), View: graphdv1.RunView_RUN_VIEW_FULL})
		if err != nil {
			return c.breakOff(err)
		}
		of = next
		if !isStopped(of.GetState()) {
			c.showLife()
		}
	}
	result, err := c.readResult(of)
	if err != nil {
		return c.breakOff(err)
	}
	if l.Temporary {
		_, _ = c.threads.DeleteThread(c.ctx, &graphdv1.DeleteThreadRequest{ThreadId: of.GetThreadId(), Force: true}) // else its ttl ends it
	}
	if err := c.writeText(http.StatusOK, result); err != nil {
		return c.breakOff(err)
	}
	return nil
}

// showLife writes white space before the JSON of an answer, so that proxies keep the connection.
func (c *call) showLife() {
	c.beginAnswer("application/json", http.StatusOK)
	c.extendDeadline()
	_, _ = c.w.Write([]byte("\n")) // a client that has left is found by the next call
	_ = http.NewResponseController(c.w).Flush()
}

// breakOff returns an error, or cuts an answer that has begun: the client asks again at its Location.
// So does one whose request has begun a run: it must not send the request again.
func (c *call) breakOff(err error) error {
	if c.hasEffect {
		c.showLife()
	}
	if c.hasBegun {
		return errBrokenOff
	}
	return err
}

// errBrokenOff ends an answer in the middle: the client sees that it is not whole.
var errBrokenOff = errors.New("the answer ends early")

// cancelTimeout bounds the cancel of a run whose client has left.
const cancelTimeout = 10 * time.Second

// cancelIfLeft cancels a run if the client of this request has left, and wants that.
func (c *call) cancelIfLeft(wanted bool, of *graphdv1.Run) {
	if !wanted || c.r.Context().Err() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), cancelTimeout)
	defer cancel()
	_, _ = c.graphs.CancelRun(ctx, &graphdv1.CancelRunRequest{ThreadId: of.GetThreadId(), RunId: of.GetRunId()}) // it may have ended
}

// readResult returns the JSON that shows how a run has stopped: its values, its questions or its
// failure.
func (c *call) readResult(of *graphdv1.Run) (json.RawMessage, error) {
	if failure := newRunFailure(of.GetState(), of.GetFailure()); failure != nil && of.GetState() != graphdv1.RunState_RUN_STATE_CANCELLED {
		return encodeJSON(map[string]any{"__error__": failure})
	}
	waits := of.GetState() == graphdv1.RunState_RUN_STATE_INTERRUPTED
	if waits && of.GetOutput() == nil {
		var err error
		request := &graphdv1.GetRunRequest{ThreadId: of.GetThreadId(), RunId: of.GetRunId(), View: graphdv1.RunView_RUN_VIEW_FULL}
		if of, err = c.graphs.GetRun(c.ctx, request); err != nil {
			return nil, err
		}
	}
	switch output := of.GetOutput().GetJson(); {
	case output == "":
		return c.readValues(of.GetThreadId())
	case waits:
		return c.addOpenQuestions(of, json.RawMessage(output))
	default:
		return json.RawMessage(output), nil
	}
}

// addOpenQuestions adds the open questions of a run to its output. Several are shown in the order of
// their tasks, which only the state has.
func (c *call) addOpenQuestions(of *graphdv1.Run, output json.RawMessage) (json.RawMessage, error) {
	asked := newQuestions(of.GetInterrupts())
	if len(of.GetOpenInterruptIds()) > 1 || len(of.GetInterrupts()) < len(of.GetOpenInterruptIds()) {
		present, err := c.threads.GetState(c.ctx, &graphdv1.GetStateRequest{ThreadId: of.GetThreadId()})
		if err != nil {
			return nil, err
		}
		asked = newQuestions(present.GetInterrupts())
	}
	return addQuestions(output, asked)
}

// readValues returns the present values of a thread, with its open questions.
func (c *call) readValues(thread string) (json.RawMessage, error) {
	present, err := c.threads.GetState(c.ctx, &graphdv1.GetStateRequest{ThreadId: thread})
	if err != nil {
		return nil, err
	}
	return addQuestions(newState(thread, present).Values, newQuestions(present.GetInterrupts()))
}

func (c *call) showValues(thread string) error {
	values, err := c.readValues(thread)
	if err != nil {
		return err
	}
	return c.writeText(http.StatusOK, values)
}

// addQuestions returns values with questions, if there are any.
func addQuestions(values json.RawMessage, asked []shownQuestion) (json.RawMessage, error) {
	if len(asked) == 0 {
		return values, nil
	}
	list, err := encodeJSON(asked)
	if err != nil {
		return nil, err
	}
	object := bytes.TrimSpace(values)
	if !isObject(object) {
		object = []byte("{}")
	}
	object = bytes.TrimSpace(object[:len(object)-1])
	separator := ","
	if len(object) == 1 {
		separator = ""
	}
	return slices.Concat(object, []byte(separator+`"__interrupt__":`), list, []byte("}")), nil
}
