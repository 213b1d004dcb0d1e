package agentserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// A run of graphd keeps its id over its questions. In this API each answer begins another run. So a run
// of this API is a leg of a run of graphd: from the start or an answer to the next stop. The legs
// stand in labels of the run, one each; their ids are those of the requests that began them.

// legPrefix begins the labels of legs. Their number follows.
const legPrefix = ownPrefix + "run."

// maxLegs is how many legs of a run are kept: a run has at most 64 labels, and some are of clients.
const maxLegs = 40

// leg is what is kept of a leg.
type leg struct {
	next uint64 // last event before the next leg, 0 = it is the last one

	ID        string    `json:"id"`
	Number    int       `json:"number,omitempty"` // of the legs of its run, from 0
	After     uint64    `json:"after,omitempty"`  // last event before it
	Log       string    `json:"log,omitempty"`    // log of that event
	Begun     time.Time `json:"begun"`
	Modes     []string  `json:"modes,omitempty"`
	Subgraphs bool      `json:"subgraphs,omitempty"`
	Resumable bool      `json:"resumable,omitempty"`
	Multitask string    `json:"multitask,omitempty"`
	Metadata  metadata  `json:"metadata,omitempty"`
	Temporary bool      `json:"temporary,omitempty"` // its thread is deleted when it ends
	Assistant string    `json:"assistant,omitempty"` // "" = the default one of its graph
}

// newLeg returns the leg that a request begins.
func newLeg(id string, number int, r *runRequest) *leg {
	return &leg{
		ID: id, Number: number, Begun: time.Now().UTC(), Modes: r.StreamMode, Subgraphs: r.StreamSubgraphs, Resumable: r.StreamResumable, Multitask: r.Multitask,
	}
}

// toLabel returns the label of the leg.
func (l *leg) toLabel() (key, text string, err error) {
	encoded, err := encodeJSON(l)
	if err != nil {
		return "", "", err
	}
	if len(encoded) > maxLabelBytes {
		return "", "", invalidField("metadata", "is too large: a run keeps at most %d bytes of what its request says", maxLabelBytes)
	}
	return legPrefix + strconv.Itoa(l.Number%maxLegs), string(encoded), nil
}

// maxLabelBytes bounds a label.
const maxLabelBytes = 1 << 10

// readLegs returns the legs of a run, in their order. The id of a run that another API has begun is
// that of its first leg.
func readLegs(run *graphdv1.Run) []*leg {
	var legs []*leg
	for key, text := range run.GetMetadata() {
		l := &leg{}
		if strings.HasPrefix(key, legPrefix) && json.Unmarshal([]byte(text), l) == nil {
			if l.ID == "" { // a cron has begun the run, and did not know its id
				l.ID, l.Begun = run.GetRunId(), run.GetCreateTime().AsTime()
			}
			legs = append(legs, l)
		}
	}
	slices.SortFunc(legs, func(a, b *leg) int { return a.Number - b.Number })
	if len(legs) == 0 || legs[0].Number == 1 {
		legs = slices.Insert(legs, 0, &leg{ID: run.GetRunId(), Begun: run.GetCreateTime().AsTime(), Modes: []string{"values"}})
	}
	for i, l := range legs[1:] {
		legs[i].next = l.After
	}
	return legs
}

// run is a run as clients have it.
type run struct {
	ID        string         `json:"run_id"`
	Thread    string         `json:"thread_id"`
	Assistant string         `json:"assistant_id"`
	Created   string         `json:"created_at"`
	Updated   string         `json:"updated_at"`
	Status    string         `json:"status"`
	Metadata  metadata       `json:"metadata"`
	Multitask string         `json:"multitask_strategy"`
	Kwargs    map[string]any `json:"kwargs"`
}

// status returns the status of a leg of a run. One that has another one behind it stopped at
// questions.
func (l *leg) status(of *graphdv1.Run) string {
	if l.next > 0 {
		return statusSuccess
	}
	return runStatus(of.GetState())
}

func newRun(of *graphdv1.Run, l *leg) run {
	shown := run{
		ID: l.ID, Thread: of.GetThreadId(), Assistant: cmp.Or(l.Assistant, defaultAssistant(of.GetGraph())), Created: l.Begun.Format(time.RFC3339Nano),
		Updated: formatTime(of.GetUpdateTime()), Status: l.status(of), Metadata: l.Metadata, Multitask: l.Multitask, Kwargs: map[string]any{},
	}
	if shown.Metadata == nil {
		shown.Metadata = readLabels(of.GetMetadata())
	}
	if shown.Multitask == "" {
		shown.Multitask = "enqueue"
	}
	shown.Metadata.setText("graph_id", of.GetGraph())
	shown.Metadata.setText("assistant_id", shown.Assistant)
	return shown
}

// runsPage is how many runs are read with one call.
const runsPage = 500

// visitLegs calls visit for the legs of a thread, the newest first, until it returns false.
func (c *call) visitLegs(thread string, size int, visit func(*graphdv1.Run, *leg) bool) error {
	deleted, err := findDeletedRuns(c, thread)
	if err != nil {
		return err
	}
	for token := ""; ; {
		page, err := c.graphs.ListRuns(c.ctx, &graphdv1.ListRunsRequest{ThreadId: thread, PageSize: int32(min(size, runsPage)), PageToken: token})
		if err != nil {
			return err
		}
		for _, found := range page.GetRuns() {
			if isRolledBack(found) {
				continue
			}
			for _, l := range slices.Backward(readLegs(found)) {
				if !deleted[l.ID] && !visit(found, l) {
					return nil
				}
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			return nil
		}
	}
}

// isRolledBack reports whether nothing of a run is left: this API does not show it then.
func isRolledBack(of *graphdv1.Run) bool { return of.GetFailure().GetDetails()["rolledBack"] == "true" }

// findLeg returns a run of this API: the run of graphd, and its leg.
func (c *call) findLeg(thread, id string) (*graphdv1.Run, *leg, error) {
	if deleted, err := findDeletedRuns(c, thread); err != nil || deleted[id] {
		return nil, nil, cmp.Or(err, newRunNotFound(thread, id))
	}
	direct, err := c.graphs.GetRun(c.ctx, &graphdv1.GetRunRequest{ThreadId: thread, RunId: id})
	if err == nil && !isRolledBack(direct) {
		if l := chooseLeg(readLegs(direct), id); l != nil {
			return direct, l, nil
		}
	} else if err != nil && reasonOf(err) != "RUN_NOT_FOUND" {
		return nil, nil, err
	}
	var of *graphdv1.Run
	var found *leg
	err = c.visitLegs(thread, runsPage, func(r *graphdv1.Run, l *leg) bool {
		if l.ID == id {
			of, found = r, l
		}
		return found == nil
	})
	if err == nil && found == nil {
		err = newRunNotFound(thread, id)
	}
	return of, found, err
}

func newRunNotFound(thread, id string) error {
	return newError(http.StatusNotFound, "RUN_NOT_FOUND", fmt.Sprintf("the thread %s has no run %s", thread, id))
}

// chooseLeg returns the leg with an id, nil for none.
func chooseLeg(legs []*leg, id string) *leg {
	for _, l := range legs {
		if l.ID == id {
			return l
		}
	}
	return nil
}

// pathLeg returns the run that the path of the request names.
func (c *call) pathLeg() (*graphdv1.Run, *leg, error) {
	thread, err := c.pathID("thread")
	if err != nil {
		return nil, nil, err
	}
	id, err := c.pathID("run")
	if err != nil {
		return nil, nil, err
	}
	return c.findLeg(thread, id)
}
