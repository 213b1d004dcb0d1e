package agentserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// largestBatch is how many runs or threads one request may name.
const largestBatch = 100

// createRuns answers POST /runs/batch: runs without threads, each as of POST /runs. A run that can't
// begin ends the batch, and those before it go on.
func createRuns(c *call) error {
	var given []json.RawMessage
	if err := c.decodeBody(&given); err != nil {
		return err
	}
	if len(given) > largestBatch {
		return newError(http.StatusUnprocessableEntity, "INVALID_FIELD", "the body has too many runs: want at most 100")
	}
	list := []run{}
	for _, one := range given {
		c.body = one
		p, err := c.readPlan()
		if err != nil {
			return err
		}
		begun, err := p.beginRun(c, 0)
		if err != nil {
			return err
		}
		list = append(list, newRun(begun, p.settleLeg(begun)))
	}
	return c.writeJSON(http.StatusOK, list)
}

// runChoice names runs of a thread: by their ids, or by what they do.
type runChoice struct {
	Thread string   `json:"thread_id"`
	Runs   []string `json:"run_ids"`
	Status string   `json:"status"`
}

// cancelRuns answers POST /runs/cancel. Without a thread there is nothing to find runs by.
func cancelRuns(c *call) error {
	var given runChoice
	if err := c.decodeBody(&given); err != nil {
		return err
	}
	action, err := c.queryAction()
	if err != nil {
		return err
	}
	thread, err := parseID("thread_id", given.Thread)
	if err != nil {
		return err
	}
	switch {
	case len(given.Runs) > largestBatch:
		return invalidField("run_ids", "has %d ids: want at most %d", len(given.Runs), largestBatch)
	case given.Status != "" && given.Status != statusPending && given.Status != statusRunning && given.Status != "all":
		return invalidField("status", "is %.100q: want pending, running or all", given.Status)
	}
	for i, id := range given.Runs {
		if given.Runs[i], err = parseID("run_ids", id); err != nil {
			return err
		}
	}
	var chosen []*graphdv1.Run
	unknown := given.Runs
	if err := c.visitLegs(thread, runsPage, func(of *graphdv1.Run, l *leg) bool {
		isNamed := len(given.Runs) == 0 || slices.Contains(given.Runs, l.ID)
		unknown = slices.DeleteFunc(slices.Clone(unknown), func(id string) bool { return id == l.ID })
		status := l.status(of)
		isActive := status == statusPending || status == statusRunning
		if isNamed && isActive && (given.Status == "" || given.Status == "all" || given.Status == status) {
			chosen = append(chosen, of)
		}
		return true
	}); err != nil {
		return err
	}
	if len(unknown) > 0 {
		return newError(http.StatusNotFound, "RUN_NOT_FOUND", fmt.Sprintf("the thread %s has no run %s: no run was cancelled", thread, unknown[0])).ofField("run_ids")
	}
	for _, of := range chosen { // the newest first: none begins because another one ends
		if err := cancelActive(c, of, action); err != nil {
			return err
		}
	}
	return c.writeNothing()
}

// cancelActive cancels a run, unless it has ended by itself meanwhile.
func cancelActive(c *call, of *graphdv1.Run, action graphdv1.CancelRunRequest_Action) error {
	_, err := c.graphs.CancelRun(c.ctx, &graphdv1.CancelRunRequest{ThreadId: of.GetThreadId(), RunId: of.GetRunId(), Action: action})
	if err == nil {
		return nil
	}
	now, readErr := c.graphs.GetRun(c.ctx, &graphdv1.GetRunRequest{ThreadId: of.GetThreadId(), RunId: of.GetRunId()})
	if readErr == nil && isStopped(now.GetState()) {
		return nil
	}
	return err
}

// threadPruning asks for threads to be deleted, or for their histories to end.
type threadPruning struct {
	Threads  []string `json:"thread_ids"`
	Strategy string   `json:"strategy"`
}

// pruneThreads answers POST /threads/prune.
func pruneThreads(c *call) error {
	var given threadPruning
	if err := c.decodeBody(&given); err != nil {
		return err
	}
	switch {
	case len(given.Threads) > largestBatch:
		return invalidField("thread_ids", "has %d ids: want at most %d", len(given.Threads), largestBatch)
	case given.Strategy != "" && given.Strategy != "delete" && given.Strategy != "keep_latest":
		return invalidField("strategy", "is %.100q: want delete or keep_latest", given.Strategy)
	}
	for i, id := range given.Threads {
		var err error
		if given.Threads[i], err = parseID("thread_ids", id); err != nil {
			return err
		}
	}
	pruned := 0
	for _, id := range given.Threads {
		err := c.pruneThread(id, given.Strategy)
		switch {
		case err == nil:
			pruned++
		case reasonOf(err) != "THREAD_NOT_FOUND":
			return err
		}
	}
	return c.writeJSON(http.StatusOK, map[string]int{"pruned_count": pruned})
}

func (c *call) pruneThread(id, strategy string) (err error) {
	if strategy == "keep_latest" {
		_, err = c.threads.PruneThread(c.ctx, &graphdv1.PruneThreadRequest{ThreadId: id, KeepCheckpoints: 1})
		return err
	}
	_, err = c.threads.DeleteThread(c.ctx, &graphdv1.DeleteThreadRequest{ThreadId: id, Force: true})
	return err
}
