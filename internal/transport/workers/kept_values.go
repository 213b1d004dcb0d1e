package workers

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/worker"
)

// assignmentToProto converts a task for a worker that may keep values. It leaves those out that
// the worker has. isOrdered is true for a message of its stream: the worker is told to keep
// further values there, because they come before what refers to them. size is that of the message
// with all values.
func assignmentToProto(a *worker.Assignment, isOrdered bool) (out *graphdv1.TaskAssignment, size int) {
	if a.Kept == nil || a.Task.Digests == nil || !wire.ReadsChannels(a.Task) {
		out = wire.TaskAssignmentToProto(*a)
		return out, proto.Size(out)
	}
	out = wire.AssignmentWithoutChannels(*a)
	out.Channels = make(map[string]*graphdv1.Payload)
	for key, value := range a.Task.State.StoredValues() {
		bytes := value.Size()
		if !a.Kept.MayKeep(bytes) {
			out.Channels[key] = wire.JSONToProto(value.Text())
			continue
		}
		if out.Kept == nil {
			out.Kept = &graphdv1.KeptValues{Keep: make(map[string][]byte), Use: make(map[string][]byte)}
		}
		digest := a.Task.Digests.DigestValue(key, value)
		if a.Kept.UseValue(digest) {
			out.Kept.Use[key] = digest[:]
			size += bytes
			continue
		}
		out.Channels[key] = wire.JSONToProto(value.Text())
		if isOrdered {
			out.Kept.Keep[key] = digest[:]
			a.Kept.AddValue(digest, bytes)
		}
	}
	return out, size + proto.Size(out)
}

// finishKeptValues completes a task that is sent on the stream of its worker with the values that the
// worker is to forget.
func finishKeptValues(a *worker.Assignment, out *graphdv1.TaskAssignment) {
	for _, d := range a.Kept.TakeForgotten() {
		if out.Kept == nil {
			out.Kept = &graphdv1.KeptValues{}
		}
		out.Kept.Forget = append(out.Kept.Forget, d[:])
	}
}

// dropKeptValues forgets the values of a task that is not sent after all.
func dropKeptValues(a *worker.Assignment, out *graphdv1.TaskAssignment) {
	for _, d := range out.GetKept().GetKeep() {
		a.Kept.RemoveValues([]worker.ValueDigest{worker.ValueDigest(d)})
	}
}

// digestsFromProto converts the digests of values that a worker lacks.
func digestsFromProto(v *wire.Validator, field string, list [][]byte) []worker.ValueDigest {
	if n := len(list); n > worker.MaxKeptValues {
		v.AddViolation(field, "has %d entries; at most %d are allowed", n, worker.MaxKeptValues)
		return nil
	}
	var out []worker.ValueDigest
	for i, d := range list {
		if len(d) != len(worker.ValueDigest{}) {
			v.AddViolation(field+"["+strconv.Itoa(i)+"]", "has %d bytes; a SHA-256 has %d", len(d), len(worker.ValueDigest{}))
			continue
		}
		out = append(out, worker.ValueDigest(d))
	}
	return out
}
