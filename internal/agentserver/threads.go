package agentserver

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// threadWriting makes or changes a thread.
type threadWriting struct {
	ID         string          `json:"thread_id"`
	Metadata   metadata        `json:"metadata"`
	IfExists   string          `json:"if_exists"`
	TTL        *threadTTL      `json:"ttl"`
	Supersteps json.RawMessage `json:"supersteps"`
}

// threadTTL is how long a thread is kept after its last change, in minutes.
type threadTTL struct {
	Minutes  float64 `json:"ttl"`
	Strategy string  `json:"strategy"`
}

// UnmarshalJSON reads a number, or an object with it.
func (t *threadTTL) UnmarshalJSON(text []byte) error {
	if !isObject(text) {
		return json.Unmarshal(text, &t.Minutes)
	}
	type plain threadTTL
	return json.Unmarshal(text, (*plain)(t))
}

// longestTTL is the longest that a thread may be kept, in minutes.
const longestTTL = 60 * 24 * 366 * 100

// duration returns the time that the thread is kept.
func (t *threadTTL) duration() (*durationpb.Duration, error) {
	switch {
	case t.Strategy != "" && t.Strategy != "delete":
		return nil, invalidField("ttl.strategy", "is %.100q: want delete", t.Strategy)
	case math.IsNaN(t.Minutes) || t.Minutes <= 0 || t.Minutes > longestTTL:
		return nil, invalidField("ttl", "is %v: want a number of minutes, more than 0 and at most %d", t.Minutes, longestTTL)
	}
	return durationpb.New(time.Duration(t.Minutes * float64(time.Minute))), nil
}

// toThread returns the fields of the thread that are to be set.
func (w *threadWriting) toThread() (*graphdv1.Thread, error) {
	labels, err := w.Metadata.toLabels()
	if err != nil {
		return nil, err
	}
	t := &graphdv1.Thread{Metadata: labels, Graph: w.Metadata.readText("graph_id")}
	if w.TTL != nil {
		kept, err := w.TTL.duration()
		if err != nil {
			return nil, err
		}
		t.Expiration = &graphdv1.Thread_Ttl{Ttl: kept}
	}
	return t, nil
}

// createThread answers POST /threads.
func createThread(c *call) error {
	var given threadWriting
	if err := c.decodeBody(&given); err != nil {
		return err
	}
	switch {
	case !isAbsent(given.Supersteps):
		return invalidField("supersteps", "is not served: make the thread, and write its states with POST /threads/{thread_id}/state")
	case given.IfExists != "" && given.IfExists != "raise" && given.IfExists != "do_nothing":
		return invalidField("if_exists", "is %.100q: want raise or do_nothing", given.IfExists)
	}
	id := uuid.NewString()
	var err error
	if given.ID != "" {
		if id, err = parseID("thread_id", given.ID); err != nil {
			return err
		}
	}
	wanted, err := given.toThread()
	if err != nil {
		return err
	}
	made, err := c.threads.CreateThread(c.ctx, &graphdv1.CreateThreadRequest{ThreadId: id, Thread: wanted})
	if reasonOf(err) == "THREAD_EXISTS" && given.IfExists == "do_nothing" {
		return c.showThread(id)
	}
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, newThread(made))
}

// readThread returns a thread with its values and open questions.
func (c *call) readThread(id string) (*graphdv1.Thread, error) {
	return c.threads.GetThread(c.ctx, &graphdv1.GetThreadRequest{ThreadId: id, View: graphdv1.ThreadView_THREAD_VIEW_FULL})
}

// showThread answers with a thread.
func (c *call) showThread(id string) error {
	found, err := c.readThread(id)
	if err != nil {
		return err
	}
	shown := newThread(found)
	if found.GetState() == graphdv1.ThreadState_THREAD_STATE_FAILED {
		run, err := c.graphs.GetRun(c.ctx, &graphdv1.GetRunRequest{ThreadId: id, RunId: found.GetRunId()})
		if err != nil {
			return err
		}
		shown.Error = newRunFailure(run.GetState(), run.GetFailure())
	}
	return c.writeJSON(http.StatusOK, shown)
}

// getThread answers GET /threads/{id}.
func getThread(c *call) error {
	id, err := c.pathID("thread")
	if err != nil {
		return err
	}
	return c.showThread(id)
}

// updateThread answers PATCH /threads/{id}: the given keys of metadata are set, and others stay.
func updateThread(c *call) error {
	var given threadWriting
	id, err := c.pathID("thread")
	if err == nil {
		err = c.decodeBody(&given)
	}
	if err != nil {
		return err
	}
	present, err := c.threads.GetThread(c.ctx, &graphdv1.GetThreadRequest{ThreadId: id})
	if err != nil {
		return err
	}
	merged := readLabels(present.GetMetadata())
	maps.Copy(merged, given.Metadata)
	given.Metadata = merged
	wanted, err := given.toThread()
	if err != nil {
		return err
	}
	keepOwnLabels(wanted.Metadata, present.GetMetadata())
	fields := []string{"metadata"}
	if wanted.GetExpiration() != nil {
		fields = append(fields, "ttl")
	}
	wanted.ThreadId, wanted.Etag, wanted.Graph = id, present.GetEtag(), ""
	if _, err = c.threads.UpdateThread(c.ctx, &graphdv1.UpdateThreadRequest{Thread: wanted, UpdateMask: &fieldmaskpb.FieldMask{Paths: fields}}); err != nil {
		return err
	}
	return c.showThread(id)
}

// deleteThread answers DELETE /threads/{id}. A run that is active is stopped.
func deleteThread(c *call) error {
	id, err := c.pathID("thread")
	if err != nil {
		return err
	}
	if _, err := c.threads.DeleteThread(c.ctx, &graphdv1.DeleteThreadRequest{ThreadId: id, Force: true}); err != nil {
		return err
	}
	return c.writeNothing()
}

// copyThread answers POST /threads/{id}/copy.
func copyThread(c *call) error {
	id, err := c.pathID("thread")
	if err != nil {
		return err
	}
	made, err := c.threads.CopyThread(c.ctx, &graphdv1.CopyThreadRequest{SourceThreadId: id, ThreadId: uuid.NewString()})
	if err != nil {
		return err
	}
	return c.showThread(made.GetThreadId())
}
