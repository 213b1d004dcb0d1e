package workers

import (
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/worker"
)

// assignmentToProto converts a task for a worker that may keep values. It leaves those out that
// the worker has. isOrdered is true for a message of its stream: the worker is told to keep
// further values there, because they come before what refers to them. size is that of the message
// with all values and without their digests, so that it does not depend on what the worker has.
func assignmentToProto(a *worker.Assignment, isOrdered bool) (out *graphdv1.TaskAssignment, size int) {
	if a.Kept == nil || a.Task.Digests == nil || !wire.ReadsChannels(a.Task) {
		out = wire.TaskAssignmentToProto(*a)
		return out, proto.Size(out)
	}
	out = wire.AssignmentWithoutChannels(*a)
	out.Channels = make(map[string]*graphdv1.Payload)
	var named *graphdv1.KeptValues
	for key, value := range a.Task.State.StoredValues() {
		bytes := value.Size()
		if !a.Kept.MayKeep(bytes) {
			out.Channels[key] = wire.JSONToProto(value.Text())
			continue
		}
		if named == nil {
			named = &graphdv1.KeptValues{Keep: make(map[string][]byte), Use: make(map[string][]byte)}
		}
		digest := a.Task.Digests.DigestValue(key, value)
		if a.Kept.UseValue(digest) {
			named.Use[key] = digest[:]
			size += channelSize(key, bytes)
			continue
		}
		out.Channels[key] = wire.JSONToProto(value.Text())
		if isOrdered && len(named.GetKeep()) < maxNamed {
			named.Keep[key] = digest[:]
		}
	}
	size += proto.Size(out)
	out.Kept = named
	return out, size
}

// maxNamed bounds the digests of a message, which do not count in its size, by less than gRPC lets a
// message exceed the limit.
const maxNamed = 256

// channelSize returns the bytes that a value takes in a task.
func channelSize(key string, text int) int {
	payload := protowire.SizeTag(1) + protowire.SizeBytes(text)
	entry := protowire.SizeTag(1) + protowire.SizeBytes(len(key)) + protowire.SizeTag(2) + protowire.SizeBytes(payload)
	return protowire.SizeTag(channelsField) + protowire.SizeBytes(entry)
}

// channelsField is the number of TaskAssignment.channels.
const channelsField = 17

// noteKeptValues notes what the worker is told to keep by a task that is sent on its stream, and adds
// what it is to forget.
func noteKeptValues(a *worker.Assignment, out *graphdv1.TaskAssignment) {
	for key, d := range out.GetKept().GetKeep() {
		a.Kept.AddValue(worker.ValueDigest(d), len(out.GetChannels()[key].GetJson()))
	}
	for _, d := range a.Kept.TakeForgotten(maxNamed) {
		if out.Kept == nil {
			out.Kept = &graphdv1.KeptValues{}
		}
		out.Kept.Forget = append(out.Kept.Forget, d[:])
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
