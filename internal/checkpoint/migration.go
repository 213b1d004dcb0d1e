package checkpoint

// Migration describes the work to bring a store to another format, and how much
// of it is done.
type Migration struct {
	From, To int // formats; the same when there is nothing to do
	Threads  int // of the store
	Done     int // of them, those that are looked through
	Changed  int // of them, those of which records were written anew
	// Unreadable names the threads with records that can't be read. These stay as they are.
	Unreadable []string
	// UnreadableRecords says of the first of these records which they are and why. Redis
	// says so of none.
	UnreadableRecords []string
	// Warnings tell what an operator should know of the store as it is now.
	Warnings []string
}

// Loss is the missing part of a store.
type Loss struct {
	MetadataLost   bool     // the metadata of the store, and perhaps its graphs with it
	LostPartitions []string // parts of it that are gone with their threads
	PartitionCount int      // how many parts there are
}
