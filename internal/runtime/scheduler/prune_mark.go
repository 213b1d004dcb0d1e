package scheduler

import "time"

// PruneMark is what a live run knows of its last prune.
type PruneMark struct {
	At      time.Duration // uptime of the engine, 0 = not yet
	Seq     uint64        // the thread's last checkpoint then
	HasMore bool          // there was more to cut off than is cut off at once
}
