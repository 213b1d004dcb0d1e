package agentserver

import (
	"bytes"
	"strconv"
	"time"
)

// protocolEvent is the envelope of an event of protocol v2.
type protocolEvent struct {
	Type   string         `json:"type"`
	ID     string         `json:"event_id"`
	Number uint64         `json:"seq"`
	Method string         `json:"method"`
	Params protocolParams `json:"params"`
}

// protocolParams say where and when an event has happened, and what it is.
type protocolParams struct {
	Namespace []string `json:"namespace"`
	Timestamp int64    `json:"timestamp"` // ms
	Data      any      `json:"data"`
	Node      string   `json:"node,omitempty"`
}

// mostEventsOfOne is how many events of protocol v2 one of graphd makes at most, with the ephemeral
// ones that follow it. Clients in JavaScript count to 2^53: that leaves 2^33 events of a thread.
const mostEventsOfOne = 1<<20 - 1

// sequenceNumber returns the number of an event, which grows along a thread.
func sequenceNumber(id eventID) uint64 {
	return id.sequence*(mostEventsOfOne+1) + uint64(min(max(id.number, 0), mostEventsOfOne))
}

// eventOfNumber is the reverse of sequenceNumber.
func eventOfNumber(log string, number uint64) eventID {
	return eventID{log: log, sequence: number / (mostEventsOfOne + 1), number: int(number % (mostEventsOfOne + 1))}
}

// writeNumbered writes an event of protocol v2, unless the client has it.
func (w *sseWriter) writeNumbered(one eventOf, at time.Time) error {
	w.last.number++
	if !w.last.follows(w.skip) || !one.isWanted {
		return nil
	}
	number := sequenceNumber(w.last)
	text, err := encodeJSON(protocolEvent{
		Type: "event", ID: w.last.String(), Number: number, Method: one.method,
		Params: protocolParams{Namespace: one.namespace, Timestamp: at.UnixMilli(), Data: one.data, Node: one.node},
	})
	if err != nil {
		return errBrokenOff
	}
	return w.writePart(formatEvent(one.method, text, number))
}

// formatEvent returns a server-sent event with a number as its id.
func formatEvent(name string, data []byte, number uint64) []byte {
	out := make([]byte, 0, len(name)+len(data)+64)
	out = append(out, "event: "+name+"\r\ndata: "...)
	out = append(out, removeLineBreaks(data)...)
	out = append(out, "\r\nid: "...)
	return append(strconv.AppendUint(out, number, 10), "\r\n\r\n"...)
}

// removeLineBreaks returns JSON in one line. Text of a state may have line breaks between its parts.
func removeLineBreaks(text []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\n"), nil), []byte("\r"), nil)
}
