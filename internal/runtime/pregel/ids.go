package pregel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// idBuffer is large enough for the parts of usual ids. Longer ids spill to the
// heap.
type idBuffer = [256]byte

// appendParts appends length-prefixed parts, so that no two lists of parts collide by
// concatenation. Each kind of id begins with its own name and has its parts in
// a fixed order.
func appendParts(b []byte, parts ...string) []byte {
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}

func appendInt(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// hashID returns the first half of a hash as hex text.
func hashID(b []byte) string {
	sum := sha256.Sum256(b)
	var out [32]byte
	hex.Encode(out[:], sum[:16])
	return string(out[:])
}

// CheckpointID returns the id of a checkpoint. The number in it sorts; the
// hash makes the ids of different threads and incarnations differ. A repeated
// commit yields the same id.
func CheckpointID(thread, log string, seq uint64) string {
	var r idBuffer
	sum := sha256.Sum256(binary.AppendUvarint(appendParts(r[:0], "checkpoint", thread, log), seq))
	var id [21]byte
	const digits = "0123456789abcdef"
	for i := 11; i >= 0; i-- {
		id[i] = digits[seq&15]
		seq >>= 4
	}
	id[12] = '-'
	hex.Encode(id[13:], sum[:4])
	return string(id[:])
}

// CheckpointSeq returns the number in an id of CheckpointID, 0 for any other
// id.
func CheckpointSeq(id string) uint64 {
	number, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 16, 64)
	if err != nil || len(number) != 12 {
		return 0
	}
	return n
}

// VirtualCheckpointID returns the id of a checkpoint that is never stored:
// that of a subgraph without persistence.
func VirtualCheckpointID(task string, step int) string {
	var r idBuffer
	return hashID(appendInt(appendParts(r[:0], "virtual", task), step))
}

func pullID(checkpoint, namespace string, step int, node string) string {
	var r idBuffer
	return hashID(appendInt(appendParts(r[:0], "pull", checkpoint, namespace, node), step))
}

func pushID(checkpoint, namespace string, step int, node string, index int) string {
	var r idBuffer
	return hashID(appendInt(appendInt(appendParts(r[:0], "push", checkpoint, namespace, node), step), index))
}

// HandlerID returns the id of the task of an error handler for a failed task.
func HandlerID(handler, failed string) string {
	var r idBuffer
	return hashID(appendParts(r[:0], "handler", handler, failed))
}

// InterruptID returns the id of an interrupt. It is the same each time the task
// runs, and differs for every interrupt and every later visit of the node. round
// counts how often a replay asked something else at this place.
func InterruptID(task, scope, key string, index, round int) string {
	var r idBuffer
	b := appendInt(appendParts(r[:0], "interrupt", task, scope, key), index)
	if round > 0 {
		b = appendInt(b, round)
	}
	return hashID(b)
}

// messageID returns the id of a message that was written without an id. It depends on
// the position of the write.
func messageID(checkpoint, channel string, write, n int) string {
	var r idBuffer
	return hashID(appendInt(appendInt(appendParts(r[:0], "message", checkpoint, channel), write), n))
}

// BreakpointID returns the id of the pause before or after a superstep.
func BreakpointID(checkpoint, when string) string {
	var r idBuffer
	return hashID(appendParts(r[:0], "breakpoint", checkpoint, when))
}
