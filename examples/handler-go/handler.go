package main

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
)

// handler answers the messages of customers. It keeps nothing itself: the thread of a session says
// whether a message is an order or an answer.
type handler struct{ engine *graphd.Engine }

// message is what a customer sends.
type message struct {
	Session string `json:"session"`
	Text    string `json:"text"`
}

// reply is what a customer reads.
type reply struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

// maxMessageBytes bounds a request.
const maxMessageBytes = 16 << 10

// ServeHTTP takes a message, and answers with a question or with what became of the order.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxMessageBytes)).Decode(&m); err != nil || m.Session == "" || m.Text == "" {
		http.Error(w, `want {"session": "…", "text": "…"}`, http.StatusBadRequest)
		return
	}
	outcome, err := h.handle(r, m)
	if err != nil {
		refuse(w, err)
		return
	}
	answer, err := newReply(outcome)
	if err != nil {
		http.Error(w, "the order failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the customer has left
}

// handle answers the question of the session, or begins an order when none is open. Of two
// messages at once, one wins.
func (h *handler) handle(r *http.Request, m message) (*client.Outcome, error) {
	ctx := r.Context()
	open, err := h.engine.Questions(ctx, m.Session)
	if err != nil {
		return nil, err
	}
	if len(open) > 0 {
		return h.engine.Resume(ctx, m.Session, client.AnswerTo(open[0], m.Text))
	}
	return h.engine.Invoke(ctx, client.Run{Graph: "orders", Thread: m.Session, Input: map[string]any{"text": m.Text}})
}

// refuse says why a message was not taken.
func refuse(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok, errors.Is(err, graphd.ErrClosed):
		http.Error(w, "try again", http.StatusServiceUnavailable)
	case e.Reason == client.InterruptAlreadyResolved, e.Reason == client.ThreadBusy, e.Reason == client.ThreadInterrupted:
		http.Error(w, "another message of this session was first", http.StatusConflict)
	default:
		http.Error(w, e.Message, http.StatusBadRequest)
	}
}

func newReply(o *client.Outcome) (reply, error) {
	if o.Waits() {
		q, err := client.Decode[bill](o.Questions[0].GetValue())
		return reply{q.Question, toBePaid}, err
	}
	end, err := client.Output[order](o)
	return reply{end.Reply, end.Status}, err
}
