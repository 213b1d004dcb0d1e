package main

import (
	"context"

	"github.com/graphd-dev/graphd/bench/workload"
)

// limits are the least that operations need: an empty gRPC call on the connection of the
// operation, and then the bare commands of the store, by the driver that graphd has, too.
type limits struct {
	page    workload.One // the index of a group, and 50 records
	nothing workload.One // the index of a group that has no question
	count   workload.One // eight counts
	record  workload.One // a record
}

// commands are what limits ask of a store.
type commands interface {
	// page reads 50 records of the group leads, or fewer when there are fewer, and returns how
	// many it found.
	page(ctx context.Context) (int, error)
	nothing(ctx context.Context) error
	count(ctx context.Context) error
	record(ctx context.Context) error
	close() error
}

// counted is how many views are counted.
const counted = 8

// newLimits makes the limits of a server on a store.
func (b *inbox) newLimits(c commands, want int) limits {
	return limits{
		page: b.limitOf(func(ctx context.Context) error {
			found, err := c.page(ctx)
			if err == nil && found != min(want, pageSize) {
				err = errOtherPage
			}
			return err
		}),
		nothing: b.limitOf(c.nothing), count: b.limitOf(c.count), record: b.limitOf(c.record),
	}
}

// limitOf times an empty call and then some commands.
func (b *inbox) limitOf(do func(context.Context) error) workload.One {
	return func(ctx context.Context, lane int, times *workload.Times) error {
		return times.Time(func() error {
			if _, err := b.one.Call(ctx, lane, "/grpc.health.v1.Health/Check", nil); err != nil {
				return err
			}
			return do(ctx)
		})
	}
}
