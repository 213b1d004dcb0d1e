package wire

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// ActionsToProto lists what a caller may do with a question, in the order of the proto.
func ActionsToProto(all runtime.QuestionActions) (list []graphdv1.InterruptAction) {
	for i, action := range []runtime.QuestionActions{
		runtime.ActionAnswer, runtime.ActionClaim, runtime.ActionRelease, runtime.ActionComment, runtime.ActionDelegate, runtime.ActionAssign,
		runtime.ActionExtend, runtime.ActionEndClaim, runtime.ActionRetract, runtime.ActionReveal, runtime.ActionLink, runtime.ActionCancel,
	} {
		if all.Has(action) {
			list = append(list, graphdv1.InterruptAction(i+1))
		}
	}
	return list
}
