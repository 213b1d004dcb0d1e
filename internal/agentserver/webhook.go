package agentserver

import (
	"encoding/json"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// stoppedRun is a run as a webhook is told of it.
type stoppedRun struct {
	run

	Started string          `json:"run_started_at"`
	Ended   string          `json:"run_ended_at"`
	Sent    string          `json:"webhook_sent_at"`
	Values  json.RawMessage `json:"values"`
	Error   *runFailure     `json:"error,omitempty"`
}

// RenderRunStop returns the body of the webhook with an id: the leg of the run that its request has
// begun, and the values of the thread, "" = none.
func RenderRunStop(of *graphdv1.Run, id, values string, now time.Time) ([]byte, error) {
	l := chooseLeg(readLegs(of), id)
	if l == nil { // another API has added the webhook
		legs := readLegs(of)
		l = legs[len(legs)-1]
	}
	told := stoppedRun{
		run: newRun(of, l), Started: l.Begun.Format(time.RFC3339Nano), Ended: formatTime(of.GetUpdateTime()), Sent: now.UTC().Format(time.RFC3339Nano),
		Values: json.RawMessage("{}"),
	}
	if values != "" {
		told.Values = json.RawMessage(values)
	}
	told.Error = newRunFailure(of.GetState(), of.GetFailure())
	return encodeJSON(told)
}
