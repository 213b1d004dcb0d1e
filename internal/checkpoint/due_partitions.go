package checkpoint

import (
	"context"
	"time"
)

// DuePartitions is an optional part of a store whose due threads lie in partitions, which
// servers may share among them, and of which some may fail while others do not.
type DuePartitions interface {
	PartitionCount() int
	// PartitionOf returns the partition of a thread. It never changes.
	PartitionOf(thread string) int
	// LookForDue looks at partitions, and returns what it finds in each. A partition that
	// does not answer must not keep the others from being returned.
	LookForDue(ctx context.Context, looks []DueLook) []DueThreads
}

// DueLook is a look at a partition.
type DueLook struct {
	Partition int
	Skip      int // due threads that are not returned, longest due first
	Limit     int // threads that are returned at most
}

// DueThreads is what a look finds. The threads are due as Index.Due says it, and in its order.
type DueThreads struct {
	Threads []string
	Count   int           // due threads, also those that are not returned
	Late    time.Duration // how long ago the first of all became due
	Next    time.Duration // until the next becomes due, 0 = none is known
	Err     error         // nothing else is set
}
