package redis_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/payload"
)

func TestForeignCluster(t *testing.T) {
	nodes := redistest.StartCluster(t, 2)
	require.NoError(t, nodes[1].Client.Set(t.Context(), "foo", "x", 0).Err(), "its slot, 12182, is there")
	require.Equal(t, setup.ProblemForeign, requireSetupError(t, nodes[0].URL("")).Problem)
	openStore(t, nodes[0].URL("shared=true"))
}

// TestLostAnswerInCluster is about the client of clusters, which repeats calls
// by itself.
func TestLostAnswerInCluster(t *testing.T) {
	node := redistest.StartCluster(t, 1)[0]
	proxy := redistest.StartProxy(t, node)
	require.NoError(t, node.Client.ConfigSet(t.Context(), "cluster-announce-port", proxy.Port()).Err())
	s := openStore(t, proxy.URL())
	applySupersteps(t, s, "t", 1, 1)
	proxy.LoseAnswers(1)
	applySupersteps(t, s, "t", 2, 2)

	c := newSuperstep("t", 3, []payload.JSON{"1", "2", "3"})
	c.Op = ""
	proxy.LoseAnswers(1)
	_, err := s.Apply(t.Context(), c)
	require.EqualValues(t, 2, proxy.LostAnswers())
	require.ErrorIs(t, err, checkpoint.ErrOutcomeUnknown)
	require.NotErrorIs(t, err, checkpoint.ErrConflict)
	h, err := s.Head(t.Context(), "t")
	require.NoError(t, err)
	require.EqualValues(t, 3, h.Revision, "it was applied all the same")
}
