package lease

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// KeyOf returns the key of a task. The key stays the same over restarts. It changes with
// the answers of a node, so that a result from before an answer is not used after it. The
// same task in a copy of its thread has another key.
func KeyOf(t *runtime.Task) string {
	switch {
	case t.Reduce != nil:
		return t.ID + ":reduce:" + t.Reduce.Channel + ":" + threadHash(t)
	case t.Router != "":
		return t.ID + ":route:" + t.Branch + ":" + threadHash(t)
	}
	return PlaceOf(t) + ":" + passHash(t)
}

// nodeKeyMark marks the keys of nodes.
const nodeKeyMark = ":run"

// PlaceOf returns the part that the keys of all passes of a node have in common: the task
// and its thread, without the answers.
func PlaceOf(t *runtime.Task) string { return t.ID + nodeKeyMark + ":" + threadHash(t) }

// threadHash returns the thread's part of a key. A hash is used because the id of
// a thread may look like any part of a key.
func threadHash(t *runtime.Task) string {
	sum := sha256.Sum256([]byte(t.Thread))
	return hex.EncodeToString(sum[:8])
}

// passHash distinguishes the passes of a node that is interrupted.
func passHash(t *runtime.Task) string {
	if len(t.Journal.Answers)+len(t.LastWaiting) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, a := range t.Journal.Answers {
		sum.Write([]byte(a.InterruptID + "\n"))
	}
	sum.Write([]byte("\n"))
	for _, id := range t.LastWaiting {
		sum.Write([]byte(id + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
