package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// mute is a store that makes changes, or does not, and never says so.
type mute struct {
	checkpoint.Store

	how  error
	then error // what it answers later, when that is something else
	made bool
}

func (m *mute) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if m.how == nil {
		return m.Store.Apply(ctx, c)
	}
	if m.made {
		if _, err := m.Store.Apply(ctx, c); err != nil {
			return checkpoint.Receipt{}, err
		}
	}
	how := m.how
	if m.then != nil {
		m.how = m.then
	}
	return checkpoint.Receipt{}, how
}

// A client whose change had no answer is told that the outcome is unknown, and
// finds it by the same request id; one whose change was refused is told that.
func TestOutcomeThatIsUnknown(t *testing.T) {
	for name, tc := range map[string]struct {
		how  error
		made bool
		want string
	}{
		"made":     {checkpoint.ErrOutcomeUnknown, true, runtime.ReasonOutcomeUnknown},
		"not made": {checkpoint.ErrOutcomeUnknown, false, runtime.ReasonOutcomeUnknown},
		"refused":  {checkpoint.ErrUnavailable, false, runtime.ReasonStoreUnavailable},
		"replaced meanwhile": {
			fmt.Errorf("%w: %w", checkpoint.ErrOutcomeUnknown, checkpoint.ErrStoreReplaced), true, runtime.ReasonOutcomeUnknown,
		},
		"replaced": {checkpoint.ErrStoreReplaced, false, runtime.ReasonStoreReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := alone(t)
				c.nodes.code = script(c.nodes.ledger)
				c.compile(chain("g", channelsLog, "quick"))
				m := &mute{Store: c.store, how: tc.how, made: tc.made}
				e := c.boot(m)
				create := runtime.NewThread{Thread: "t", Graph: "g", RequestID: "once"}
				_, err := e.CreateThread(t.Context(), create)
				require.Equal(t, tc.want, reason(err), err)
				if tc.want == runtime.ReasonOutcomeUnknown {
					require.ErrorContains(t, err, "call again with the same request id")
				}
				m.how = nil
				head, err := e.CreateThread(t.Context(), create)
				require.NoError(t, err)
				require.Equal(t, "t", head.Thread)
			})
		})
	}
}

// A change that may have been made is not one that was refused, whatever the
// store answers when it is repeated.
func TestAnOutcomeStaysUnknown(t *testing.T) {
	for _, then := range []error{checkpoint.ErrStoreReplaced, checkpoint.ErrStoreFull, checkpoint.ErrStoreBusy, checkpoint.ErrUnavailable} {
		t.Run(then.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := alone(t)
				c.nodes.code = script(c.nodes.ledger)
				c.compile(chain("g", channelsLog, "quick"))
				e := c.boot(&mute{Store: c.store, how: checkpoint.ErrOutcomeUnknown, then: then, made: true})
				_, err := e.CreateThread(t.Context(), runtime.NewThread{Thread: "t", Graph: "g", RequestID: "once"})
				require.Equal(t, runtime.ReasonOutcomeUnknown, reason(err), err)
			})
		})
	}
}
