package redis

import (
	"hash/fnv"
	"strconv"
)

const slots = 16384

// layout names the keys of a store. All keys of a partition carry one hash tag
// and lie in one slot of a cluster, so that one script may touch any of them.
type layout struct {
	prefix string
	tags   []string // by partition
}

func newLayout(prefix string, partitions int) layout {
	l := layout{prefix: prefix, tags: make([]string, partitions)}
	for i := range l.tags {
		l.tags[i] = tag(i, partitions)
	}
	return l
}

// tag finds a hash tag for a partition, so that the partitions are spread
// evenly over the slots.
func tag(i, partitions int) string {
	for n := 0; ; n++ {
		t := strconv.Itoa(i)
		if n > 0 {
			t += "." + strconv.Itoa(n)
		}
		if int(slot(t))*partitions/slots == i {
			return t
		}
	}
}

// slot is the slot of a hash tag: CRC16 (XMODEM), as Redis Cluster has it.
func slot(tag string) uint16 {
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
	return crc % slots
}

// partition is the partition of a thread. It must never change.
func (l *layout) partition(thread string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(thread)) // never fails
	return int(h.Sum64() % uint64(len(l.tags)))
}

// meta holds what the whole store agrees on.
func (l *layout) meta() string { return l.prefix + "{meta}:format" }

// graphs holds the graph definitions.
func (l *layout) graphs() string { return l.prefix + "{meta}:graphs" }

// graphIndex holds when each version of a graph was made, and under "" how often
// any of it has changed.
func (l *layout) graphIndex() string { return l.prefix + "{meta}:graphs:index" }

// tombstones holds what is remembered of deleted versions of graphs: when that
// was in microseconds, a space and the digest of the source.
func (l *layout) tombstones() string { return l.prefix + "{meta}:graphs:deleted" }

// tombstoneOrder holds the fields of tombstones in the order of deletion.
func (l *layout) tombstoneOrder() string { return l.prefix + "{meta}:graphs:deleted:order" }

// roster holds what the workers of each server take.
func (l *layout) roster() string { return l.prefix + "{meta}:roster" }

// of names a key of a partition.
func (l *layout) of(partition int, name string) string {
	return l.prefix + "{" + l.tags[partition] + "}:" + name
}

// Names of the keys of a partition.
const (
	keyThreads = "threads"
	keyInbox   = "inbox"
	keyOpen    = "open"
	keyClosed  = "closed"
	keyDue     = "due"
	keyCount   = "count"
	keyStore   = "store"
)

// Letters of the keys of a thread.
const (
	keyHead      = 'h'
	keyValues    = 'v'
	keyOrder     = 's'
	keyProgress  = 'p'
	keyQuestions = 'q'
	keyRecords   = 'r'
	keyRuns      = 'o'
	keyLog       = 'e'
)

// thread names keys of a thread.
func (l *layout) thread(thread string, letters ...rune) []string {
	base := l.of(l.partition(thread), "")
	keys := make([]string, len(letters), len(letters)+10)
	for i, letter := range letters {
		keys[i] = base + string(letter) + ":" + thread
	}
	return keys
}

// change names the keys that a change may touch, in the order of apply.lua: those
// of checkpoints and events, or all.
func (l *layout) change(thread string, all bool) []string {
	p := l.partition(thread)
	keys := l.thread(thread, keyHead, keyValues, keyOrder, keyLog)
	keys = append(keys, l.of(p, keyThreads), l.of(p, keyDue), l.of(p, keyStore))
	if !all {
		return keys
	}
	keys = append(keys, l.thread(thread, keyProgress, keyQuestions, keyRecords, keyRuns)...)
	for _, name := range []string{keyInbox, keyOpen, keyClosed, keyCount} {
		keys = append(keys, l.of(p, name))
	}
	return keys
}
