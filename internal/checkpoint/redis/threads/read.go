// Package threads reads the records of a thread from a store, and applies changes to
// the thread.
package threads

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Reader reads the records of a thread.
type Reader struct {
	database *setup.Database
	scripts  *script.Set
	runner   *script.Runner
	keys     *layout.Keys
	box      *seal.Box
	batchers script.Batchers
}

// NewReader makes the reader of a store.
func NewReader(d *setup.Database, batchers script.Batchers) *Reader {
	return &Reader{database: d, scripts: d.Scripts, runner: d.Runner, keys: &d.Keys, box: d.Box, batchers: batchers}
}

// ReadHead returns the thread's head. It returns checkpoint.ErrThreadNotFound when there
// is no such thread, and checkpoint.ErrCorrupt with Thread and Revision when the record
// can't be read.
func (t *Reader) ReadHead(ctx context.Context, thread string) (checkpoint.Head, error) {
	keys := t.keys.ThreadKeys(thread, layout.KeyHead)
	keys = append(keys, t.keys.PartitionKey(t.keys.PartitionOf(thread), layout.KeyStoreMark))
	keys = append(keys, t.keys.ThreadKeys(
		thread, layout.KeyValues, layout.KeyOrder, layout.KeyProgress, layout.KeyInterrupts, layout.KeyRecords, layout.KeyRuns, layout.KeyLog)...)
	r, err := t.runner.RunScript(ctx, t.scripts.Head, keys)
	if err != nil {
		return checkpoint.Head{}, err
	}
	return t.parseHeadReply(thread, keys[0], r)
}

// parseHeadReply reads a head that may be damaged, or lack keys of its thread.
func (t *Reader) parseHeadReply(thread, key string, r script.Reply) (h checkpoint.Head, err error) {
	if r.HasValue(4) {
		err = missingKeysError(r.TextAt(4), r.ListAt(5))
	}
	if h.Now, _ = r.TimeAt(0); !r.HasValue(1) {
		if r.TextAt(6) != t.database.Mark {
			err = cmp.Or(err, t.database.OtherStoreError(t.keys.PartitionOf(thread), r.TextAt(6)))
		}
		return h, cmp.Or(err, checkpoint.ErrThreadNotFound)
	}
	damaged := err
	h, err = t.DecodeHead(thread, r)
	if err = layout.WrapRecordError(cmp.Or(err, damaged), "key %s", key); err != nil {
		// Enough to delete it by.
		revision, _ := r.UintAt(1)
		h = checkpoint.Head{Thread: thread, Revision: revision}
	}
	return h, err
}

// DecodeHead decodes the present time, the revision, the end of the lease and the record
// of a head. It returns checkpoint.ErrCorrupt when a part can't be read.
func (t *Reader) DecodeHead(thread string, r script.Reply) (h checkpoint.Head, err error) {
	if h, err = layout.DecodeRecord(t.box, thread, layout.KindHead, "", r.TextAt(3), codec.DecodeHead); err != nil {
		return checkpoint.Head{}, err
	}
	if h.Revision, err = r.UintAt(1); err != nil {
		return checkpoint.Head{}, err
	}
	if h.LeaseExpires, err = r.TimeAt(2); err != nil {
		return checkpoint.Head{}, err
	}
	if h.Now, err = r.TimeAt(0); err != nil {
		return checkpoint.Head{}, err
	}
	return h, nil
}

// ReadEvents reads events with a greater number than after, oldest first, until
// there are enough. It needs a single exchange, unless the events are large. It returns
// checkpoint.ErrThreadNotFound, checkpoint.ErrTrimmed when events after that number are
// gone, and checkpoint.ErrCorrupt when events are missing or can't be read.
func (t *Reader) ReadEvents(
	ctx context.Context, thread string, after uint64, limit int,
) (out []checkpoint.Event, err error) {
	after, limit = min(after, maxScriptInteger), max(0, limit)
	portion := checkpoint.Portion{Limit: limit}
	for {
		page, cut, err := t.readEventPage(ctx, thread, after, limit)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if portion.Take(page[i].Size()); portion.Full() {
				page = page[:i+1]
				break
			}
		}
		if out == nil {
			out = page
		} else {
			out = append(out, page...)
		}
		if !cut || portion.Full() || len(page) == 0 {
			return out, nil
		}
		after, limit = page[len(page)-1].Seq, limit-len(page)
	}
}

// readEventPage reads events with a greater number than after in a single exchange. cut
// reports whether the page may have ended early, because its events are large. The
// errors are those of ReadEvents.
func (t *Reader) readEventPage(
	ctx context.Context, thread string, after uint64, limit int,
) (page []checkpoint.Event, cut bool, err error) {
	keys := t.keys.ThreadKeys(thread, layout.KeyHead, layout.KeyLog)
	r, err := t.runner.RunScript(ctx, t.scripts.Events, keys, strconv.FormatUint(after, 10), limit, responseBytes(limit))
	switch {
	case err != nil:
		return nil, false, err
	case !r.HasValue(0):
		return nil, false, checkpoint.ErrThreadNotFound
	case r.TextAt(0) == "LOST":
		return nil, false, layout.CorruptError("key %s has %s elements, and not as many as its thread says", keys[1], r.TextAt(1))
	case !r.HasValue(1):
		return nil, false, checkpoint.ErrTrimmed
	}
	seq, err := r.UintAt(1)
	if err != nil {
		return nil, false, err
	}
	last, err := r.UintAt(2)
	if err != nil {
		return nil, false, err
	}
	if limit > 0 {
		last = min(last, seq+uint64(limit)-1)
	}
	cut = wasCut(r.ListAt(3), limit)
	page, err = t.selectEvents(thread, r.ListAt(3), seq, last, limit, cut)
	return page, cut, layout.WrapRecordError(err, "key %s", keys[1])
}

// selectEvents decodes elements of the log, and returns at most limit of their events from
// number seq to number last. It returns checkpoint.ErrCorrupt when events are missing.
// With cut the elements may end before last.
func (t *Reader) selectEvents(
	thread string, elements script.Reply, seq, last uint64, limit int, cut bool,
) (out []checkpoint.Event, err error) {
	portion := checkpoint.Portion{Limit: limit}
	for i := range elements {
		list, first, err := layout.DecodeEvents(t.box, thread, elements.TextAt(i))
		if err == nil && (first > seq || first+uint64(len(list)) <= seq && seq <= last) {
			err = layout.CorruptError("it is not where events %d to %d are", first, first+uint64(len(list))-1)
		}
		if err != nil {
			return nil, layout.WrapRecordError(err, "event %d", seq)
		}
		for i := range list {
			if e := &list[i]; e.Seq >= seq && e.Seq <= last {
				portion.Take(e.Size())
				if out = append(out, *e); portion.Full() {
					return out, nil
				}
			}
		}
		seq = first + uint64(len(list))
	}
	if seq <= last && !cut {
		return nil, layout.CorruptError("event %d is missing", seq)
	}
	return out, nil
}

// ReadRun returns a run of a thread. It returns checkpoint.ErrRunNotFound when there is no
// such run, and checkpoint.ErrCorrupt when its record can't be read.
func (t *Reader) ReadRun(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	key := t.keys.ThreadKeys(thread, layout.KeyRecords)[0]
	r, err := t.runner.ReadFields(ctx, key, "r"+run, layout.InputField(run))
	if err != nil {
		return checkpoint.Run{}, err
	}
	if !r.HasValue(0) {
		return checkpoint.Run{}, checkpoint.ErrRunNotFound
	}
	out, err := t.decodeRun(thread, run, r)
	return out, layout.WrapRecordError(err, "key %s, run %q", key, run)
}

// decodeRun decodes the record and the input of a run. It returns checkpoint.ErrCorrupt
// when either can't be read.
func (t *Reader) decodeRun(thread, id string, r script.Reply) (run checkpoint.Run, err error) {
	number, record, _ := strings.Cut(r.TextAt(0), " ")
	if run, err = layout.DecodeRecord(t.box, thread, layout.KindRun, id, record, codec.DecodeRun); err != nil {
		return checkpoint.Run{}, err
	}
	if quotes, ok := layout.RunOfRef(string(run.Request.Input)); ok {
		if quotes != id || !r.HasValue(1) {
			return checkpoint.Run{}, layout.CorruptError("its input is missing")
		}
		input, err := t.box.Open(seal.RecordPlace{Thread: thread, Kind: layout.KindRun, Name: layout.InputField(id)}, r.TextAt(1))
		if err == nil {
			run.Request.Input, err = layout.ResolveRef(string(run.Request.Input), input)
		}
		if err != nil {
			return checkpoint.Run{}, layout.WrapRecordError(err, "input")
		}
	}
	if run.Revision, err = strconv.ParseUint(number, 10, 64); err != nil {
		return checkpoint.Run{}, layout.CorruptError("its revision is %.40q", number)
	}
	return run, nil
}

// ReadRuns lists a thread's runs, newest first. It returns checkpoint.ErrCorrupt when a
// record can't be read.
func (t *Reader) ReadRuns(ctx context.Context, thread string, before uint64, limit int) (out []checkpoint.Run, err error) {
	keys := t.keys.ThreadKeys(thread, layout.KeyRecords, layout.KeyRuns)
	portion := checkpoint.Portion{Limit: limit}
	for {
		r, err := t.runner.RunScript(ctx, t.scripts.Runs, keys, scoreBelow(before), limitOrAll(limit), responseBytes(limit))
		if err != nil {
			return nil, err
		}
		for i := 0; i+2 < len(r); i += 3 {
			run, err := t.decodeRun(thread, r.TextAt(i), r[i+1:i+3])
			if err != nil {
				return nil, layout.WrapRecordError(err, "key %s, run %q", keys[0], r.TextAt(i))
			}
			portion.Take(run.Size())
			if out = append(out, run); portion.Full() {
				return out, nil
			}
			before = run.Order
		}
		if len(r) == 0 || !wasCut(r, limit) {
			return out, nil
		}
	}
}

// scoreBelow returns the upper end of a range of numbers below n, where 0 means no end.
func scoreBelow(n uint64) string {
	if n == 0 || n > maxScriptInteger {
		return "+inf"
	}
	return "(" + strconv.FormatUint(n, 10)
}

// limitOrAll returns a limit for Redis, where a negative number means no limit.
func limitOrAll(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}

// ReadInterrupt returns an interrupt of a thread. It returns
// checkpoint.ErrInterruptNotFound when there is no such interrupt, and
// checkpoint.ErrCorrupt when its record can't be read.
func (t *Reader) ReadInterrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	key := t.keys.ThreadKeys(thread, layout.KeyInterrupts)[0]
	r, err := t.runner.ReadFields(ctx, key, "r"+id)
	if err != nil {
		return checkpoint.Interrupt{}, err
	}
	if !r.HasValue(0) {
		return checkpoint.Interrupt{}, checkpoint.ErrInterruptNotFound
	}
	out, err := t.DecodeInterrupt(thread, id, r.TextAt(0))
	return out, layout.WrapRecordError(err, "key %s, interrupt %q", key, id)
}

// DecodeInterrupt decodes the numbers and the record of an interrupt. It returns
// checkpoint.ErrCorrupt when either can't be read.
func (t *Reader) DecodeInterrupt(thread, id, text string) (checkpoint.Interrupt, error) {
	change, rest, _ := strings.Cut(text, " ")
	revision, _, _ := strings.Cut(rest, " ")
	record := layout.CutRecord(text)
	in, err := layout.DecodeRecord(t.box, thread, layout.KindInterrupt, id, record, codec.DecodeInterrupt)
	if err != nil {
		return checkpoint.Interrupt{}, err
	}
	n, err := strconv.ParseUint(change, 10, 64)
	if err == nil {
		in.Revision, err = strconv.ParseUint(revision, 10, 64)
	}
	if err != nil || n > math.MaxUint64/layout.MaxPartitions {
		return checkpoint.Interrupt{}, layout.CorruptError("its numbers are %.40q", text[:len(text)-len(record)])
	}
	in.Change = t.GlobalChangeNumber(n, t.keys.PartitionOf(thread))
	return in, nil
}

// GlobalChangeNumber makes the number of a change unique over all partitions.
func (t *Reader) GlobalChangeNumber(n uint64, partition int) uint64 {
	return n*uint64(t.keys.PartitionCount()) + uint64(partition)
}

// ReadRequest returns a remembered request of a thread. It returns
// checkpoint.ErrRequestNotFound when the id was not used, and checkpoint.ErrCorrupt when
// the record can't be read.
func (t *Reader) ReadRequest(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	key := t.keys.ThreadKeys(thread, layout.KeyRecords)[0]
	r, err := t.runner.ReadFields(ctx, key, "q"+id)
	if err != nil {
		return checkpoint.Request{}, err
	}
	if !r.HasValue(0) {
		return checkpoint.Request{}, checkpoint.ErrRequestNotFound
	}
	out, err := layout.DecodeRecord(t.box, thread, layout.KindRequest, id, r.TextAt(0), codec.DecodeRequest)
	out.ID = id
	return out, layout.WrapRecordError(err, "key %s, request %q", key, id)
}
