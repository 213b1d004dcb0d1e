// Package layout says how records stand in the tables: what they are called, how they are
// sealed, and how columns have times and numbers.
package layout

import (
	"fmt"
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/format3"
)

// Kinds of records, as seal.Place has them. They are part of the stored format
// and must never change.
const (
	KindHead       = "head"
	KindCheckpoint = "checkpoint"
	KindValue      = "value"
	KindItem       = "item"
	KindTask       = "task"
	KindMemo       = "memo"
	KindInterrupt  = "question"
	KindRun        = "run"
	KindRequest    = "request" // of which the digest alone is sealed
	KindEvents     = "events"
	KindGraph      = "graph"
	KindTombstone  = "tombstone" // of a graph
)

// FormatUint is how numbers stand in names of records.
func FormatUint(n uint64) string { return strconv.FormatUint(n, 10) }

// ValueName is the name of a value, which was stored with the checkpoint of a number.
func ValueName(seq uint64, channel string) string { return FormatUint(seq) + ":" + channel }

// ItemName is the name of an element of a list.
func ItemName(segment uint64, index int, channel string) string {
	return FormatUint(segment) + ":" + strconv.Itoa(index) + ":" + channel
}

// MemoName returns the name of a memo, as the query for memos builds it.
func MemoName(m *checkpoint.Memo) string {
	return m.Task + "/" + m.Scope + "/" + m.Key + "/" + strconv.Itoa(m.Index)
}

// GraphPlace is where the source of a graph is sealed.
func GraphPlace(g *checkpoint.GraphRecord) seal.RecordPlace { return recordPlaceOf(KindGraph, g) }

// TombstonePlace is where the digest of a deleted graph is sealed.
func TombstonePlace(g *checkpoint.GraphRecord) seal.RecordPlace {
	return recordPlaceOf(KindTombstone, g)
}

func recordPlaceOf(kind string, g *checkpoint.GraphRecord) seal.RecordPlace {
	return seal.RecordPlace{Kind: kind, Name: strconv.Itoa(len(g.Name)) + ":" + g.Name + g.Version}
}

// packRecord packs a record that was sealed when its file was migrated and is not packed
// yet. It returns others as they are.
func packRecord(kind, text string) (string, error) {
	switch kind {
	case KindHead, KindTask, KindMemo, KindInterrupt, KindRun:
		if format3.IsRecord(text) {
			return format3.PackRecord(text)
		}
	}
	return text, nil
}

// DecodeRecord opens a record of a thread and reads it.
func DecodeRecord[T any](box *seal.Box, thread, kind, name, text string, read func(string) (T, error)) (v T, err error) {
	text, err = box.Open(seal.RecordPlace{Thread: thread, Kind: kind, Name: name}, text)
	if err != nil {
		return v, err
	}
	if text, err = packRecord(kind, text); err != nil {
		return v, err
	}
	return read(text)
}

// KeepText reads a record that is a text.
func KeepText(text string) (string, error) { return text, nil }

// WrapRecordError says which record an error is about.
func WrapRecordError(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
