package wire

import (
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// ThreadToProto converts a thread.
func ThreadToProto(h checkpoint.Head) *graphdv1.Thread {
	out := &graphdv1.Thread{
		ThreadId: tenant.ClientName(h.Thread), Graph: tenant.ClientName(h.Graph), GraphVersion: h.Version, Metadata: h.Metadata,
		State: threadStateToProto(h.State), CreateTime: TimeToProto(h.Created), UpdateTime: TimeToProto(h.Updated),
		Head: CursorToProto(h.LogID, h.LastEvent), Checkpoint: CheckpointRefToProto(h.Checkpoint, ""),
		RunId: h.Run, Etag: formatEtag(h.Revision), KeepCheckpoints: int32(h.Keep),
	}
	if h.Faults > 0 {
		out.Fault = &graphdv1.ThreadFault{Failures: int32(h.Faults), RetryTime: TimeToProto(h.RetryAt)}
	}
	switch {
	case h.TTL > 0:
		out.Expiration = &graphdv1.Thread_Ttl{Ttl: DurationToProto(h.TTL)}
	case !h.Expires.IsZero():
		out.Expiration = &graphdv1.Thread_ExpireTime{ExpireTime: TimeToProto(h.Expires)}
	}
	return out
}

func expirationFromProto(v *Validator, t *graphdv1.Thread) runtime.Expiration {
	switch e := t.GetExpiration().(type) {
	case *graphdv1.Thread_ExpireTime:
		v.RequireSet("thread.expire_time", e.ExpireTime != nil)
		return runtime.Expiration{At: v.convertTime("thread.expire_time", e.ExpireTime)}
	case *graphdv1.Thread_Ttl:
		v.RequireSet("thread.ttl", e.Ttl != nil)
		return runtime.Expiration{TTL: v.convertPositiveDuration("thread.ttl", e.Ttl)}
	}
	return runtime.Expiration{}
}

func keepCheckpointsFromProto(v *Validator, t *graphdv1.Thread) int {
	n := int(t.GetKeepCheckpoints())
	if n < -1 {
		v.AddViolation("thread.keep_checkpoints", "is %d, want a number, 0 for as many as the server keeps, or -1 for all", n)
	}
	return n
}

// NewThreadFromProto converts a request to make a thread.
func NewThreadFromProto(v *Validator, req *graphdv1.CreateThreadRequest) runtime.CreateThreadRequest {
	t := req.GetThread()
	refuseOutputFields(v, t)
	if t.GetThreadId() != "" && t.GetThreadId() != req.GetThreadId() {
		v.AddViolation("thread.thread_id", "differs from thread_id; set thread_id alone")
	}
	if t.GetEtag() != "" {
		v.AddViolation("thread.etag", "a new thread has none")
	}
	return runtime.CreateThreadRequest{
		Tenant:          v.Tenant(),
		Thread:          v.CheckOptionalThread("thread_id", req.GetThreadId()),
		Graph:           v.CheckGraphName("thread.graph", t.GetGraph()),
		Version:         v.CheckName("thread.graph_version", t.GetGraphVersion()),
		Metadata:        v.CheckLabels("thread.metadata", t.GetMetadata()),
		Expiration:      expirationFromProto(v, t),
		KeepCheckpoints: keepCheckpointsFromProto(v, t),
		RequestID:       v.CheckOptionalID("request_id", req.GetRequestId()),
	}
}

// refuseOutputFields refuses fields that only the server sets, because a client
// that sets them expects an effect that they do not have.
func refuseOutputFields(v *Validator, t *graphdv1.Thread) {
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
			v.AddViolation("thread."+f.name, "is set by the server; leave it unset")
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

// ThreadChangeFromProto converts a change of a thread. It ignores fields that the
// mask does not name, so that a client may send back a thread that it read.
func ThreadChangeFromProto(v *Validator, req *graphdv1.UpdateThreadRequest) runtime.UpdateThreadRequest {
	t := req.GetThread()
	v.RequireSet("thread", t != nil)
	c := runtime.UpdateThreadRequest{
		Thread: v.CheckThread("thread.thread_id", t.GetThreadId()),
		Etag:   v.ParseEtag("thread.etag", t.GetEtag()),
	}
	labels := v.CheckLabels("thread.metadata", t.GetMetadata())
	paths := threadMaskPaths(req)
	if len(paths) == 0 {
		v.AddViolation("update_mask", "is empty and thread sets nothing that can be changed: metadata, ttl, expire_time, keep_checkpoints")
	}
	for _, path := range paths {
		key, isLabel := strings.CutPrefix(path, maskMetadata+".")
		switch {
		case path == maskAll:
			c.Metadata, c.ReplaceMetadata = labels, true
			e := expirationFromProto(v, t)
			keep := keepCheckpointsFromProto(v, t)
			c.Expiration, c.KeepCheckpoints = &e, &keep
		case path == maskKeep:
			keep := keepCheckpointsFromProto(v, t)
			c.KeepCheckpoints = &keep
		case path == maskMetadata:
			c.Metadata, c.ReplaceMetadata = labels, true
		case isLabel && key != "":
			setLabel(&c, key, labels)
		case path == maskTTL || path == maskExpire:
			e := expirationFromProto(v, t)
			if (path == maskTTL) != e.At.IsZero() && e != (runtime.Expiration{}) {
				v.AddViolation("update_mask", "names %q, but thread has the other kind of expiration", path)
			}
			c.Expiration = &e
		default:
			v.AddViolation("update_mask", "%q is not among *, metadata, metadata.KEY, ttl, expire_time, keep_checkpoints",
				reason.ClipText(path, MaxNameLength))
		}
	}
	return c
}

// threadMaskPaths returns the mask; without a mask, the fields that are set.
func threadMaskPaths(req *graphdv1.UpdateThreadRequest) []string {
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

// setLabel sets a label, or removes it when the thread in the request lacks it.
func setLabel(c *runtime.UpdateThreadRequest, key string, labels map[string]string) {
	value, set := labels[key]
	if !set {
		c.DropKeys = append(c.DropKeys, key)
		return
	}
	if c.Metadata == nil {
		c.Metadata = make(map[string]string)
	}
	c.Metadata[key] = value
}
