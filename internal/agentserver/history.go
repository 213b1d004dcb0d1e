package agentserver

import (
	"cmp"
	"encoding/json"
	"net/http"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// historyQuery asks for checkpoints.
type historyQuery struct {
	Limit      *int              `json:"limit"`
	Before     *historyPosition  `json:"before"`
	Metadata   metadata          `json:"metadata"`
	Checkpoint *checkpointChoice `json:"checkpoint"`
}

// historyPosition is the checkpoint before which the list begins.
type historyPosition struct{ id string }

// UnmarshalJSON reads the id of a checkpoint, a checkpoint, or a config with one.
func (p *historyPosition) UnmarshalJSON(text []byte) error {
	if !isObject(text) {
		return json.Unmarshal(text, &p.id)
	}
	var given struct {
		checkpointChoice

		Configurable checkpointChoice `json:"configurable"`
	}
	err := json.Unmarshal(text, &given)
	if p.id = given.ID; p.id == "" {
		p.id = given.Configurable.ID
	}
	return err
}

// listHistory answers GET and POST /threads/{id}/history.
func listHistory(c *call) error {
	id, err := c.pathID("thread")
	if err != nil {
		return err
	}
	asked, err := c.readHistoryQuery()
	if err != nil {
		return err
	}
	limit, err := pageSize(asked.Limit)
	if err != nil {
		return err
	}
	list := []*state{}
	isPast := asked.Before == nil
	show := newState // of the newest checkpoint: who answers sees what is open
	var tooLarge error
	err = c.visitCheckpoints(id, asked, limit, func(s *graphdv1.StateSnapshot) bool {
		if isPast && matchesMetadata(id, s, asked.Metadata) {
			tooLarge = c.holdGathered(proto.Size(s))
			list = append(list, show(id, s))
		}
		show = newPastState
		isPast = isPast || s.GetCheckpoint().GetCheckpointId() == asked.Before.id
		return tooLarge == nil && len(list) < limit
	})
	if err := cmp.Or(err, tooLarge); err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, list)
}

// readHistoryQuery reads the query of a GET or the body of a POST.
func (c *call) readHistoryQuery() (*historyQuery, error) {
	asked := &historyQuery{}
	if c.r.Method != http.MethodGet {
		return asked, c.decodeBody(asked)
	}
	limit, err := c.queryNumber("limit", standardPage, largestPage)
	asked.Limit = &limit
	if before := c.r.URL.Query().Get("before"); before != "" {
		asked.Before = &historyPosition{before}
	}
	return asked, err
}

// visitCheckpoints calls visit for the checkpoints of a thread, the newest first, until it returns
// false.
func (c *call) visitCheckpoints(thread string, asked *historyQuery, limit int, visit func(*graphdv1.StateSnapshot) bool) error {
	request := &graphdv1.ListCheckpointsRequest{ThreadId: thread, PageSize: int32(min(limit, searchedPage)), IncludeValues: true}
	if asked.Checkpoint != nil {
		request.Namespace = parseNamespace(asked.Checkpoint.Namespace)
	}
	for {
		page, err := c.threads.ListCheckpoints(c.ctx, request)
		if err != nil {
			return err
		}
		for _, s := range page.GetCheckpoints() {
			if !visit(s) {
				return nil
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return nil
		}
	}
}

// matchesMetadata reports whether a checkpoint has this metadata.
func matchesMetadata(thread string, s *graphdv1.StateSnapshot, want metadata) bool {
	if len(want) == 0 {
		return true
	}
	has := newStateMetadata(thread, s)
	for key, value := range want {
		if !containsJSON(has[key], value) {
			return false
		}
	}
	return true
}
