package interceptor

import (
	"context"
	"strings"

	"google.golang.org/grpc"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// ActorOf returns the authenticated caller of a call and the method that it calls, for the
// requests of the runtime. It is zero when the server does not know its callers.
func ActorOf(ctx context.Context) runtime.Actor {
	caller := CallerOf(ctx)
	if caller == nil {
		return runtime.Actor{}
	}
	method, _ := grpc.Method(ctx)
	return runtime.Actor{Name: caller.Name, Groups: caller.Groups, How: string(caller.How), Method: strings.TrimPrefix(method, "/")}
}
