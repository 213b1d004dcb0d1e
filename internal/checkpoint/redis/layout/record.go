package layout

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Kinds of records in a seal.RecordPlace. A sealed record is bound to its kind, so they
// must never change.
const (
	KindHead      = "head"
	KindValues    = "values" // manifests too; the name is the field
	KindProgress  = "progress"
	KindInterrupt = "question"
	KindRun       = "run"
	KindRequest   = "request"
	KindEvent     = "event" // without a name: the record has its number
	KindGraph     = "graph"
	KindTombstone = "tombstone" // of a graph
)

// RecordSealer makes the stored texts of the records of a thread.
type RecordSealer struct {
	box    *seal.Box
	thread string
}

// NewRecordSealer makes the sealer of the records of a thread.
func NewRecordSealer(box *seal.Box, thread string) RecordSealer { return RecordSealer{box, thread} }

// IsPlain reports whether records are neither compressed nor encrypted.
func (rs RecordSealer) IsPlain() bool { return rs.box.IsPlain() }

// Box returns the box that seals the records.
func (rs RecordSealer) Box() *seal.Box { return rs.box }

// SealRecord returns the text to store for a record.
func (rs RecordSealer) SealRecord(kind, name, record string) string {
	return rs.box.Seal(seal.RecordPlace{Thread: rs.thread, Kind: kind, Name: name}, record)
}

// DecodeRecord opens a record of a thread and decodes it with read. It returns
// checkpoint.ErrCorrupt when the record can't be opened or read.
func DecodeRecord[T any](box *seal.Box, thread, kind, name, text string, read func(string) (T, error)) (v T, err error) {
	text, err = box.Open(seal.RecordPlace{Thread: thread, Kind: kind, Name: name}, text)
	if err != nil {
		return v, err
	}
	return read(text)
}

// DecodeEvents decodes an element of the log, a series of events, and returns the events
// and the number of the first. It returns checkpoint.ErrCorrupt when it can't be read.
func DecodeEvents(box *seal.Box, thread, element string) (list []checkpoint.Event, first uint64, err error) {
	number, record, _ := strings.Cut(element, ":")
	if first, err = strconv.ParseUint(number, 10, 64); err != nil {
		return nil, 0, CorruptError("an element of the log begins with %.20q", number)
	}
	if list, err = DecodeRecord(box, thread, KindEvent, "", record, codec.DecodeEvents); err != nil {
		return nil, 0, err
	}
	if len(list) == 0 || list[0].Seq != first {
		return nil, 0, CorruptError("it says it is another one")
	}
	return list, first, nil
}

// CorruptError returns an error that wraps checkpoint.ErrCorrupt and describes the damage.
func CorruptError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{checkpoint.ErrCorrupt}, args...)...)
}

// WrapRecordError adds the name of the record to an error.
func WrapRecordError(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
