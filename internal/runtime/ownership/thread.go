package ownership

import (
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
)

// heldThread is the thread of a session, for its parts.
type heldThread struct {
	id       string
	opts     *Options
	log      *zap.Logger // has the thread in its fields and, when that is driven, the run
	topic    *feed.Topic
	released chan struct{} // closed when the thread is released
}

// publishChange shows a stored change to followers.
func (h *heldThread) publishChange(t *commit.Tx) {
	h.topic.SetStoppedRun(&t.Change, t.LiveOutput)
	h.topic.PublishEvents(t.LiveEvents)
}

// topicFollowers are those who follow a topic.
type topicFollowers struct {
	feed  *feed.Feed
	topic *feed.Topic
}

// PublishEphemeral sends an event that is not stored.
func (f *topicFollowers) PublishEphemeral(e checkpoint.Event) { f.feed.PublishEphemeral(f.topic, e) }

// WantsValues reports whether a follower wants states.
func (f *topicFollowers) WantsValues() bool { return f.topic.WantsValues() }

// WantsOutput reports whether a follower wants the output of a run that stops.
func (f *topicFollowers) WantsOutput() bool { return f.topic.WantsOutput() }

// WantsInputs reports whether a follower wants the inputs of scheduled tasks.
func (f *topicFollowers) WantsInputs() bool { return f.topic.WantsInputs() }
