package hostile_test

import (
	"context"
	"slices"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// emptyParts are messages of nothing but empty parts: two bytes each on the
// wire, and a hundred in memory.
func emptyParts(ctx context.Context, a *attack) {
	responses := slices.Repeat([]*graphdv1.InterruptResponse{{}}, 4_000_000)
	_, err := a.client.ResumeRun(ctx, &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{ThreadId: "watched", Responses: responses}})
	a.recordAnswer("ResumeRun", err)
	nodes := slices.Repeat([]*graphdv1.NodeSpec{{}}, 4_000_000)
	_, err = a.client.PutGraph(ctx, &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Spec{Spec: &graphdv1.GraphSpec{Nodes: nodes}}})
	a.recordAnswer("PutGraph", err)
}
