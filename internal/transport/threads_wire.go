package transport

import (
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

func threadOut(h checkpoint.Head) *graphdv1.Thread {
	out := &graphdv1.Thread{
		ThreadId: h.Thread, Graph: h.Graph, GraphVersion: h.Version, Metadata: h.Metadata,
		State: threadStateOut(h.State), CreateTime: timeOut(h.Created), UpdateTime: timeOut(h.Updated),
		Head: cursorOut(h.LogID, h.LastEvent), Checkpoint: checkpointOut(h.Checkpoint, ""),
		RunId: h.Run, Etag: etagOf(h.Revision), KeepCheckpoints: int32(h.Keep),
	}
	if h.Faults > 0 {
		out.Fault = &graphdv1.ThreadFault{Failures: int32(h.Faults), RetryTime: timeOut(h.RetryAt)}
	}
	switch {
	case h.TTL > 0:
		out.Expiration = &graphdv1.Thread_Ttl{Ttl: durationOut(h.TTL)}
	case !h.Expires.IsZero():
		out.Expiration = &graphdv1.Thread_ExpireTime{ExpireTime: timeOut(h.Expires)}
	}
	return out
}

func expirationIn(b *border, t *graphdv1.Thread) runtime.Expiration {
	switch e := t.GetExpiration().(type) {
	case *graphdv1.Thread_ExpireTime:
		b.must("thread.expire_time", e.ExpireTime != nil)
		return runtime.Expiration{At: b.instant("thread.expire_time", e.ExpireTime)}
	case *graphdv1.Thread_Ttl:
		b.must("thread.ttl", e.Ttl != nil)
		return runtime.Expiration{TTL: b.positive("thread.ttl", e.Ttl)}
	}
	return runtime.Expiration{}
}

func keepIn(b *border, t *graphdv1.Thread) int {
	n := int(t.GetKeepCheckpoints())
	if n < -1 {
		b.refuse("thread.keep_checkpoints", "is %d, want a number, 0 for as many as the server keeps, or -1 for all", n)
	}
	return n
}

// newThreadIn converts a thread to make.
func newThreadIn(b *border, req *graphdv1.CreateThreadRequest) runtime.NewThread {
	t := req.GetThread()
	refuseOutputs(b, t)
	if t.GetThreadId() != "" && t.GetThreadId() != req.GetThreadId() {
		b.refuse("thread.thread_id", "differs from thread_id; set thread_id alone")
	}
	if t.GetEtag() != "" {
		b.refuse("thread.etag", "a new thread has none")
	}
	return runtime.NewThread{
		Thread:     b.optionalID("thread_id", req.GetThreadId()),
		Graph:      b.name("thread.graph", t.GetGraph()),
		Version:    b.name("thread.graph_version", t.GetGraphVersion()),
		Metadata:   b.labels("thread.metadata", t.GetMetadata()),
		Expiration: expirationIn(b, t),
		Keep:       keepIn(b, t),
		RequestID:  b.optionalID("request_id", req.GetRequestId()),
	}
}

// refuseOutputs refuses fields that only the server sets: a client that sets
// them expects something that will not happen.
func refuseOutputs(b *border, t *graphdv1.Thread) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"state", t.GetState() != 0},
		{"values", t.GetValues() != nil},
		{"interrupts", len(t.GetInterrupts()) > 0},
		{"create_time", t.GetCreateTime() != nil},
		{"update_time", t.GetUpdateTime() != nil},
		{"head", t.GetHead() != nil},
		{"checkpoint", t.GetCheckpoint() != nil},
		{"run_id", t.GetRunId() != ""},
		{"fault", t.GetFault() != nil},
	} {
		if f.set {
			b.refuse("thread."+f.name, "is set by the server; leave it unset")
		}
	}
}

// Paths of an update mask for threads.
const (
	maskAll      = "*"
	maskMetadata = "metadata"
	maskTTL      = "ttl"
	maskExpire   = "expire_time"
	maskKeep     = "keep_checkpoints"
)

// threadChangeIn converts a change of a thread. Fields that the mask does not
// name are ignored, as a mask means it: a client may send back what it read.
func threadChangeIn(b *border, req *graphdv1.UpdateThreadRequest) runtime.ThreadChange {
	t := req.GetThread()
	b.must("thread", t != nil)
	c := runtime.ThreadChange{
		Thread: b.id("thread.thread_id", t.GetThreadId()),
		Etag:   b.etag("thread.etag", t.GetEtag()),
	}
	labels := b.labels("thread.metadata", t.GetMetadata())
	paths := threadMask(req)
	if len(paths) == 0 {
		b.refuse("update_mask", "is empty and thread sets nothing that can be changed: metadata, ttl, expire_time, keep_checkpoints")
	}
	for _, path := range paths {
		key, isLabel := strings.CutPrefix(path, maskMetadata+".")
		switch {
		case path == maskAll:
			c.Metadata, c.Replace = labels, true
			e := expirationIn(b, t)
			keep := keepIn(b, t)
			c.Expiration, c.Keep = &e, &keep
		case path == maskKeep:
			keep := keepIn(b, t)
			c.Keep = &keep
		case path == maskMetadata:
			c.Metadata, c.Replace = labels, true
		case isLabel && key != "":
			setLabel(&c, key, labels)
		case path == maskTTL || path == maskExpire:
			e := expirationIn(b, t)
			if (path == maskTTL) != e.At.IsZero() && e != (runtime.Expiration{}) {
				b.refuse("update_mask", "names %q, but thread has the other kind of expiration", path)
			}
			c.Expiration = &e
		default:
			b.refuse("update_mask", "%q is not among *, metadata, metadata.KEY, ttl, expire_time, keep_checkpoints",
				clip(path, maxName))
		}
	}
	return c
}

// threadMask returns the mask; without one, the fields that are set.
func threadMask(req *graphdv1.UpdateThreadRequest) []string {
	if paths := req.GetUpdateMask().GetPaths(); len(paths) > 0 {
		return paths
	}
	var paths []string
	if len(req.GetThread().GetMetadata()) > 0 {
		paths = append(paths, maskMetadata)
	}
	switch req.GetThread().GetExpiration().(type) {
	case *graphdv1.Thread_Ttl:
		paths = append(paths, maskTTL)
	case *graphdv1.Thread_ExpireTime:
		paths = append(paths, maskExpire)
	}
	if req.GetThread().GetKeepCheckpoints() != 0 {
		paths = append(paths, maskKeep)
	}
	return paths
}

// setLabel sets one label, or removes it when the thread sent lacks it.
func setLabel(c *runtime.ThreadChange, key string, labels map[string]string) {
	value, set := labels[key]
	if !set {
		c.Drop = append(c.Drop, key)
		return
	}
	if c.Metadata == nil {
		c.Metadata = make(map[string]string)
	}
	c.Metadata[key] = value
}
