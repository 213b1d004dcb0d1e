package setup

import (
	"context"
	"errors"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
)

// Repair returns the lost parts of the store at opts.URL. With accept it makes the store
// usable without them: lost partitions begin anew, without their threads, and the metadata
// is restored from the partitions. It never removes anything. It returns an *Error when
// the store can't be used, or an error that wraps checkpoint.ErrUnavailable.
func Repair(ctx context.Context, opts Options, accept bool) (checkpoint.Loss, error) {
	w, err := parseURL(opts)
	if err != nil {
		return checkpoint.Loss{}, err
	}
	d, err := connectDatabase(ctx, w)
	if err != nil {
		return checkpoint.Loss{}, err
	}
	loss, err := d.repairStore(ctx, accept)
	return loss, errors.Join(d.WrapError(ctx, err), d.CloseClient())
}

func (d *Database) repairStore(ctx context.Context, accept bool) (loss checkpoint.Loss, err error) {
	keys := layout.NewKeys(d.config.prefix, 0)
	known, err := d.Client.HGetAll(ctx, keys.MetadataKey()).Result()
	if err != nil {
		return loss, err
	}
	i, err := d.identifyStore(ctx, known)
	if err != nil || i == nil {
		return loss, err
	}
	loss.MetadataLost = len(known) == 0
	d.Keys, d.Epoch, d.Mark = layout.NewKeys(d.config.prefix, i.partitions), i.epoch, i.encodeMark()
	if loss.MetadataLost && accept {
		if _, err := d.writeMetadata(ctx, d.Keys, *i, i.epoch != ""); err != nil {
			return loss, err
		}
	}
	if i.format < firstMarkedFormat || known[fieldMigratingFrom] != "" {
		return loss, nil // its migration gives the partitions their marks
	}
	lost, err := d.findLostPartitions(ctx)
	loss.LostPartitions, loss.PartitionCount = d.partitionPatterns(lost), i.partitions
	if err == nil && accept {
		err = d.markPartitions(ctx, lost)
	}
	return loss, err
}

// identifyStore finds out which store this was, nil = there is none.
func (d *Database) identifyStore(ctx context.Context, known map[string]string) (*storeIdentity, error) {
	if len(known) > 0 {
		i, err := d.config.parseIdentity(known)
		return &i, err
	}
	i, err := d.findMarkedPartitions(ctx)
	if problem, ok := errors.AsType[*Error](err); ok && problem.Problem == ProblemNoMetadata {
		return d.inferPartitions(ctx)
	}
	return i, err
}

// inferPartitions finds out how a store of a format without marks was divided: all its keys
// must lie where that puts them.
func (d *Database) inferPartitions(ctx context.Context) (*storeIdentity, error) {
	where, err := d.threadsByTag(ctx)
	if err != nil {
		return nil, err
	}
	candidates := []int{defaultPartitions}
	for n := range layout.MaxPartitions {
		candidates = append(candidates, n+1)
	}
	if d.config.partitions > 0 {
		candidates = []int{d.config.partitions}
	}
	for _, n := range candidates {
		if keys := layout.NewKeys(d.config.prefix, n); keys.MatchesThreads(where) {
			return &storeIdentity{format: layout.OldestFormat, partitions: n}, nil
		}
	}
	return nil, &Error{
		d.config.server, ProblemNoMetadata, "the keys under the prefix " + d.config.prefix + " are not those of one store",
		"restore the store from a backup",
	}
}

// threadsByTag lists some threads of each partition, of all tenants.
func (d *Database) threadsByTag(ctx context.Context) (map[string][]string, error) {
	where := map[string][]string{}
	err := d.scanKeys(ctx, escapeGlob(d.config.prefix)+"{*}:"+layout.KeyThreads+"*", func(key string) error {
		tag, _, _ := strings.Cut(strings.TrimPrefix(key, d.config.prefix+"{"), "}")
		members, err := d.Client.ZRangeByLex(ctx, key, &goredis.ZRangeBy{Min: "-", Max: "+", Count: threadsPerExchange}).Result()
		if err != nil {
			return err
		}
		for _, member := range members {
			if thread, _, _, ok := layout.ParseThreadMember(member); ok {
				where[tag] = append(where[tag], thread)
			}
		}
		return nil
	})
	return where, err
}
