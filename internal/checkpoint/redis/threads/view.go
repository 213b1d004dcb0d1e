package threads

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// maxViewRecords is how many interrupts, or records of progress, a view reads
// at most.
const maxViewRecords = 64

// largeGlance is how many bytes of a checkpoint, and of the progress after it, a view
// reads: callers reserve memory before they read more.
const largeGlance = 64 << 10

// ReadView reads the records to continue a thread, in one exchange, or in two when
// large values belong to it. It also reads the record of request, "" = none.
func (t *Reader) ReadView(ctx context.Context, thread, request string) (*checkpoint.ThreadView, error) {
	partition := t.keys.PartitionOf(thread)
	keys := t.keys.ThreadKeys(
		thread, layout.KeyHead, layout.KeyValues, layout.KeyOrder, layout.KeyLog, layout.KeyProgress, layout.KeyInterrupts, layout.KeyRecords,
		layout.KeyRuns)
	keys = append(keys, t.keys.PartitionKey(partition, layout.KeyStoreMark))
	call := script.NewCall(t.scripts.View, keys)
	call.AppendText(layout.AddLength("") + layout.AddLength(""))
	call.AppendText(request)
	call.AppendCount(maxViewRecords)
	call.AppendCount(largeGlance)
	pending := script.NewPendingCall(ctx, call, &script.Unanswered{})
	var reply script.Reply
	err := script.Retry(ctx, func() (err error) {
		reply, err = t.batchers.OfPartition(partition).SendCall(pending)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t.decodeView(ctx, thread, request, keys[0], reply)
}

// decodeView decodes the reply to ReadView. key is that of the head.
func (t *Reader) decodeView(ctx context.Context, thread, request, key string, r script.Reply) (*checkpoint.ThreadView, error) {
	head, err := t.parseHeadReply(thread, key, r)
	if err != nil {
		return nil, err
	}
	g := &checkpoint.ThreadView{Head: head}
	t.fillView(ctx, thread, r, g)
	if request == "" {
		return g, nil
	}
	g.Requests = map[string]*checkpoint.Request{request: nil}
	if r.HasValue(14) {
		old, err := layout.DecodeRecord(t.box, thread, layout.KindRequest, request, r.TextAt(14), codec.DecodeRequest)
		if err != nil {
			g.Requests = nil // reading it alone returns the error
		} else {
			old.ID = request
			g.Requests[request] = &old
		}
	}
	return g, nil
}

// fillView reads the records beside the head. Records that do not fit to it, or
// can't be read, are left out: reading them by name returns the error.
func (t *Reader) fillView(ctx context.Context, thread string, r script.Reply, g *checkpoint.ThreadView) {
	if r.HasValue(10) && r.TextAt(9) == g.Head.Run {
		if run, err := t.decodeRun(thread, r.TextAt(9), r[10:12]); err == nil {
			g.Run = &run
		}
	}
	id := r.TextAt(7)
	if id != "" && id == g.Head.Checkpoint && r.HasValue(8) {
		l := checkpointLoader{reader: t, thread: thread, generation: r.TextAt(6), most: largeGlance}
		list, err := l.loadManifests(ctx, r[7:9], 0)
		if err == nil && !l.isStale && len(list) == 1 && list[0].Namespace == "" {
			g.Checkpoint = list[0]
		}
	}
	if !r.HasValue(13) {
		return
	}
	var all []checkpoint.Interrupt
	var asked []string
	list := r.ListAt(13)
	fields := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		fields[list.TextAt(i)] = list.TextAt(i + 1)
	}
	for field, record := range fields {
		q, ok := strings.CutPrefix(field, "r")
		if !ok {
			continue
		}
		in, err := t.DecodeInterrupt(thread, q, record)
		if err != nil {
			return
		}
		all = append(all, in)
		if in.Checkpoint == id {
			asked = append(asked, q)
		}
	}
	slices.SortFunc(all, func(a, b checkpoint.Interrupt) int {
		return strings.Compare(layout.InterruptMember(&a), layout.InterruptMember(&b))
	})
	g.Interrupts = &all
	if g.Checkpoint == nil || !r.HasValue(12) {
		return
	}
	order, err := script.UnpackNames(fields["a"+id])
	if err != nil || len(order) != len(asked) {
		return
	}
	bounded := checkpoint.BoundedPending{Most: largeGlance}
	if err := t.decodeProgress(thread, id, r.ListAt(12), &bounded); err != nil {
		return
	}
	for _, q := range order {
		at := slices.IndexFunc(all, func(in checkpoint.Interrupt) bool { return in.ID == q })
		if at < 0 {
			return
		}
		bounded.AddInterrupt(&all[at])
	}
	p, err := bounded.BuildPending()
	if err != nil {
		return
	}
	sortPending(&p)
	g.Pending = &p
}

// decodeProgress adds fields and records of the progress after a checkpoint.
func (t *Reader) decodeProgress(thread, id string, done script.Reply, bounded *checkpoint.BoundedPending) error {
	key := t.keys.ThreadKeys(thread, layout.KeyProgress)[0]
	for i := 0; i+1 < len(done); i += 2 {
		name, record := done.TextAt(i), done.TextAt(i+1)
		if strings.HasPrefix(name, "t") {
			t, err := layout.DecodeRecord(t.box, thread, layout.KindProgress, layout.AddLength(id)+name, record, codec.DecodeTask)
			if err != nil {
				return layout.WrapRecordError(err, "key %s, task %q", key, name[1:])
			}
			bounded.AddTask(&t)
			continue
		}
		m, err := layout.DecodeRecord(t.box, thread, layout.KindProgress, layout.AddLength(id)+name, record, codec.DecodeMemo)
		if err != nil {
			return layout.WrapRecordError(err, "key %s, memo %q", key, strconv.QuoteToASCII(name))
		}
		bounded.AddMemo(&m)
	}
	return nil
}
