package cli

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/client"
)

const (
	exact   = graphdv1.CountInterruptsResponse_PRECISION_EXACT
	atMost  = graphdv1.CountInterruptsResponse_PRECISION_AT_MOST
	atLeast = graphdv1.CountInterruptsResponse_PRECISION_AT_LEAST
)

// countingServer counts as it is told, or refuses.
type countingServer struct {
	graphdv1.InterruptServiceClient

	counts  []*graphdv1.CountInterruptsResponse_Count
	filters []string // of the last call
}

func (s *countingServer) CountInterrupts(
	_ context.Context, req *graphdv1.CountInterruptsRequest, _ ...grpc.CallOption,
) (*graphdv1.CountInterruptsResponse, error) {
	s.filters = req.GetFilters()
	if len(s.counts) == 0 {
		return nil, errors.New("an older server")
	}
	return &graphdv1.CountInterruptsResponse{Counts: s.counts[:len(req.GetFilters())]}, nil
}

func count(n int64, precision graphdv1.CountInterruptsResponse_Precision) *graphdv1.CountInterruptsResponse_Count {
	return &graphdv1.CountInterruptsResponse_Count{Count: n, Precision: precision}
}

func TestACountSaysHowExactItIs(t *testing.T) {
	type counts = []*graphdv1.CountInterruptsResponse_Count
	one := argument.Questions{Group: "g"}
	two := argument.Questions{Group: "g", Graph: "h"}
	for want, test := range map[string]struct {
		flags  argument.Questions
		filter string
		counts counts
	}{
		"50 of 1,240 open questions":           {counts: counts{count(1240, exact)}},
		"50 of at most 1,240 open questions":   {flags: one, counts: counts{count(1240, atMost)}},
		"50 of at least 500 open questions":    {flags: one, counts: counts{count(500, atLeast)}},
		"50 of at most 60 open questions":      {flags: two, counts: counts{count(70, atMost), count(60, exact)}},
		"50 of at most 70 open questions":      {flags: two, counts: counts{count(70, exact), count(60, atLeast)}},
		"50 of at most 1,000 open questions":   {flags: argument.Questions{Due: "2h"}, counts: counts{count(1000, exact)}},
		"50 of 51 questions":                   {filter: `graph = "h"`, counts: counts{count(51, exact)}},
		"50 of at most 52 questions":           {flags: one, filter: `node = "n"`, counts: counts{count(52, exact)}},
		"50 open questions; there may be more": {flags: one},
		"50 questions; there may be more":      {flags: argument.Questions{Due: "2h"}, filter: `node = "n"`, counts: counts{count(99, exact)}},
		"50 of at most 53 open questions":      {flags: argument.Questions{Sort: argument.SortDue}, counts: counts{count(53, exact)}},
	} {
		server := &countingServer{counts: test.counts}
		s := &Session{Client: &client.Client{Interrupts: server}}
		query, err := test.flags.ParseQuery(time.Now())
		require.NoError(t, err)
		require.Equal(t, want, s.describeCount(t.Context(), 50, true, test.filter, query))
	}
}

// All that there is needs no count, and a few conditions are counted, not all.
func TestACountIsAskedForWhenItIsNeeded(t *testing.T) {
	server := &countingServer{counts: []*graphdv1.CountInterruptsResponse_Count{count(9, exact), count(9, exact), count(9, exact), count(2, exact)}}
	s := &Session{Client: &client.Client{Interrupts: server}}
	require.Equal(t, "1 open question", s.describeCount(t.Context(), 1, false, "", argument.QuestionQuery{}))
	require.Equal(t, "2 questions", s.describeCount(t.Context(), 2, false, "f", argument.QuestionQuery{}))
	require.Nil(t, server.filters)

	all := argument.Questions{Group: "g", Graph: "h", ClaimedBy: "c", Mine: true, Priority: "high"}
	query, err := all.ParseQuery(time.Now())
	require.NoError(t, err)
	require.Equal(t, "1 of at most 2 open questions", s.describeCount(t.Context(), 1, true, "", query))
	require.Len(t, server.filters, maxCounted)
	require.Equal(t, "2 open questions; there may be more", s.describeCount(t.Context(), 2, true, "", query), "some were answered meanwhile")
}
