package pregel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// hash writes length-prefixed parts, so that no two lists of parts collide by
// concatenation.
func hash(parts ...string) [sha256.Size]byte {
	var stack [256]byte
	buf := stack[:0]
	for _, p := range parts {
		buf = binary.AppendUvarint(buf, uint64(len(p)))
		buf = append(buf, p...)
	}
	return sha256.Sum256(buf)
}

func hexID(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:16]) }

// CheckpointID names a checkpoint: the number sorts, the hash makes ids of
// different threads and incarnations differ. The same commit tried again gets
// the same id.
func CheckpointID(thread, log string, seq uint64) string {
	sum := hash("checkpoint", thread, log, strconv.FormatUint(seq, 10))
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

// VirtualCheckpointID names a checkpoint that is never stored: one of a
// subgraph without persistence.
func VirtualCheckpointID(task string, step int) string {
	return hexID(hash("virtual", task, strconv.Itoa(step)))
}

func pullID(checkpoint, namespace string, step int, node string) string {
	return hexID(hash("pull", checkpoint, namespace, strconv.Itoa(step), node))
}

func pushID(checkpoint, namespace string, step int, node string, index int) string {
	return hexID(hash("push", checkpoint, namespace, strconv.Itoa(step), node, strconv.Itoa(index)))
}

func handlerID(handler, failed string) string {
	return hexID(hash("handler", handler, failed))
}

// InterruptID names a question. It is the same each time the task is run, and
// differs for every question and for every later visit of the node.
func InterruptID(task, scope, key string, index int) string {
	return hexID(hash("interrupt", task, scope, key, strconv.Itoa(index)))
}

// BreakpointID names the pause before or after a superstep.
func BreakpointID(checkpoint, when string) string {
	return hexID(hash("breakpoint", checkpoint, when))
}
