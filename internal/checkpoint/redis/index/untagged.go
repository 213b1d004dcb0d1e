package index

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// untaggedPageSize is the number of interrupts of a partition that are read at a time.
const untaggedPageSize = 16

// TagInterrupts gives the open interrupts of a store that was migrated their tags, and calls tell
// with how many it has looked at. unreadable is how many have records that can't be read. It
// may be repeated, and several servers may do it at once.
func (x *Reader) TagInterrupts(ctx context.Context, tell func(done int)) (unreadable int, err error) {
	done := 0
	_, err = walkIndex(0, "", func(from string) (indexPage, error) {
		return x.readTenants(ctx, "", untaggedPageSize, func(owners []string) (indexPage, error) {
			return x.readMembers(ctx, owners, []string{layout.KeyOpenInterrupts}, from, untaggedPageSize, parseInterruptEntry)
		})
	}, func(list []indexEntry, _ *checkpoint.Portion) ([]struct{}, error) {
		for i := range list {
			isRead, err := x.tagInterrupt(ctx, &list[i])
			if err != nil {
				return nil, err
			}
			if !isRead {
				unreadable++
			}
		}
		done += len(list)
		tell(done)
		return nil, nil
	})
	return unreadable, err
}

// TagThreads gives the threads of a store that was migrated their tags, as TagInterrupts does.
func (x *Reader) TagThreads(ctx context.Context, tell func(done int)) (unreadable int, err error) {
	done := 0
	_, err = walkIndex(0, "", func(from string) (indexPage, error) {
		return x.readTenants(ctx, "", untaggedPageSize, func(owners []string) (indexPage, error) {
			return x.readMembers(ctx, owners, []string{layout.KeyThreads}, from, untaggedPageSize, func(member string) (indexEntry, bool) {
				thread, _, _, ok := layout.ParseThreadMember(member)
				return indexEntry{thread: thread}, ok
			})
		})
	}, func(list []indexEntry, portion *checkpoint.Portion) ([]struct{}, error) {
		found := 0
		heads, err := x.readHeads(ctx, list, portion, func(*checkpoint.Head, *indexEntry) bool { found++; return true })
		if err != nil {
			return nil, err
		}
		for i := range heads {
			if err := x.tagThread(ctx, &heads[i]); err != nil {
				return nil, err
			}
		}
		unreadable += len(list) - found
		done += len(list)
		tell(done)
		return nil, nil
	})
	return unreadable, err
}

func (x *Reader) tagThread(ctx context.Context, h *checkpoint.Head) error {
	box := x.database.Box
	args := []any{h.Revision, layout.EncodeThreadTags(box, h), string(h.State)}
	for _, member := range layout.ThreadTagMembers(box, h) {
		args = append(args, member)
	}
	keys := append(x.keys.ThreadKeys(h.Thread, layout.KeyHead), x.keys.ThreadTagsKey(h.Thread))
	_, err := x.runner.RunScript(ctx, x.scripts.TagThread, keys, args...)
	return err
}

// tagInterrupt gives an interrupt its tags, and puts their members back if it has some. It
// reports whether the record can be read.
func (x *Reader) tagInterrupt(ctx context.Context, e *indexEntry) (bool, error) {
	keys := append(x.keys.ThreadKeys(e.thread, layout.KeyInterrupts), x.keys.TagsKey(e.thread))
	r, err := x.runner.ReadFields(ctx, keys[0], "r"+e.id)
	if err != nil {
		if err = script.ToContractError(ctx, err); errors.Is(err, checkpoint.ErrCorrupt) {
			return false, nil
		}
		return false, err
	}
	if r.TextAt(0) == "" {
		return true, nil // it is gone
	}
	in, err := x.threads.DecodeInterrupt(e.thread, e.id, r.TextAt(0))
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return false, nil
	}
	if err != nil || in.State != checkpoint.InterruptOpen {
		return true, err
	}
	args := []any{e.id, layout.CutRecord(r.TextAt(0)), layout.EncodeTags(x.database.Box, &in)}
	for _, member := range layout.TagMembers(x.database.Box, &in) {
		args = append(args, member)
	}
	_, err = x.runner.RunScript(ctx, x.scripts.TagMigrated, keys, args...)
	return true, err
}
