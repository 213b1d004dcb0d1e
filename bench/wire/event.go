package wire

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// Kind is which of the kinds of a graphd Event a message is: the number of its
// field.
type Kind = protowire.Number

// The kinds that workloads look for.
const (
	Opened    Kind = 20
	Update    Kind = 23
	Interrupt Kind = 24
	End       Kind = 32
)

// The fields of messages inside of an Event that are looked at.
const (
	stepField     = 6
	endCause      = 1
	endRun        = 2
	endResumeAt   = 3
	runState      = 5
	runOutput     = 12
	payloadJSON   = 1
	firstKind     = Opened
	lastKind      = End
	fieldNotFound = 0
)

// Event has the fields of an Event that a workload needs. It refers to the message
// from which it was read.
type Event struct {
	Kind Kind
	Step int
	body []byte
}

var errMalformed = errors.New("wire: not a graphd Event")

// Look reads kind and step of an Event and skips the rest.
func Look(message []byte) (Event, error) {
	var e Event
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return Event{}, errMalformed
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return Event{}, errMalformed
		}
		switch {
		case number == stepField && kind == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(message)
			e.Step = int(v)
		case number >= firstKind && number <= lastKind && kind == protowire.BytesType:
			e.Kind = number
			e.body, _ = protowire.ConsumeBytes(message)
		}
		message = message[size:]
	}
	if e.Kind == fieldNotFound {
		return Event{}, errMalformed
	}
	return e, nil
}

// Ended returns the cause of an End, the state of its run and the run's output,
// each as zero when it is not there.
func (e Event) Ended() (cause, state int, output []byte) {
	run := field(e.body, endRun)
	return number(e.body, endCause), number(run, runState), field(field(run, runOutput), payloadJSON)
}

// ResumeAt is the cursor in an End.
func (e Event) ResumeAt() []byte { return field(e.body, endResumeAt) }

// field finds a message, a text or bytes.
func field(message []byte, want protowire.Number) []byte {
	var found []byte
	walk(message, func(n protowire.Number, t protowire.Type, value []byte) {
		if n == want && t == protowire.BytesType {
			found, _ = protowire.ConsumeBytes(value)
		}
	})
	return found
}

func number(message []byte, want protowire.Number) int {
	var found uint64
	walk(message, func(n protowire.Number, t protowire.Type, value []byte) {
		if n == want && t == protowire.VarintType {
			found, _ = protowire.ConsumeVarint(value)
		}
	})
	return int(found)
}

// walk visits the fields of a message up to the first that is malformed.
func walk(message []byte, visit func(protowire.Number, protowire.Type, []byte)) {
	for len(message) > 0 {
		n, t, size := protowire.ConsumeTag(message)
		if size < 0 {
			return
		}
		message = message[size:]
		size = protowire.ConsumeFieldValue(n, t, message)
		if size < 0 {
			return
		}
		visit(n, t, message[:size])
		message = message[size:]
	}
}
