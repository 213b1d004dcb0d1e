package registry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/registry"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// errorStore is a store that returns an error once it is set.
type errorStore struct {
	checkpoint.Graphs

	err error
}

func (s *errorStore) PutGraph(ctx context.Context, g checkpoint.GraphRecord, condition checkpoint.GraphCondition) error {
	if s.err != nil {
		return s.err
	}
	return s.Graphs.PutGraph(ctx, g, condition)
}

func (s *errorStore) DeleteGraph(ctx context.Context, name, version string, condition checkpoint.GraphCondition) error {
	if s.err != nil {
		return s.err
	}
	return s.Graphs.DeleteGraph(ctx, name, version, condition)
}

func (s *errorStore) GraphRecord(ctx context.Context, name, version string) (checkpoint.GraphRecord, error) {
	if s.err != nil {
		return checkpoint.GraphRecord{}, s.err
	}
	return s.Graphs.GraphRecord(ctx, name, version)
}

// A client gets a reason that tells it what to do, and no path and no key.
func TestEachStoreErrorHasItsReason(t *testing.T) {
	const inside = "/var/lib/graphd.db: graphd{meta}:graphs"
	for reason, cause := range map[string]error{
		runtime.ReasonStoreUnavailable:  checkpoint.ErrUnavailable,
		runtime.ReasonStoreReplaced:     checkpoint.ErrStoreReplaced,
		runtime.ReasonStoreFull:         checkpoint.ErrStoreFull,
		runtime.ReasonStoreBusy:         checkpoint.ErrStoreBusy,
		runtime.ReasonOutcomeUnknown:    checkpoint.ErrOutcomeUnknown,
		runtime.ReasonCheckpointCorrupt: checkpoint.ErrCorrupt,
	} {
		t.Run(reason, func(t *testing.T) {
			store := &errorStore{Graphs: memory.New(memory.Options{})}
			known := openRegistry(t, store)
			putGraph(t, known, graphText("g", "v1", "1"))
			putGraph(t, known, graphText("h", "v1", "1"))
			putGraph(t, known, graphText("h", "v2", "1"))
			r := openRegistry(t, store)
			store.err = fmt.Errorf("%s: %w", inside, cause)
			for call, do := range map[string]func() error{
				"get":  func() error { _, err := r.GetGraph(t.Context(), "g", "v1"); return err },
				"list": func() error { _, _, err := r.ListGraphs(t.Context(), tenant.Default, "", 10); return err },
				"put": func() error {
					_, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: graphText("n", "v1", "1")})
					return err
				},
				"around": func() error {
					_, err := r.PutGraph(t.Context(), runtime.PutGraphRequest{Document: wrappingGraph("n", "v1", "g", "v1")})
					return err
				},
				"delete": func() error {
					_, err := r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "h", Version: "v1", Force: true})
					return err
				},
				"unused": func() error {
					_, err := r.DeleteGraph(t.Context(), runtime.DeleteGraphRequest{Name: "h", Version: "v1"})
					return err
				},
			} {
				err := do()
				require.ErrorIs(t, err, cause, call)
				e, ok := errors.AsType[*runtime.Error](err)
				require.True(t, ok, call)
				require.Equal(t, reason, e.Reason, call)
				require.NotContains(t, fmt.Sprint(e.Message, e.Meta, e.Violations), "graphd{", call)
			}
		})
	}
}

func TestWhoStartsAServerReadsTheCause(t *testing.T) {
	_, err := registry.New(t.Context(), newOptions(t, unavailableStore{}))
	require.ErrorContains(t, err, checkpoint.ErrUnavailable.Error())
}
