package memory_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
)

// TestOtherTenantsCostNothing counts the allocations of the lists of one tenant, alone and
// beside 10,000 others: a list that looked at the threads or questions of others would
// copy them.
func TestOtherTenantsCostNothing(t *testing.T) {
	s := memory.New(memory.Options{})
	ask := func(thread string) {
		_, err := s.Apply(t.Context(), &checkpoint.Change{
			Thread: thread, Head: checkpoint.Head{Thread: thread},
			Interrupts: []checkpoint.Interrupt{{ID: "q", Thread: thread, State: checkpoint.InterruptOpen}},
		})
		require.NoError(t, err)
	}
	measure := func(owner string) (allocations []float64) {
		for _, list := range []func() (int, error){
			func() (int, error) {
				found, err := s.Threads(t.Context(), checkpoint.ThreadQuery{Tenant: owner})
				return len(found), err
			},
			func() (int, error) { return s.CountThreads(t.Context(), owner, 100) },
			func() (int, error) { return s.CountOpenInterrupts(t.Context(), owner, 100) },
			func() (int, error) {
				found, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tenant: owner})
				return len(found), err
			},
			func() (int, error) {
				found, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tenant: owner, ByChange: true})
				return len(found), err
			},
		} {
			allocations = append(allocations, testing.AllocsPerRun(20, func() {
				n, err := list()
				require.NoError(t, err)
				require.Equal(t, 20, n)
			}))
		}
		return allocations
	}
	for n := range 20 {
		ask(fmt.Sprint("t", n))
		ask(fmt.Sprint("acme@t", n))
	}
	acme, standard := measure("acme"), measure("default")
	for n := range 10_000 {
		ask(fmt.Sprintf("tenant%d@t", n))
	}
	require.Equal(t, acme, measure("acme"))
	require.Equal(t, standard, measure("default"))
}
