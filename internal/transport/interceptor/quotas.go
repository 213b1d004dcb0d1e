package interceptor

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/quota"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Quotas keep tenants and callers within their limits. The errors are of type
// *quota.ExceededError.
type Quotas interface {
	TakeCall(now time.Time, c quota.Caller, kind quota.Limit) error
	FindWait(now time.Time, c quota.Caller, kind quota.Limit) time.Duration
	Acquire(now time.Time, c quota.Caller, limit quota.Limit) (quota.Hold, error)
}

// rateLimiter is the Limiter of go-grpc-middleware. Health checks have no limit.
type rateLimiter struct {
	quotas Quotas
}

// Limit refuses a call beyond a rate of its caller or tenant. It runs when the caller is
// known. The middleware makes a status of the text of the error, so the error itself is
// recorded for the status that the client gets.
func (r rateLimiter) Limit(ctx context.Context) error {
	method, _ := grpc.Method(ctx)
	c, ok := ctx.Value(callContextKey{}).(*callContext)
	if !ok || isProbe(method) {
		return nil
	}
	c.quotas = r.quotas
	c.refusal = r.quotas.TakeCall(time.Now(), c.quotaCaller(), rateOfMethod(method))
	if c.refusal == nil && isReflection(method) {
		c.refusal = HoldStream(ctx) // its service is gRPC's own, and counts nothing
	}
	return c.refusal
}

// isReflection reports whether a call lists the services of the server: a stream without an
// end of its own.
func isReflection(method string) bool { return strings.HasPrefix(method, "/grpc.reflection.") }

// rateOfMethod returns the rate that bounds the calls of a method, besides quota.Calls.
func rateOfMethod(method string) quota.Limit {
	switch method {
	case graphdv1.GraphService_Stream_FullMethodName, graphdv1.GraphService_StartRun_FullMethodName:
		return quota.Starts
	case graphdv1.GraphService_Resume_FullMethodName, graphdv1.GraphService_ResumeRun_FullMethodName,
		graphdv1.InterruptService_CheckResponses_FullMethodName, graphdv1.InterruptService_RevealInterrupt_FullMethodName:
		return quota.Answers
	}
	return quota.Calls
}

// quotaCaller returns the caller whose limits hold for a call, in the tenant of the call.
// The callers of a server that does not know them are one, in the tenant tenant.Default.
func (c *callContext) quotaCaller() quota.Caller {
	owner := cmp.Or(c.tenant, tenant.Default)
	if c.caller == nil {
		return quota.Caller{Tenant: owner}
	}
	return quota.Caller{Tenant: owner, Principal: c.caller.Name, Groups: c.caller.Groups}
}

// refusalOr returns the recorded refusal of a call, or the error with which it ended.
func (c *callContext) refusalOr(err error) error {
	if c.refusal != nil {
		return c.refusal
	}
	return err
}

// WaitForAnswer waits until the caller may give another answer, and counts it as a call that
// answers. It takes nothing from the limits until all have something. It returns the cause
// of the end of ctx.
func WaitForAnswer(ctx context.Context) error {
	c, ok := ctx.Value(callContextKey{}).(*callContext)
	if !ok || c.quotas == nil {
		return nil
	}
	for {
		now := time.Now()
		wait := c.quotas.FindWait(now, c.quotaCaller(), quota.Answers)
		if wait == 0 {
			err := c.quotas.TakeCall(now, c.quotaCaller(), quota.Answers)
			exceeded, ok := errors.AsType[*quota.ExceededError](err)
			if !ok {
				return err
			}
			wait = exceeded.RetryAfter // another call was first
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// HoldStream counts a call as an open stream of its caller until the call ends. The
// error is a *quota.ExceededError. A call holds one thing at most.
func HoldStream(ctx context.Context) error { return holdQuota(ctx, quota.Streams) }

// HoldWorker counts a call as a worker, as HoldStream does.
func HoldWorker(ctx context.Context) error { return holdQuota(ctx, quota.Workers) }

func holdQuota(ctx context.Context, limit quota.Limit) error {
	c, ok := ctx.Value(callContextKey{}).(*callContext)
	if !ok || c.quotas == nil {
		return nil
	}
	held, err := c.quotas.Acquire(time.Now(), c.quotaCaller(), limit)
	if err == nil {
		c.held = held
	}
	return err
}
