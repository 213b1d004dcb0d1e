package runtime_test

import (
	"context"
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
	return checkpoint.Receipt{}, m.how
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
