// Package quota keeps tenants and callers within their limits: calls per second, and
// things that they hold at a time.
//
// A Policy, which a file gives, has the limits. A Limiter has what was consumed of them.
// Every call counts for its caller and for the caller's tenant, and both have to allow
// it.
package quota
