package agentserver

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// setLocation sets the headers that say where a run is found: the run, and what shows its end.
func (c *call) setLocation(thread, run, how string) {
	path := "/threads/" + thread + "/runs/" + run
	c.w.Header().Set("Content-Location", path)
	c.w.Header().Set("Location", path+"/"+how)
}

// createRun answers POST /threads/{id}/runs and POST /runs.
func createRun(c *call) error {
	p, err := c.readPlan()
	if err != nil {
		return err
	}
	if p.doesNothing() {
		return p.showUnkeptRun(c)
	}
	begun, err := p.beginRun(c, 0)
	if p.hasNothingLeft(err) {
		return p.showUnkeptRun(c)
	}
	if err != nil {
		return err
	}
	l := p.settleLeg(begun)
	c.setLocation(p.thread, l.ID, "join")
	return c.writeJSON(http.StatusOK, newRun(begun, l))
}

// showUnkeptRun answers with a run that had nothing to do.
func (p *plan) showUnkeptRun(c *call) error {
	of, err := c.threads.GetThread(c.ctx, &graphdv1.GetThreadRequest{ThreadId: p.thread})
	if err != nil {
		return err
	}
	done := &graphdv1.Run{ThreadId: p.thread, Graph: of.GetGraph(), State: graphdv1.RunState_RUN_STATE_SUCCEEDED, UpdateTime: of.GetUpdateTime()}
	return c.writeJSON(http.StatusOK, newRun(done, newLeg(uuid.NewString(), 0, p.request)))
}

// getRun answers GET /threads/{id}/runs/{run}.
func getRun(c *call) error {
	of, l, err := c.pathLeg()
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, newRun(of, l))
}

// runStatuses lists the statuses of runs.
func runStatuses() []string {
	return []string{statusPending, statusRunning, statusSuccess, statusError, statusTimeout, statusInterrupted}
}

// listRuns answers GET /threads/{id}/runs.
func listRuns(c *call) error {
	thread, err := c.pathID("thread")
	if err != nil {
		return err
	}
	limit, err := c.queryNumber("limit", standardPage, largestPage)
	if err != nil {
		return err
	}
	offset, err := c.queryNumber("offset", 0, largestOffset)
	if err != nil {
		return err
	}
	status := c.r.URL.Query().Get("status")
	if status != "" && !slices.Contains(runStatuses(), status) {
		return invalidField("status", "is %.100q: want pending, running, success, error, timeout or interrupted", status)
	}
	list := []run{}
	passed := 0
	err = c.visitLegs(thread, limit+offset+1, func(of *graphdv1.Run, l *leg) bool {
		if status == "" || status == l.status(of) {
			if passed++; passed > offset && len(list) < limit {
				list = append(list, newRun(of, l))
			}
		}
		return len(list) < limit
	})
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, list)
}

// cancelRun answers POST /threads/{id}/runs/{run}/cancel.
func cancelRun(c *call) error {
	of, l, err := c.pathLeg()
	if err != nil {
		return err
	}
	wait, err := c.queryFlag("wait")
	if err != nil {
		return err
	}
	action, err := c.queryAction()
	if err != nil {
		return err
	}
	if l.next > 0 {
		return newError(http.StatusConflict, "RUN_NOT_CANCELLABLE", "the run has ended: it stopped at questions, and another run has answered them")
	}
	_, err = c.graphs.CancelRun(c.ctx, &graphdv1.CancelRunRequest{ThreadId: of.GetThreadId(), RunId: of.GetRunId(), Action: action, Wait: wait})
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, map[string]any{})
}

// queryAction reads what becomes of the checkpoints of a run that is cancelled.
func (c *call) queryAction() (graphdv1.CancelRunRequest_Action, error) {
	switch given := c.r.URL.Query().Get("action"); given {
	case "", "interrupt":
		return graphdv1.CancelRunRequest_ACTION_KEEP, nil
	case "rollback":
		return graphdv1.CancelRunRequest_ACTION_ROLLBACK, nil
	default:
		return 0, invalidField("action", "is %.100q: want interrupt or rollback", given)
	}
}

// waitPart is how long one call waits for a run. A sign of life is sent between them. quickPart
// is that of the call that begins the run: until then the client does not know where it is.
const (
	waitPart  = 10 * time.Second
	quickPart = time.Second
)
