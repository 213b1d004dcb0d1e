package feed

import (
	"context"
	"slices"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Bounds of the newest changes that a changeReader keeps.
const (
	maxKeptPages     = 64
	maxKeptBytes     = 4 << 20
	maxKeptPageBytes = 1 << 20
)

// changeReader reads the changed interrupts of a tenant once for all its followers. A follower
// takes what it does not want, too: so all of them are at the same place, and share the next read.
type changeReader struct {
	list  func(ctx context.Context, memory *runtime.CallMemory, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error)
	owner string

	mu        sync.Mutex
	followers int // guarded by the mutex of interruptFollowers
	pages     []changePage
	bytes     int         // of the pages
	newest    uint64      // change up to which a read has been
	begun     uint64      // number of the last read that has begun
	current   *changeRead // under way, nil = none
	last      changeRead  // that has ended
}

// changePage is the changes after one change, up to the last of the list.
type changePage struct {
	after uint64
	list  []checkpoint.Interrupt
	bytes int
}

// changeRead is a read of the changes after the newest one.
type changeRead struct {
	number uint64
	after  uint64
	err    error
	done   chan struct{}
}

// ReadChanges returns the next changes after one, none when there are none. They are shared: the
// caller must not change them. isAll says that there were no others at a moment of the call. Errors:
// the cause of ctx, and those of Options.ListInterrupts.
func (r *changeReader) ReadChanges(
	ctx context.Context, memory *runtime.CallMemory, after uint64,
) (list []checkpoint.Interrupt, isAll bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	needed := r.begun + 1 // an earlier read may have missed what woke the follower
	for {
		if list := r.findKept(after); len(list) > 0 {
			return list, false, nil
		}
		switch {
		case after < r.newest:
			list, err = r.readAlone(ctx, memory, after)
			return list, isWhole(list), err
		case r.last.number >= needed && (r.last.err != nil || r.last.after == after):
			return nil, true, r.last.err
		case r.current == nil:
			list, err = r.readNewest(ctx, memory, after)
			return list, isWhole(list), err
		}
		if err := r.waitForRead(ctx); err != nil {
			return nil, false, err
		}
	}
}

// isWhole reports whether a list that was read from the store has all that there was.
func isWhole(list []checkpoint.Interrupt) bool {
	return !checkpoint.IsPart(list, changePageSize, (*checkpoint.Interrupt).Size)
}

// FindKept returns the kept changes after one, up to the end of their page. They are shared.
func (r *changeReader) FindKept(after uint64) []checkpoint.Interrupt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.findKept(after)
}

// findKept returns the kept changes after one, up to the end of their page. The caller holds the
// mutex.
func (r *changeReader) findKept(after uint64) []checkpoint.Interrupt {
	for i := range r.pages {
		p := &r.pages[i]
		if after < p.after {
			return nil
		}
		if last := p.list[len(p.list)-1].Change; after < last {
			from, _ := slices.BinarySearchFunc(p.list, after+1, func(in checkpoint.Interrupt, change uint64) int {
				return compareChange(in.Change, change)
			})
			return p.list[from:]
		}
	}
	return nil
}

func compareChange(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// waitForRead waits for the read that is under way. The caller holds the mutex.
func (r *changeReader) waitForRead(ctx context.Context) error {
	done := r.current.done
	r.mu.Unlock()
	defer r.mu.Lock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readAlone reads for a follower that is behind what is kept. The caller holds the mutex.
func (r *changeReader) readAlone(ctx context.Context, memory *runtime.CallMemory, after uint64) ([]checkpoint.Interrupt, error) {
	r.mu.Unlock()
	defer r.mu.Lock()
	return r.list(ctx, memory, r.newQuery(after))
}

// readNewest reads for all followers that wait for it. The caller holds the mutex.
func (r *changeReader) readNewest(ctx context.Context, memory *runtime.CallMemory, after uint64) (list []checkpoint.Interrupt, err error) {
	r.begun++
	read := &changeRead{number: r.begun, after: after, done: make(chan struct{})}
	r.current = read
	isEnded := false
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.current = nil
		if isEnded && (err == nil || ctx.Err() == nil) { // the end of the caller is no error of others
			read.err, r.last = err, *read
			r.last.err = err
			r.keepPage(after, list)
		}
		close(read.done)
	}()
	list, err = r.list(ctx, memory, r.newQuery(after))
	isEnded = true
	return list, err
}

func (r *changeReader) newQuery(after uint64) checkpoint.InterruptQuery {
	return checkpoint.InterruptQuery{
		Tenant: r.owner, ByChange: true, After: checkpoint.InterruptPosition{Change: after}, Limit: changePageSize,
	}
}

// keepPage keeps changes for the followers that come next. The caller holds the mutex.
func (r *changeReader) keepPage(after uint64, list []checkpoint.Interrupt) {
	r.newest = max(r.newest, after)
	if len(list) == 0 {
		return
	}
	p := changePage{after: after, list: list}
	for i := range list {
		p.bytes += list[i].Size()
	}
	r.newest = max(r.newest, list[len(list)-1].Change)
	if p.bytes > maxKeptPageBytes {
		r.pages, r.bytes = nil, 0 // they must follow each other
		return
	}
	if n := len(r.pages); n > 0 && lastChange(&r.pages[n-1]) != after {
		r.pages, r.bytes = nil, 0
	}
	r.pages, r.bytes = append(r.pages, p), r.bytes+p.bytes
	for len(r.pages) > maxKeptPages || r.bytes > maxKeptBytes {
		r.bytes -= r.pages[0].bytes
		r.pages = slices.Delete(r.pages, 0, 1)
	}
}

func lastChange(p *changePage) uint64 { return p.list[len(p.list)-1].Change }
