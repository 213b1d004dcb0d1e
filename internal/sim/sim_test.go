package sim_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/sim"
)

// size is an installation that is played in a moment.
var size = sim.Size{Threads: 400_000, LiveRuns: 4_000, Servers: 16, Masters: 4, Partitions: 16}

func playDrama(d sim.Drama, policy sim.Policy) sim.Outcome { return sim.Play(d, size, policy, 7, 0) }

func TestTheSameSeedPlaysTheSame(t *testing.T) {
	for _, d := range sim.Dramas() {
		first := playDrama(d, sim.Owners)
		require.Equal(t, first, playDrama(d, sim.Owners), d.Name)
	}
}

func TestAllThreadsGoOn(t *testing.T) {
	for _, d := range append(sim.Dramas(), sim.Steady()) {
		for _, policy := range []sim.Policy{sim.All, sim.Owners} {
			o := playDrama(d, policy)
			require.GreaterOrEqual(t, o.Done, o.Threads-2, "%s, %s: %+v", d.Name, policy, o)
			require.Positive(t, o.Threads)
		}
	}
}

func TestServersThatShareTheLooksDoNotReadInVain(t *testing.T) {
	all, shared := playDrama(sim.MassExpiry(), sim.All), playDrama(sim.MassExpiry(), sim.Owners)
	require.Greater(t, all.Wasted, all.Threads)
	require.Less(t, shared.Wasted, shared.Threads/20)
	require.Less(t, shared.P99, 0.2)
	require.Less(t, shared.Drained, 61*time.Second)
}

func TestAMasterThatIsDownDelaysNoThreadOfOthers(t *testing.T) {
	all, shared := playDrama(sim.LostShard(), sim.All), playDrama(sim.LostShard(), sim.Owners)
	require.Greater(t, all.P99, 20.0)
	require.Less(t, shared.P99, 3.0)
	require.Greater(t, shared.ApartP99, 5.0, "those of the master itself wait")
}

func TestARestartCostsWhatIsRestarted(t *testing.T) {
	all, shared := playDrama(sim.RollingRestart(), sim.All), playDrama(sim.RollingRestart(), sim.Owners)
	require.Less(t, shared.Wasted, all.Wasted/2)
	require.Less(t, shared.P99, 3.0)
}

func TestATenantDelaysNoOther(t *testing.T) {
	require.Less(t, playDrama(sim.HotTenant(), sim.Owners).P99, 1.0)
}

func TestASizeHasTheMastersItNeeds(t *testing.T) {
	require.Equal(t, sim.Size{Threads: 1_000_000, LiveRuns: 1000, Servers: 1, Masters: 1, Partitions: 16}, sim.SizeOf(1))
	large := sim.SizeOf(1000)
	require.Equal(t, int64(1_000_000_000), large.Threads)
	require.GreaterOrEqual(t, large.Partitions, 2*large.Masters)
	require.Less(t, large.Threads*sim.MeasuredCosts().ThreadBytes/int64(large.Masters), int64(64<<30*6/10)+1)
}

func TestTheReportAndTheGraph(t *testing.T) {
	outcomes := make(map[string][]sim.Outcome)
	var text strings.Builder
	for _, d := range sim.Dramas() {
		for _, n := range []int{1, 3} {
			for _, policy := range []sim.Policy{sim.All, sim.Owners} {
				outcomes[d.Name] = append(outcomes[d.Name], sim.Play(d, sim.SizeOf(n), policy, 1, 20*time.Second))
			}
		}
		sim.WriteDramas(&text, outcomes[d.Name])
		sim.WriteSizes(&text, outcomes[d.Name])
	}
	require.Contains(t, text.String(), "mass-expiry")
	decoder := xml.NewDecoder(strings.NewReader(sim.DrawGraph(outcomes, 3)))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
}
