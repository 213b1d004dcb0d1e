package layout

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Kinds of records, as seal.Place has them. They are part of what is stored and
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

// RecordSealer makes what is written of the records of a thread.
type RecordSealer struct {
	box    *seal.Box
	thread string
}

// NewRecordSealer makes the sealer of the records of a thread.
func NewRecordSealer(box *seal.Box, thread string) RecordSealer { return RecordSealer{box, thread} }

// IsPlain reports whether records are neither compressed nor encrypted.
func (rs RecordSealer) IsPlain() bool { return rs.box.IsPlain() }

// SealRecord makes what is written of a record.
func (rs RecordSealer) SealRecord(kind, name, record string) string {
	return rs.box.Seal(seal.RecordPlace{Thread: rs.thread, Kind: kind, Name: name}, record)
}

// DecodeRecord opens a record of a thread and reads it.
func DecodeRecord[T any](box *seal.Box, thread, kind, name, text string, read func(string) (T, error)) (v T, err error) {
	text, err = box.Open(seal.RecordPlace{Thread: thread, Kind: kind, Name: name}, text)
	if err != nil {
		return v, err
	}
	return read(text)
}

// DecodeEvents reads an element of the log: events that follow one another.
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

// CorruptError says what is wrong with what is stored.
func CorruptError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{checkpoint.ErrCorrupt}, args...)...)
}

// WrapRecordError adds the record to an error.
func WrapRecordError(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
