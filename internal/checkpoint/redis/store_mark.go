package redis

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

// Each partition has a key that says which store it belongs to: its mark. The
// scripts that change threads compare it with the one that their server knows,
// so that a server that came back empty, or was given another store's keys, or
// was migrated, takes no change of a server that does not know of it.

// storeIdentity is what all marks of a store say.
type storeIdentity struct {
	format     int
	partitions int
	epoch      string // 32 hexadecimal digits, drawn when the store was made
}

func (i storeIdentity) encodeMark() string {
	return strconv.Itoa(i.format) + " " + strconv.Itoa(i.partitions) + " " + i.epoch
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
func (s *Store) readMarks(ctx context.Context, partitions []int) ([]string, error) {
	out := make([]string, len(partitions))
	err := script.Retry(ctx, func() error {
		pipe := s.client.Pipeline()
		sent := make([]*goredis.StringCmd, len(partitions))
		for i, p := range partitions {
			sent[i] = pipe.Get(ctx, s.keys.PartitionKey(p, layout.KeyStoreMark))
		}
		_, _ = pipe.Exec(ctx) // each command says what became of it
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

// otherStoreError says what stands in place of the store that was opened, and
// what to do.
func (s *Store) otherStoreError(partition int, found string) error {
	key := s.keys.PartitionKey(partition, layout.KeyStoreMark)
	other, known := parseMark(found)
	switch {
	case found == "":
		return storeReplacedError("the key %s is missing: Redis came back empty or without this partition. Restore a backup, and changes go on; "+
			"or restart the servers, and the first of them makes a new store or says what is left", key)
	case !known:
		return storeReplacedError("the key %s holds %.80q, which graphd did not write: restore a backup", key, found)
	case other.format > Format:
		return storeReplacedError("the store was migrated to format %d, this graphd knows up to %d: "+
			"replace this server by the newer graphd", other.format, Format)
	case other.format < Format:
		return storeReplacedError("the store has format %d again, this graphd writes %d: stop all servers and run graphd store migrate",
			other.format, Format)
	}
	return storeReplacedError("the key %s is of the store %s, and %s was opened: restart this server to use the new one, or bring back the other",
		key, other.epoch, s.epoch)
}

func storeReplacedError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{checkpoint.ErrStoreReplaced}, args...)...)
}

// marksPerCheck is how many partitions Writable looks at in one exchange; those of a
// store with more take turns.
const marksPerCheck = 64

var _ checkpoint.WriteChecker = (*Store)(nil)

// CheckWritable looks whether this is still the store that was opened.
func (s *Store) CheckWritable(ctx context.Context) error {
	done, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	return script.ToContractError(ctx, s.checkMarks(ctx))
}

func (s *Store) checkMarks(ctx context.Context) error {
	if err := s.checkMark(ctx); err != nil {
		return err
	}
	return s.checkMetadata(ctx)
}

// checkMark looks whether the partitions are those of the store that was opened:
// a list of what is left would say that the rest was never there.
func (s *Store) checkMark(ctx context.Context) error {
	list := s.nextPartitions()
	found, err := s.readMarks(ctx, list)
	if err != nil {
		return err
	}
	var wrong []int
	for i, p := range list {
		if found[i] != s.mark {
			err = s.otherStoreError(p, found[i])
			wrong = append(wrong, p)
		}
	}
	s.setWrongPartitions(wrong)
	if len(wrong) > 1 {
		return fmt.Errorf("%d partitions of %d: %w", len(wrong), s.keys.PartitionCount(), err)
	}
	return err
}

// checkMetadata checks the metadata of the store.
func (s *Store) checkMetadata(ctx context.Context) error {
	known, err := s.client.HMGet(ctx, s.keys.MetadataKey(), "format", "epoch").Result()
	if err != nil {
		return err
	}
	if len(known) == 2 && known[0] == strconv.Itoa(Format) && known[1] == s.epoch {
		return nil
	}
	if known[0] == nil {
		return storeReplacedError("the key %s is missing, and with it perhaps the graphs of the store, while its threads are there: "+
			"restart a server, which puts the key back and says what else to do", s.keys.MetadataKey())
	}
	return storeReplacedError("the key %s says that the store has format %v and epoch %v, opened was format %d and epoch %s: restart this server",
		s.keys.MetadataKey(), known[0], known[1], Format, s.epoch)
}

// nextPartitions picks the partitions to look at: those that were wrong, and the next ones.
func (s *Store) nextPartitions() (list []int) {
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	n := s.keys.PartitionCount()
	seen := make(map[int]bool, marksPerCheck)
	for p := range s.wrongPartitions {
		list, seen[p] = append(list, p), true
	}
	for range min(n, marksPerCheck) {
		if !seen[s.nextPartition] {
			list = append(list, s.nextPartition)
		}
		s.nextPartition = (s.nextPartition + 1) % n
	}
	return list
}

// setWrongPartitions records which partitions were wrong.
func (s *Store) setWrongPartitions(partitions []int) {
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	clear(s.wrongPartitions)
	for _, p := range partitions {
		s.wrongPartitions[p] = struct{}{}
	}
}
