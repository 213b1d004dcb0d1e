package setup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// Each partition has a key that identifies its store: the mark. The scripts that change
// threads compare it with the mark in their arguments. A Redis server that came back
// empty, or with the keys of another store, or in another format, so takes no change of
// a graphd that opened it before.

// storeIdentity is the content of all marks of a store.
type storeIdentity struct {
	format     int
	partitions int
	epoch      string // 32 hexadecimal digits, drawn when the store was made
}

func (i storeIdentity) encodeMark() string {
	return strconv.Itoa(i.format) + " " + strconv.Itoa(i.partitions) + " " + i.epoch
}

// encodeMetadata returns the metadata of a store whose partitions all have their marks.
func (i storeIdentity) encodeMetadata() map[string]string {
	return map[string]string{
		fieldFormat: strconv.Itoa(i.format), fieldPartitions: strconv.Itoa(i.partitions), fieldEpoch: i.epoch, fieldComplete: "yes",
	}
}

func parseMark(text string) (i storeIdentity, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 3 {
		return i, false
	}
	var bad error
	i.epoch = parts[2]
	i.format, bad = strconv.Atoi(parts[0])
	if bad == nil {
		i.partitions, bad = strconv.Atoi(parts[1])
	}
	return i, bad == nil && i.epoch != "" && i.partitions > 0 && i.partitions <= layout.MaxPartitions
}

// readMarks reads the mark of each partition, "" = it has none.
func (d *Database) readMarks(ctx context.Context, partitions []int) ([]string, error) {
	out := make([]string, len(partitions))
	err := script.Retry(ctx, func() error {
		pipe := d.Client.Pipeline()
		sent := make([]*goredis.StringCmd, len(partitions))
		for i, p := range partitions {
			sent[i] = pipe.Get(ctx, d.Keys.PartitionKey(p, layout.KeyStoreMark))
		}
		_, _ = pipe.Exec(ctx) // each command holds its error
		for i, cmd := range sent {
			text, err := cmd.Result()
			if err != nil && !errors.Is(err, goredis.Nil) {
				return err
			}
			out[i] = text
		}
		return nil
	})
	return out, err
}

// OtherStoreError returns the error for a partition with another mark than that of the
// opened store. It names the store found there and the correction.
func (d *Database) OtherStoreError(partition int, found string) error {
	key := d.Keys.PartitionKey(partition, layout.KeyStoreMark)
	other, known := parseMark(found)
	switch {
	case found == "":
		return storeReplacedError("the key %s is missing: Redis came back empty or without this partition. Restore a backup, and changes go on; "+
			"or restart the servers, and the first of them makes a new store or says what is left", key)
	case !known:
		return storeReplacedError("the key %s holds %.80q, which graphd did not write: restore a backup", key, found)
	case other.format > layout.Format:
		return storeReplacedError("the store was migrated to format %d, this graphd knows up to %d: "+
			"replace this server by the newer graphd", other.format, layout.Format)
	case other.format < layout.Format:
		return storeReplacedError("the store has format %d again, this graphd writes %d: stop all servers and run graphd store migrate",
			other.format, layout.Format)
	}
	return storeReplacedError("the key %s is of the store %s, and %s was opened: restart this server to use the new one, or bring back the other",
		key, other.epoch, d.Epoch)
}

func storeReplacedError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{checkpoint.ErrStoreReplaced}, args...)...)
}

// marksPerCheck is the number of partitions that CheckMark reads in an exchange. The
// partitions of a larger store take turns.
const marksPerCheck = 64

// CheckMarks checks by the marks and the metadata that this is still the store that was
// opened. It returns checkpoint.ErrStoreReplaced when it is not.
func (d *Database) CheckMarks(ctx context.Context) error {
	if err := d.CheckMark(ctx); err != nil {
		return err
	}
	return d.CheckMetadata(ctx)
}

// CheckMark checks that the partitions are those of the store that was opened. A list must
// not leave out lost threads as if they had never existed. It returns
// checkpoint.ErrStoreReplaced for a partition with another mark.
func (d *Database) CheckMark(ctx context.Context) error {
	list := d.nextPartitions()
	found, err := d.readMarks(ctx, list)
	if err != nil {
		return err
	}
	var wrong []int
	for i, p := range list {
		if found[i] != d.Mark {
			err = d.OtherStoreError(p, found[i])
			wrong = append(wrong, p)
		}
	}
	d.setWrongPartitions(wrong)
	if len(wrong) > 1 {
		return fmt.Errorf("%d partitions of %d: %w", len(wrong), d.Keys.PartitionCount(), err)
	}
	return err
}

// CheckMetadata checks that the metadata is that of the store that was opened. It returns
// checkpoint.ErrStoreReplaced when it is missing or differs.
func (d *Database) CheckMetadata(ctx context.Context) error {
	known, err := d.Client.HMGet(ctx, d.Keys.MetadataKey(), "format", "epoch").Result()
	if err != nil {
		return err
	}
	if len(known) == 2 && known[0] == strconv.Itoa(layout.Format) && known[1] == d.Epoch {
		return nil
	}
	if known[0] == nil {
		return storeReplacedError("the key %s is missing, and with it perhaps the graphs of the store, while its threads are there: "+
			"restart a server, which puts the key back and says what else to do", d.Keys.MetadataKey())
	}
	return storeReplacedError("the key %s says that the store has format %v and epoch %v, opened was format %d and epoch %s: restart this server",
		d.Keys.MetadataKey(), known[0], known[1], layout.Format, d.Epoch)
}

// nextPartitions returns the partitions to check: those with a wrong mark, and the next in
// turn.
func (d *Database) nextPartitions() (list []int) {
	d.checkMu.Lock()
	defer d.checkMu.Unlock()
	n := d.Keys.PartitionCount()
	seen := make(map[int]bool, marksPerCheck)
	for p := range d.wrongPartitions {
		list, seen[p] = append(list, p), true
	}
	for range min(n, marksPerCheck) {
		if !seen[d.nextPartition] {
			list = append(list, d.nextPartition)
		}
		d.nextPartition = (d.nextPartition + 1) % n
	}
	return list
}

// setWrongPartitions records which partitions were wrong.
func (d *Database) setWrongPartitions(partitions []int) {
	d.checkMu.Lock()
	defer d.checkMu.Unlock()
	clear(d.wrongPartitions)
	for _, p := range partitions {
		d.wrongPartitions[p] = struct{}{}
	}
}
