package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// unansweringStore is a store that makes changes, or does not, and never says so.
type unansweringStore struct {
	checkpoint.Store

	answer      error
	laterAnswer error // what it answers later, when that is something else
	isApplied   bool
}

func (s *unansweringStore) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if s.answer == nil {
		return s.Store.Apply(ctx, c)
	}
	if s.isApplied {
		if _, err := s.Store.Apply(ctx, c); err != nil {
			return checkpoint.Receipt{}, err
		}
	}
	how := s.answer
	if s.laterAnswer != nil {
		s.answer = s.laterAnswer
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
				c := newBubbleCluster(t)
				c.nodes.funcs = crashNodes(c.nodes.ledger)
				c.compileGraphs(chainSpec("g", channelsLog, "quick"))
				m := &unansweringStore{Store: c.store, answer: tc.how, isApplied: tc.made}
				e := c.startEngine(m)
				create := runtime.CreateThreadRequest{Thread: "t", Graph: "g", RequestID: "once"}
				_, err := e.CreateThread(t.Context(), create)
				require.Equal(t, tc.want, errorReason(err), err)
				if tc.want == runtime.ReasonOutcomeUnknown {
					require.ErrorContains(t, err, "call again with the same request id")
				}
				m.answer = nil
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
				c := newBubbleCluster(t)
				c.nodes.funcs = crashNodes(c.nodes.ledger)
				c.compileGraphs(chainSpec("g", channelsLog, "quick"))
				e := c.startEngine(&unansweringStore{Store: c.store, answer: checkpoint.ErrOutcomeUnknown, laterAnswer: then, isApplied: true})
				_, err := e.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t", Graph: "g", RequestID: "once"})
				require.Equal(t, runtime.ReasonOutcomeUnknown, errorReason(err), err)
			})
		})
	}
}
