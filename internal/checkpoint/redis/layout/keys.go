// Package layout says where a store keeps what in Redis: names of keys, members of
// indexes, fields of values, and how records are sealed.
package layout

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// Format is the number of the layout of keys and records that is written. A
// change of what is written needs the next number and a migration.
const Format = 3

// OldestFormat is the first format that a store can be migrated from. Nothing
// was released that wrote an earlier one.
const OldestFormat = 2

const slotCount = 16384

// MaxPartitions is how many partitions a store has at most.
const MaxPartitions = 1024

// Keys names the keys of a store. All keys of a partition carry one hash tag
// and lie in one slot of a cluster, so that one script may touch any of them.
type Keys struct {
	prefix string
	tags   []string // by partition
}

// NewKeys makes the names of a store with some partitions. With 0 it names what
// stands beside the partitions: the metadata, the graphs, the membership.
func NewKeys(prefix string, partitions int) Keys {
	l := Keys{prefix: prefix, tags: make([]string, partitions)}
	for i := range l.tags {
		l.tags[i] = findHashTag(i, partitions)
	}
	return l
}

// PartitionCount is how many partitions the store has.
func (l *Keys) PartitionCount() int { return len(l.tags) }

// AllPartitions lists the partitions.
func (l *Keys) AllPartitions() []int {
	out := make([]int, len(l.tags))
	for i := range out {
		out[i] = i
	}
	return out
}

// findHashTag finds a hash tag for a partition, so that the partitions are spread
// evenly over the slots.
func findHashTag(i, partitions int) string {
	for n := 0; ; n++ {
		t := strconv.Itoa(i)
		if n > 0 {
			t += "." + strconv.Itoa(n)
		}
		if int(hashSlot(t))*partitions/slotCount == i {
			return t
		}
	}
}

// hashSlot is the slot of a hash tag: CRC16 (XMODEM), as Redis Cluster has it.
func hashSlot(tag string) uint16 {
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % slotCount
}

// PartitionOf is the partition of a thread. It must never change.
func (l *Keys) PartitionOf(thread string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(thread)) // never fails
	return int(h.Sum64() % uint64(len(l.tags)))
}

// MetadataKey holds the metadata of the store.
func (l *Keys) MetadataKey() string { return l.prefix + "{meta}:format" }

// GraphsKey holds the graph definitions.
func (l *Keys) GraphsKey() string { return l.prefix + "{meta}:graphs" }

// GraphIndexKey holds when each version of a graph was made, and under "" how often
// any of it has changed.
func (l *Keys) GraphIndexKey() string { return l.prefix + "{meta}:graphs:index" }

// TombstonesKey holds what is remembered of deleted versions of graphs: when that
// was in microseconds, a space and the digest of the source.
func (l *Keys) TombstonesKey() string { return l.prefix + "{meta}:graphs:deleted" }

// TombstoneOrderKey holds the fields of tombstones in the order of deletion.
func (l *Keys) TombstoneOrderKey() string { return l.prefix + "{meta}:graphs:deleted:order" }

// MembershipKey holds the capabilities of each server.
func (l *Keys) MembershipKey() string { return l.prefix + "{meta}:roster" }

// PartitionKey names a key of a partition.
func (l *Keys) PartitionKey(partition int, name string) string {
	return l.prefix + "{" + l.tags[partition] + "}:" + name
}

// Names of the keys of a partition.
const (
	KeyThreads           = "threads"
	KeyChangedInterrupts = "inbox"
	KeyOpenInterrupts    = "open"
	KeyClosedInterrupts  = "closed"
	KeyDue               = "due"
	KeyChangeCount       = "count"
	KeyStoreMark         = "store"
)

// Letters of the keys of a thread.
const (
	KeyHead       = 'h'
	KeyValues     = 'v'
	KeyOrder      = 's'
	KeyProgress   = 'p'
	KeyInterrupts = 'q'
	KeyRecords    = 'r'
	KeyRuns       = 'o'
	KeyLog        = 'e'
)

// ThreadKeys names keys of a thread.
func (l *Keys) ThreadKeys(thread string, letters ...rune) []string {
	base := l.PartitionKey(l.PartitionOf(thread), "")
	keys := make([]string, len(letters), len(letters)+10)
	for i, letter := range letters {
		keys[i] = base + string(letter) + ":" + thread
	}
	return keys
}

// ChangeKeys names the keys that a change may touch, in the order of apply.lua: those
// of checkpoints and events, or all.
func (l *Keys) ChangeKeys(thread string, all bool) []string {
	p := l.PartitionOf(thread)
	keys := l.ThreadKeys(thread, KeyHead, KeyValues, KeyOrder, KeyLog)
	keys = append(keys, l.PartitionKey(p, KeyThreads), l.PartitionKey(p, KeyDue), l.PartitionKey(p, KeyStoreMark))
	if !all {
		return keys
	}
	keys = append(keys, l.ThreadKeys(thread, KeyProgress, KeyInterrupts, KeyRecords, KeyRuns)...)
	for _, name := range []string{KeyChangedInterrupts, KeyOpenInterrupts, KeyClosedInterrupts, KeyChangeCount} {
		keys = append(keys, l.PartitionKey(p, name))
	}
	return keys
}

// MigrationLockKey is held by the migration that is under way.
func (l *Keys) MigrationLockKey() string { return l.prefix + "{meta}:migration" }

// AnnouncementChannel is the channel on which servers announce the threads that
// they follow.
func (l *Keys) AnnouncementChannel() string { return l.prefix + "{meta}:greetings" }

// ThreadChannel names the channel of a thread.
func (l *Keys) ThreadChannel(thread string) string { return l.ThreadKeys(thread, KeyHead)[0] }

// ThreadOfChannel is the inverse of ThreadChannel.
func ThreadOfChannel(channel string) string {
	_, thread, _ := strings.Cut(channel, "}:h:")
	return thread
}

// MatchesThreads reports whether threads lie in the partitions in which they were found.
func (l *Keys) MatchesThreads(where map[string][]string) bool {
	for tag, threads := range where {
		if !slices.Contains(l.tags, tag) {
			return false
		}
		for _, thread := range threads {
			if l.tags[l.PartitionOf(thread)] != tag {
				return false
			}
		}
	}
	return true
}
