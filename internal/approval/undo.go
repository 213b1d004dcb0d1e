package approval

import (
	"fmt"
	"time"
)

// MaxUndo bounds how long an answer can be taken back: the run waits as long.
const MaxUndo = 24 * time.Hour

// CheckUndo returns what is wrong with the time for which an answer can be taken back, "" for
// nothing. nil is the default of the server.
func CheckUndo(undo *time.Duration) string {
	if undo == nil || *undo >= 0 && *undo <= MaxUndo {
		return ""
	}
	return fmt.Sprintf("is %s; want 0s, for not at all, to %s", *undo, MaxUndo)
}
