package redis

import (
	"hash/fnv"
	"strconv"
)

const slotCount = 16384

// keyLayout names the keys of a store. All keys of a partition carry one hash tag
// and lie in one slot of a cluster, so that one script may touch any of them.
type keyLayout struct {
	prefix string
	tags   []string // by partition
}

func newKeyLayout(prefix string, partitions int) keyLayout {
	l := keyLayout{prefix: prefix, tags: make([]string, partitions)}
	for i := range l.tags {
		l.tags[i] = findHashTag(i, partitions)
	}
	return l
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

// partitionOf is the partition of a thread. It must never change.
func (l *keyLayout) partitionOf(thread string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(thread)) // never fails
	return int(h.Sum64() % uint64(len(l.tags)))
}

// metadataKey holds the metadata of the store.
func (l *keyLayout) metadataKey() string { return l.prefix + "{meta}:format" }

// graphsKey holds the graph definitions.
func (l *keyLayout) graphsKey() string { return l.prefix + "{meta}:graphs" }

// graphIndexKey holds when each version of a graph was made, and under "" how often
// any of it has changed.
func (l *keyLayout) graphIndexKey() string { return l.prefix + "{meta}:graphs:index" }

// tombstonesKey holds what is remembered of deleted versions of graphs: when that
// was in microseconds, a space and the digest of the source.
func (l *keyLayout) tombstonesKey() string { return l.prefix + "{meta}:graphs:deleted" }

// tombstoneOrderKey holds the fields of tombstones in the order of deletion.
func (l *keyLayout) tombstoneOrderKey() string { return l.prefix + "{meta}:graphs:deleted:order" }

// membershipKey holds the capabilities of each server.
func (l *keyLayout) membershipKey() string { return l.prefix + "{meta}:roster" }

// partitionKey names a key of a partition.
func (l *keyLayout) partitionKey(partition int, name string) string {
	return l.prefix + "{" + l.tags[partition] + "}:" + name
}

// Names of the keys of a partition.
const (
	keyThreads           = "threads"
	keyChangedInterrupts = "inbox"
	keyOpenInterrupts    = "open"
	keyClosedInterrupts  = "closed"
	keyDue               = "due"
	keyChangeCount       = "count"
	keyStoreMark         = "store"
)

// Letters of the keys of a thread.
const (
	keyHead       = 'h'
	keyValues     = 'v'
	keyOrder      = 's'
	keyProgress   = 'p'
	keyInterrupts = 'q'
	keyRecords    = 'r'
	keyRuns       = 'o'
	keyLog        = 'e'
)

// threadKeys names keys of a thread.
func (l *keyLayout) threadKeys(thread string, letters ...rune) []string {
	base := l.partitionKey(l.partitionOf(thread), "")
	keys := make([]string, len(letters), len(letters)+10)
	for i, letter := range letters {
		keys[i] = base + string(letter) + ":" + thread
	}
	return keys
}

// changeKeys names the keys that a change may touch, in the order of apply.lua: those
// of checkpoints and events, or all.
func (l *keyLayout) changeKeys(thread string, all bool) []string {
	p := l.partitionOf(thread)
	keys := l.threadKeys(thread, keyHead, keyValues, keyOrder, keyLog)
	keys = append(keys, l.partitionKey(p, keyThreads), l.partitionKey(p, keyDue), l.partitionKey(p, keyStoreMark))
	if !all {
		return keys
	}
	keys = append(keys, l.threadKeys(thread, keyProgress, keyInterrupts, keyRecords, keyRuns)...)
	for _, name := range []string{keyChangedInterrupts, keyOpenInterrupts, keyClosedInterrupts, keyChangeCount} {
		keys = append(keys, l.partitionKey(p, name))
	}
	return keys
}
