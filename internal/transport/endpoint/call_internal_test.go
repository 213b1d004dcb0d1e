package endpoint

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// A run goes on at another server while its task waits for an endpoint that is away. What
// the server before has done is as little known as it was.
func TestATaskThatIsNotCalledBeforeItsRunGoesIsUnresolved(t *testing.T) {
	for name, c := range map[string]struct {
		recoveredAt            time.Time
		losses                 int
		isUnresolved, isRemote bool
	}{
		"of this server":              {},
		"of the server before":        {recoveredAt: time.Now(), isUnresolved: true},
		"a call has been lost before": {recoveredAt: time.Now(), losses: 1, isRemote: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancelCause(t.Context())
			leave(runtime.ErrElsewhere)
			var unresolved, remote atomic.Bool
			call := &endpointCall{losses: c.losses, task: &runtime.Task{RecoveredAt: c.recoveredAt, StillRemote: &remote, Unresolved: &unresolved}}
			call.connectFailure(ctx, context.Cause(ctx))
			require.Equal(t, c.isUnresolved, unresolved.Load())
			require.Equal(t, c.isRemote, remote.Load())
		})
	}
}
