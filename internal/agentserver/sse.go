package agentserver

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// sseWriter writes server-sent events.
type sseWriter struct {
	call    *call
	showIDs bool
	skip    eventID // events up to this one were sent before
	last    eventID // of the last event
	suffix  string  // of all ids
}

// eventID is the id of a server-sent event: that of an event of graphd, and the number of the one that
// is made of it. Ephemeral events have the id of the event before them, and numbers that go on.
type eventID struct {
	log      string
	sequence uint64
	mark     uint32
	number   int
}

// String returns the id as clients have it.
func (i eventID) String() string {
	return fmt.Sprintf("%s-%d-%d-%d", i.log, i.sequence, i.mark, i.number)
}

// parseEventID reads the header Last-Event-ID.
func parseEventID(text string) (id eventID, err error) {
	parts := strings.Split(text, "-")
	wrong := invalidField("Last-Event-ID", "is %.100q: want the id of an event of the run, or -1 for its beginning", text)
	if len(parts) != 4 || parts[0] == "" {
		return id, wrong
	}
	id.log = parts[0]
	sequence, err1 := strconv.ParseUint(parts[1], 10, 64)
	mark, err2 := strconv.ParseUint(parts[2], 10, 32)
	number, err3 := strconv.Atoi(parts[3])
	if err1 != nil || err2 != nil || err3 != nil || number < 0 {
		return id, wrong
	}
	id.sequence, id.mark, id.number = sequence, uint32(mark), number
	return id, nil
}

// follows reports whether an event comes after another one of the same log.
func (i eventID) follows(other eventID) bool {
	return i.sequence > other.sequence || i.sequence == other.sequence && i.number > other.number
}

// begin writes the head of the answer.
func (w *sseWriter) begin() {
	w.call.w.Header().Set("Cache-Control", "no-store")
	w.call.w.Header().Set("X-Accel-Buffering", "no") // a proxy passes each event on at once
	w.call.beginAnswer("text/event-stream", http.StatusOK)
	_ = http.NewResponseController(w.call.w).Flush() // the client sees the head before the first event
}

// moveTo makes the next events those of an event of graphd.
func (w *sseWriter) moveTo(at *graphdv1.Cursor) {
	if at.GetSequence() != w.last.sequence || at.GetLogId() != w.last.log {
		w.last = eventID{log: at.GetLogId(), sequence: at.GetSequence(), mark: at.GetMark(), number: -1}
	}
}

// writeEvent writes an event, unless the client has it. The error says that the client has left.
func (w *sseWriter) writeEvent(name string, data []byte) error {
	w.last.number++
	if !w.last.follows(w.skip) {
		return nil
	}
	var out bytes.Buffer
	out.Grow(len(name) + len(data) + 100)
	out.WriteString("event: " + name + "\r\ndata: ")
	out.Write(data)
	out.WriteString("\r\n")
	if w.showIDs {
		out.WriteString("id: " + w.last.String() + w.suffix + "\r\n")
	}
	out.WriteString("\r\n")
	return w.writePart(out.Bytes())
}

// writeUnnumbered writes an event that a client that joins again gets again.
func (w *sseWriter) writeUnnumbered(name string, data []byte) error {
	return w.writePart(fmt.Appendf(nil, "event: %s\r\ndata: %s\r\n\r\n", name, data))
}

// writeLife shows that the stream is alive.
func (w *sseWriter) writeLife() error { return w.writePart([]byte(": heartbeat\r\n\r\n")) }

func (w *sseWriter) writePart(part []byte) error {
	release, err := w.call.server.opts.Door.HoldUnread(len(part))
	if err != nil {
		return errBrokenOff
	}
	defer release()
	w.call.extendDeadline()
	if _, err := w.call.w.Write(part); err != nil {
		return errBrokenOff
	}
	if err := http.NewResponseController(w.call.w).Flush(); err != nil {
		return errBrokenOff
	}
	return nil
}
