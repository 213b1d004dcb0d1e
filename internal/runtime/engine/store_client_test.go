package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// sharedClockStore is a store that counts time for all servers that share it, and
// has just been opened by a process whose clock is wrong.
type sharedClockStore struct{ checkpoint.Store }

func (sharedClockStore) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func TestFirstThreadHasTheTimeOfTheStore(t *testing.T) {
	wrong := engine.Options{Now: func() time.Time { return time.Now().Add(5 * time.Hour) }}
	w := newFixtureOn(t, sharedClockStore{memory.New(memory.Options{})}, wrong, nil)
	head, err := w.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t"})
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), head.Created, time.Minute)
}
