// Package cloudevent writes what happens to questions as CloudEvents 1.0, in their JSON form.
package cloudevent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// MaxBytes bounds an event. A larger one has the question without its values.
const MaxBytes = 1 << 20

// typePrefix begins the type of an event; the kind of the entry follows.
const typePrefix = "dev.graphd.interrupt."

// envelope has the attributes of an event. The names are those of CloudEvents.
type envelope struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Subject         string          `json:"subject"`
	Time            string          `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	Data            json.RawMessage `json:"data"`
}

// Render writes an event. The question is as it is when the event is sent for the first time, the
// entry as it was written.
func Render(e *notify.Event) ([]byte, error) {
	question, entry := wire.InterruptToProto(*e.Question), wire.TrailEntryToProto(&e.Entry)
	body, err := encode(e, question, entry, false)
	if err != nil || len(body) <= MaxBytes {
		return body, err
	}
	return encode(e, withoutValues(question), entry, true)
}

func encode(e *notify.Event, question *graphdv1.Interrupt, entry *graphdv1.TrailEntry, isShort bool) ([]byte, error) {
	owner, thread := tenant.Split(e.Question.Thread)
	var data bytes.Buffer
	fmt.Fprintf(&data, `{"interrupt":%s,"entry":%s`, jsontext.MarshalMessage(question), jsontext.MarshalMessage(entry))
	if isShort {
		data.WriteString(`,"valuesLeftOut":true`)
	}
	data.WriteByte('}')
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(envelope{
		SpecVersion: "1.0", ID: e.ID, Source: "/tenants/" + url.PathEscape(owner) + "/threads/" + url.PathEscape(thread),
		Type: typePrefix + string(e.Entry.Kind), Subject: e.Question.ID, Time: e.Entry.Time.UTC().Format(time.RFC3339Nano),
		DataContentType: "application/json", Data: data.Bytes(),
	})
	if err != nil {
		return nil, fmt.Errorf("the event can't be written: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// withoutValues returns a question with what finds and names it.
func withoutValues(q *graphdv1.Interrupt) *graphdv1.Interrupt {
	short, ok := proto.Clone(q).(*graphdv1.Interrupt)
	if !ok {
		return q
	}
	short.Message, short.Value, short.ResponseSchema, short.DefaultResponse, short.Response = "", nil, nil, nil, nil
	short.Votes, short.Note, short.Steps, short.Differs, short.Accepted = nil, "", nil, nil, nil
	return short
}
