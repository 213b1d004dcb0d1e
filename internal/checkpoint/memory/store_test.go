package memory_test

import (
	"testing"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
)

func TestContract(t *testing.T) {
	checkpointtest.Run(t, func(_ *testing.T, now func() time.Time) checkpointtest.Store {
		return memory.New(memory.Options{Now: now})
	})
}
