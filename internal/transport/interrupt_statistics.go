package transport

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// GetInterruptStatistics returns what became of the questions that the caller sees. Errors:
// INVALID_FIELD.
func (s *interruptService) GetInterruptStatistics(
	ctx context.Context, req *graphdv1.GetInterruptStatisticsRequest,
) (*graphdv1.InterruptStatistics, error) {
	v := s.newValidator(ctx)
	query := runtime.StatisticsQuery{Tenant: v.Tenant(), Interval: wire.StatisticsIntervalFromProto(v, "interval", req.GetInterval())}
	if err := v.Err(); err != nil {
		return nil, err
	}
	if filter := s.access.NewItemFilter(ctx, graphdv1.InterruptService_GetInterruptStatistics_FullMethodName); filter != nil {
		query.ShowsGraph = filter.ShowsGraph
	}
	found := s.engine.ReadQuestionStatistics(query)
	return wire.QuestionStatisticsToProto(&found), nil
}

// GetAnswerStatistics returns how the questions of a node were answered, and of a graph whose
// questions the caller does not all see what it returns of one without questions. Errors:
// INVALID_FIELD.
func (s *interruptService) GetAnswerStatistics(
	ctx context.Context, req *graphdv1.GetAnswerStatisticsRequest,
) (*graphdv1.AnswerStatistics, error) {
	v := s.newValidator(ctx)
	v.RequireSet("graph", req.GetGraph() != "")
	v.RequireSet("node", req.GetNode() != "")
	v.CheckGraphName("graph", req.GetGraph())
	node := v.CheckName("node", req.GetNode())
	if err := v.Err(); err != nil {
		return nil, err
	}
	filter := s.access.NewItemFilter(ctx, graphdv1.InterruptService_GetAnswerStatistics_FullMethodName)
	if !filter.ShowsGraph(req.GetGraph()) {
		node = "" // none has this name
	}
	found := s.engine.ReadAnswerStatistics(v.Tenant(), req.GetGraph(), node)
	return wire.AnswerStatisticsToProto(&found), nil
}
