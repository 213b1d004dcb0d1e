package admission

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// tryOnRecentView makes one attempt at a call on a recent view of its thread, without a look at the
// store. The store accepts a change only at the revision of the view. It reports false when the
// caller must read the thread: there is no recent view, or the call is refused or answered on it,
// which may be wrong for the thread as it is now.
func (o *Options) tryOnRecentView(
	ctx context.Context, thread, request string, try func(*checkpoint.ThreadView) (*runtime.Started, error),
) (started *runtime.Started, isDone bool, err error) {
	if o.IsLive(thread) {
		return nil, false, nil
	}
	recent := o.Recent.FindView(thread, request)
	if recent == nil {
		return nil, false, nil
	}
	started, err = try(recent)
	switch {
	case err == nil && !started.IsAttached:
		return started, true, nil
	case errors.Is(err, checkpoint.ErrUnavailable), err != nil && ctx.Err() != nil: // the change may have been made
		return nil, true, err
	}
	o.Recent.DropView(thread)
	return nil, false, nil
}
