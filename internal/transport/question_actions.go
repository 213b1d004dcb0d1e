package transport

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/permission"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// actionMethod is a method by which a caller does something with a question.
type actionMethod struct {
	name    string
	actions runtime.QuestionActions
}

func actionMethods() []actionMethod {
	return []actionMethod{
		{graphdv1.GraphService_ResumeRun_FullMethodName, runtime.ActionAnswer},
		{graphdv1.InterruptService_ClaimInterrupt_FullMethodName, runtime.ActionClaim},
		{graphdv1.InterruptService_ReleaseInterrupt_FullMethodName, runtime.ActionRelease},
		{graphdv1.InterruptService_CommentInterrupt_FullMethodName, runtime.ActionComment},
		{graphdv1.InterruptService_DelegateInterrupt_FullMethodName, runtime.ActionDelegate},
		{graphdv1.InterruptService_UpdateInterrupt_FullMethodName, runtime.ActionAssign | runtime.ActionExtend | runtime.ActionEndClaim},
		{graphdv1.InterruptService_RetractResponse_FullMethodName, runtime.ActionRetract},
		{graphdv1.InterruptService_RevealInterrupt_FullMethodName, runtime.ActionReveal},
		{graphdv1.InterruptService_MakeLink_FullMethodName, runtime.ActionLink},
		{graphdv1.GraphService_CancelRun_FullMethodName, runtime.ActionCancel},
	}
}

// actionReader tells what the caller of a call may do with questions. nil tells nothing. It keeps
// its policy: a call that goes on for long makes another one.
type actionReader struct {
	service *interruptService
	by      runtime.Actor
	filters map[runtime.QuestionActions]*permission.ItemFilter // by the actions of a method
}

func (s *interruptService) newActionReader(ctx context.Context) *actionReader {
	r := &actionReader{service: s, by: interceptor.ActorOf(ctx), filters: map[runtime.QuestionActions]*permission.ItemFilter{}}
	for _, m := range actionMethods() {
		r.filters[m.actions] = s.access.NewItemFilter(ctx, m.name)
	}
	return r
}

// readActions returns what the caller may do with a question, as it would be decided if the caller
// did it. A caller who is a contributor has edited the state since the run began.
func (r *actionReader) readActions(q *checkpoint.Interrupt, isContributor bool) runtime.QuestionActions {
	if r == nil {
		return 0
	}
	all := r.service.engine.AllowedActions(q, r.by, isContributor)
	if r.service.links != nil && refuseUnlinkable(q) == nil {
		all |= runtime.ActionLink
	}
	for actions, filter := range r.filters {
		if all&actions != 0 && !filter.Shows(q.Graph, q.Thread) {
			all &^= actions
		}
	}
	return all
}

// showInterrupt converts a question, with what the caller of the call may do with it. Errors: those
// of engine.Engine.Thread.
func (s *interruptService) showInterrupt(ctx context.Context, q *checkpoint.Interrupt) (*graphdv1.Interrupt, error) {
	reader, isContributor := s.newActionReader(ctx), false
	if q.Policy != nil && q.Policy.NotContributor && reader.by.Name != "" {
		head, err := s.engine.Thread(ctx, q.Thread)
		if err != nil {
			return nil, err
		}
		isContributor = head.IsEditor(reader.by.Name)
	}
	shown := wire.InterruptToProto(*q)
	shown.Allowed = wire.ActionsToProto(reader.readActions(q, isContributor))
	return shown, nil
}
