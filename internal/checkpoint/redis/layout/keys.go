// Package layout defines the layout of a store in Redis: names of keys, members of
// indexes, fields of values, and how records are sealed.
package layout

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/tenant"
)

// Format is the number of the layout of keys and records that graphd writes. A change of
// the layout needs the next number and a migration.
const Format = 6

// OldestFormat is the first format from which a store can be migrated. No release wrote an
// earlier format.
const OldestFormat = 2

const slotCount = 16384

// MaxPartitions is the greatest number of partitions of a store.
const MaxPartitions = 1024

// Keys names the keys of a store. All keys of a partition have the same hash tag and lie
// in the same slot of a cluster, so that a script may access all of them.
type Keys struct {
	prefix string
	tags   []string // by partition
}

// NewKeys makes the names of a store with that many partitions. With 0 it names only the
// keys outside partitions: the metadata, the graphs, the membership.
func NewKeys(prefix string, partitions int) Keys {
	l := Keys{prefix: prefix, tags: make([]string, partitions)}
	for i := range l.tags {
		l.tags[i] = findHashTag(i, partitions)
	}
	return l
}

// PartitionCount returns the number of partitions of the store.
func (k *Keys) PartitionCount() int { return len(k.tags) }

// AllPartitions lists the partitions.
func (k *Keys) AllPartitions() []int {
	out := make([]int, len(k.tags))
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

// hashSlot returns the slot of a hash tag: CRC16 (XMODEM), as in Redis Cluster.
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

// PartitionOf returns the partition of a thread. It must never change.
func (k *Keys) PartitionOf(thread string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(thread)) // never fails
	return int(h.Sum64() % uint64(len(k.tags)))
}

// MetadataKey holds the metadata of the store.
func (k *Keys) MetadataKey() string { return k.prefix + "{meta}:format" }

// GraphsKey holds the graph definitions.
func (k *Keys) GraphsKey() string { return k.prefix + "{meta}:graphs" }

// GraphIndexKey holds when each version of a graph was made, and under "" how often
// any of it has changed.
func (k *Keys) GraphIndexKey() string { return k.prefix + "{meta}:graphs:index" }

// TombstonesKey holds the tombstones of deleted versions of graphs: the time of the
// deletion in microseconds, a space and the digest of the source.
func (k *Keys) TombstonesKey() string { return k.prefix + "{meta}:graphs:deleted" }

// TombstoneOrderKey holds the fields of tombstones in the order of deletion.
func (k *Keys) TombstoneOrderKey() string { return k.prefix + "{meta}:graphs:deleted:order" }

// MembershipKey holds the capabilities of each server.
func (k *Keys) MembershipKey() string { return k.prefix + "{meta}:roster" }

// PartitionKey names a key of a partition.
func (k *Keys) PartitionKey(partition int, name string) string {
	return k.prefix + "{" + k.tags[partition] + "}:" + name
}

// Names of the keys of a partition. Lists of threads and interrupts have one key for each
// tenant, see TenantKey.
const (
	KeyThreads           = "threads"
	KeyThreadTags        = "threadtags"
	KeyChangedInterrupts = "inbox"
	KeyOpenInterrupts    = "open"
	KeyClosedInterrupts  = "closed"
	KeyTags              = "tags"
	KeyDue               = "due"
	KeyChangeCount       = "count"
	KeyStoreMark         = "store"
	// KeyTenants lists the tenants besides tenant.Default that have threads in the
	// partition.
	KeyTenants = "tenants"
)

// TenantKey returns the name of the key in which a list of a partition has the entries of a
// tenant. The lists of tenant.Default have the names that they had before there were
// tenants.
func TenantKey(name, owner string) string {
	if owner == tenant.Default {
		return name
	}
	return name + string(tenant.Separator) + owner
}

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
func (k *Keys) ThreadKeys(thread string, letters ...rune) []string {
	base := k.PartitionKey(k.PartitionOf(thread), "")
	keys := make([]string, len(letters), len(letters)+12)
	for i, letter := range letters {
		keys[i] = base + string(letter) + ":" + thread
	}
	return keys
}

// ThreadTagsKey names the list of tags of threads that has those of a thread.
func (k *Keys) ThreadTagsKey(thread string) string {
	owner, _ := tenant.Split(thread)
	return k.PartitionKey(k.PartitionOf(thread), TenantKey(KeyThreadTags, owner))
}

// TagsKey names the list of tags that has those of the interrupts of a thread.
func (k *Keys) TagsKey(thread string) string {
	owner, _ := tenant.Split(thread)
	return k.PartitionKey(k.PartitionOf(thread), TenantKey(KeyTags, owner))
}

// ChangeKeys names the keys that a change may touch, in the order of apply.lua: those
// of checkpoints and events, or all.
func (k *Keys) ChangeKeys(thread string, all bool) []string {
	p := k.PartitionOf(thread)
	owner, _ := tenant.Split(thread)
	keys := k.ThreadKeys(thread, KeyHead, KeyValues, KeyOrder, KeyLog)
	keys = append(keys, k.PartitionKey(p, TenantKey(KeyThreads, owner)), k.PartitionKey(p, KeyDue), k.PartitionKey(p, KeyStoreMark),
		k.PartitionKey(p, TenantKey(KeyThreadTags, owner)))
	if !all {
		return keys
	}
	keys = append(keys, k.ThreadKeys(thread, KeyProgress, KeyInterrupts, KeyRecords, KeyRuns)...)
	for _, name := range []string{KeyChangedInterrupts, KeyOpenInterrupts, KeyClosedInterrupts, KeyTags} {
		keys = append(keys, k.PartitionKey(p, TenantKey(name, owner)))
	}
	keys = append(keys, k.PartitionKey(p, KeyChangeCount))
	if owner != tenant.Default {
		keys = append(keys, k.PartitionKey(p, KeyTenants))
	}
	return keys
}

// MigrationLockKey is held by the migration that is under way.
func (k *Keys) MigrationLockKey() string { return k.prefix + "{meta}:migration" }

// AnnouncementChannel is the channel on which servers announce the threads that
// they follow.
func (k *Keys) AnnouncementChannel() string { return k.prefix + "{meta}:greetings" }

// ThreadChannel names the channel of a thread.
func (k *Keys) ThreadChannel(thread string) string { return k.ThreadKeys(thread, KeyHead)[0] }

// ThreadOfChannel is the inverse of ThreadChannel.
func ThreadOfChannel(channel string) string {
	_, thread, _ := strings.Cut(channel, "}:h:")
	return thread
}

// MatchesThreads reports whether each thread belongs to the partition that lists it.
func (k *Keys) MatchesThreads(where map[string][]string) bool {
	for tag, threads := range where {
		if !slices.Contains(k.tags, tag) {
			return false
		}
		for _, thread := range threads {
			if k.tags[k.PartitionOf(thread)] != tag {
				return false
			}
		}
	}
	return true
}
