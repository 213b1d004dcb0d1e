package interceptor

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc/metadata"

	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// headerTenant names the tenant of a call: one of those that its caller has.
const headerTenant = "graphd-tenant"

// TenantOf returns the tenant of a call. Services use it for every thread, graph and worker
// that the call names.
func TenantOf(ctx context.Context) string {
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		return cmp.Or(c.tenant, tenant.Default)
	}
	return tenant.Default
}

// decideTenant records the tenant of a call, or refuses the call; caller is nil where
// callers are not known. It is called once, before anything is decided by the tenant.
func decideTenant(ctx context.Context, caller *identity.Principal) error {
	chosen, err := chooseTenant(ctx, caller)
	if err != nil {
		return err
	}
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		c.tenant = chosen
	}
	return nil
}

// chooseTenant returns the tenant that a call names in its header, or that of its caller. A
// call for another tenant gets the same error whether or not there is such a tenant.
func chooseTenant(ctx context.Context, caller *identity.Principal) (string, error) {
	own, others := tenant.Default, []string(nil)
	if caller != nil {
		own, others = cmp.Or(caller.Tenant, tenant.Default), caller.Tenants
	}
	chosen := own
	switch given := metadata.ValueFromIncomingContext(ctx, headerTenant); len(given) {
	case 0:
	case 1:
		chosen = given[0]
		if err := tenant.CheckName(chosen); err != nil {
			return "", headerError("%v", err)
		}
	default:
		return "", headerError("is sent %d times: want one tenant", len(given))
	}
	isOwn := chosen == own || slices.Contains(others, chosen)
	if !isOwn || tenant.CheckName(chosen) != nil { // credentials may name what no tenant can be called
		return "", runtime.Errorf(runtime.ReasonAccessDenied, "access denied: the caller has no tenant %q, want one of its own", chosen).With("rule", "tenant")
	}
	return chosen, nil
}

// headerError refuses a header that names no tenant.
func headerError(format string, args ...any) error {
	e := runtime.Errorf(runtime.ReasonInvalidField, format, args...)
	e.Message = headerTenant + ": " + e.Message
	return e.With("field", headerTenant).WithViolation(headerTenant, format, args...)
}
