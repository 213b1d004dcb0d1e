package transport_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func TestCountInterrupts(t *testing.T) {
	e := newFakeEngine()
	open := func(id string, p approval.Policy) checkpoint.Interrupt {
		return checkpoint.Interrupt{ID: id, Graph: "g", State: checkpoint.InterruptOpen, Policy: &p}
	}
	both := open("3", approval.Policy{Users: []string{"ana"}, Groups: []string{"leads"}})
	both.Priority, both.ClaimedBy, both.ClaimExpires = approval.Urgent, "ben", time.Now().Add(-time.Hour)
	e.interrupts = []checkpoint.Interrupt{
		open("1", approval.Policy{Users: []string{"ana"}}), open("2", approval.Policy{Groups: []string{"leads"}}), both,
		{ID: "4", Graph: "g", State: checkpoint.InterruptConsumed},
	}
	c := startServer(t, e, withCallers)
	ctx := withHeaders(t, "Bearer token-of-ana")
	resp, err := c.CountInterrupts(ctx, &graphdv1.CountInterruptsRequest{Filters: []string{
		``, `graph = "g"`, `group = "leads"`, `assignee = "none"`, `claimed_by = "ben"`, `mine = "true"`, `priority = URGENT`,
	}})
	require.NoError(t, err)
	const exact, most = graphdv1.CountInterruptsResponse_PRECISION_EXACT, graphdv1.CountInterruptsResponse_PRECISION_AT_MOST
	for i, want := range []*graphdv1.CountInterruptsResponse_Count{
		{Count: 3, Precision: exact},
		{Count: 3, Precision: exact},
		{Count: 2, Precision: exact},
		{Count: 0, Precision: exact},
		{Count: 1, Precision: most}, // the claim has ended
		{Count: 2, Precision: most},
		{Count: 1, Precision: exact},
	} {
		require.Equal(t, want.String(), resp.GetCounts()[i].String(), i)
	}
	for _, filter := range []string{`state = "*"`, `graph = g AND group = x`, `thread_id = t`, `priority = NORMAL`, `node = n`, `due < "2026-03-17T12:00:00Z"`} {
		_, err := c.CountInterrupts(ctx, &graphdv1.CountInterruptsRequest{Filters: []string{``, filter}})
		require.Equal(t, codes.InvalidArgument, status.Code(err), filter)
		require.ErrorContains(t, err, "filters[1]", filter)
	}
	_, err = c.CountInterrupts(ctx, &graphdv1.CountInterruptsRequest{Filters: make([]string, 33)})
	require.ErrorContains(t, err, "at most 32")
}
