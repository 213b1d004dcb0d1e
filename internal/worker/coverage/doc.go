// Package coverage says what workers take: whether a task is covered, why one is not,
// and to other servers what the workers here serve.
package coverage
