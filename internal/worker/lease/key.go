package lease

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// KeyOf names a piece of work, over restarts too. A node that has got answers
// is another piece of work than before: a result from before must not pass for
// one from after. So is the same task in a copy of its thread.
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

// PlaceOf is what the keys of all passes of a node have in common.
func PlaceOf(t *runtime.Task) string { return t.ID + nodeKeyMark + ":" + threadHash(t) }

// threadHash stands for the thread in a key: its id may look like any part of one.
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
